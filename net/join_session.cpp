#include "net/join_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/stream.hpp"
#include "server/checkpoint.hpp"

namespace fl::net {

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;
using Kind = JoinEvent::Kind;

// What a server sends: a model, shared slots and a memory, all dense.
constexpr std::uint64_t kMostPayload = std::uint64_t{1} << 36;

constexpr std::chrono::seconds kHandshakeLimit{10};

class Session {
 public:
  Session(const JoinOptions& options, const JoinEvents& events) : options_(options), events_(events), socket_(io_), ticks_(io_) {}

  JoinResult play() {
    std::exception_ptr failure;
    asio::co_spawn(io_, converse(), [&](std::exception_ptr thrown) {
      failure = thrown;
      is_over_ = true;
      ticks_.cancel();
    });
    asio::co_spawn(io_, watch(), [](std::exception_ptr) {});
    io_.run();
    if (result_.was_stopped) return result_;
    if (failure) std::rethrow_exception(failure);
    return result_;
  }

 private:
  // Ends the session when it is asked to.
  asio::awaitable<void> watch() {
    while (!is_over_ && events_.goes_on()) {
      ticks_.expires_after(100ms);
      boost::system::error_code cancelled;
      co_await ticks_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    if (is_over_) co_return;
    result_.was_stopped = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
    if (connection_) connection_->close();
  }

  asio::awaitable<void> converse() {
    try {
      co_await connect();
      tell({.kind = Kind::connected, .text = name()});
      co_await say_hello();
      for (;;) {
        const Frame frame = co_await read_frame(*connection_, kMostPayload);
        result_.bytes_in += kPrefixBytes + frame.header.ByteSizeLong() + frame.payload.size();
        if (frame.header.has_goodbye()) {
          if (frame.header.goodbye().is_error()) throw Error("the server refused: " + frame.header.goodbye().reason());
          co_return;
        }
        co_await answer(frame);
        if (!events_.goes_on()) {
          result_.was_stopped = true;
          co_return;
        }
      }
    } catch (const boost::system::system_error& error) {
      throw Error("the connection to " + name() + " ended: " + error.code().message());
    }
  }

  asio::awaitable<void> connect() {
    tcp::resolver resolver(io_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.patience_s);
    auto pause = 50ms;
    for (;;) {
      boost::system::error_code error;
      const auto found =
          co_await resolver.async_resolve(options_.host, std::to_string(options_.port), asio::redirect_error(asio::use_awaitable, error));
      if (!error) co_await asio::async_connect(socket_, found, asio::redirect_error(asio::use_awaitable, error));
      if (!error) break;
      if (result_.was_stopped) throw Error("stopped before " + name() + " was reached");
      if (std::chrono::steady_clock::now() > until) throw Error("cannot reach " + name() + ": " + error.message());
      ticks_pause_.expires_after(pause);
      co_await ticks_pause_.async_wait(asio::use_awaitable);
      pause = std::min<std::chrono::milliseconds>(2 * pause, 2000ms);
    }
    socket_.set_option(tcp::no_delay(true));
    connection_ = (options_.transport ? options_.transport : plain_transport())->connected(std::move(socket_), options_.host);
    try {
      co_await shake_hands(*connection_, kHandshakeLimit);
    } catch (const ProtocolError& error) {
      throw Error("the server at " + name() + " is refused: " + error.what());
    }
  }

  asio::awaitable<void> say_hello() {
    wire::Header header;
    wire::Hello& hello = *header.mutable_hello();
    hello.set_protocol(kProtocol);
    hello.set_build(build_fingerprint());
    for (const ClientRange& range : options_.clients) {
      wire::ClientRange& one = *hello.add_clients();
      one.set_first(range.first);
      one.set_last(range.last);
    }
    co_await send(make_frame(header));
  }

  asio::awaitable<void> send(OutgoingFrame frame) {
    result_.bytes_out += frame.head.size() + frame.payload_bytes();
    co_await write_frame(*connection_, frame);
  }

  asio::awaitable<void> send_all(std::vector<OutgoingFrame> frames) {
    for (OutgoingFrame& frame : frames) co_await send(std::move(frame));
  }

  asio::awaitable<void> answer(const Frame& frame) {
    const wire::Header& header = frame.header;
    if (header.has_assignment()) {
      begin(header.assignment(), frame.payload);
      wire::Header ready;
      ready.mutable_ready()->set_run(header.assignment().run());
      ready.mutable_ready()->set_split(clients_->split_hash());
      co_await send(make_frame(ready));
      co_return;
    }
    if (header.has_run_end()) {
      clients_.reset();
      ++result_.runs;
      tell({.kind = Kind::run_ended, .run = run_});
      co_return;
    }
    if (header.has_refused()) {
      events_.say("the server refuses the message of client " + std::to_string(header.refused().client()) + " in round " +
                  std::to_string(header.refused().round()) + ": " + header.refused().reason());
      tell({.kind = Kind::refused,
            .run = run_,
            .round = header.refused().round(),
            .client = header.refused().client(),
            .text = header.refused().reason()});
      co_return;
    }
    if (clients_ == nullptr) throw ProtocolError("the server plays a round before it has named a run");
    if (header.has_open()) {
      clients_->open(frame);
      co_await send_all(clients_->exchange());
    } else if (header.has_mean()) {
      if (clients_->learn_mean(frame)) co_await send_all(clients_->exchange());
    } else if (header.has_close()) {
      co_await send_all(clients_->close(frame));
      ++result_.rounds;
      tell({.kind = Kind::round_closed, .run = run_, .round = header.close().round()});
    } else {
      throw ProtocolError("a frame that only a peer sends");
    }
  }

  void begin(const wire::Assignment& assignment, const Bytes& payload) {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    clients_.reset();
    clients_ = host_clients(text, assignment.run(), options_.clients, options_.machine);
    events_.say("run " + to_hex(assignment.run()) + " begins, with clients " + to_text(options_.clients) + " here");
    run_ = assignment.run();
    tell({.kind = Kind::run_begun, .run = run_, .text = to_text(options_.clients)});
  }

  void tell(const JoinEvent& event) const { events_.tell(event); }

  [[nodiscard]] std::string name() const { return options_.host + ":" + std::to_string(options_.port); }

  const JoinOptions& options_;
  const JoinEvents& events_;
  asio::io_context io_{1};
  tcp::socket socket_;  // until it is connected
  std::unique_ptr<Connection> connection_;
  asio::steady_timer ticks_, ticks_pause_{io_};
  std::unique_ptr<HostedClients> clients_;
  JoinResult result_;
  std::uint64_t run_ = 0;  // the last one that was assigned
  bool is_over_ = false;
};

}  // namespace

JoinResult join_server(const JoinOptions& options, const JoinEvents& events) { return Session(options, events).play(); }

}  // namespace fl::net
