#include "net/peer/join_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <exception>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/peer/failure_kind.hpp"
#include "net/peer/peer_run.hpp"
#include "net/peer/state_folder.hpp"
#include "net/transport/tls_transport.hpp"

namespace fl::net {

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using EventKind = JoinEvent::Kind;

constexpr std::chrono::seconds kHandshakeLimit{10};
// Between two attempts to connect.
constexpr std::chrono::milliseconds kFirstPause{50}, kLongestPause{2000};

constexpr const char* kStopped = "it is stopped";

// The server has said goodbye, with a reason.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The server has no place for these clients now.
class TurnedAway : public Refusal {
 public:
  using Refusal::Refusal;
};

// One peer, over all of its connections. Frames are sent and received on one thread and computed with on another, so that heartbeats go
// out meanwhile.
class JoiningPeer {
 public:
  JoiningPeer(const JoinOptions& options, const JoinEvents& events)
      : options_(options),
        events_(events),
        state_(options.state, options.machine.paging.file.folder),
        run_(options.clients, options.machine,
             {.folder = state_.path(),
              .system = options.system != nullptr ? options.system : &state_.system(),
              .long_bytes = options.long_bytes},
             [this](const std::string& text) { events_.say(text); }) {
    if (!state_.damage().empty()) events_.say(state_.damage());
  }

  JoinResult play() {
    std::exception_ptr failure;
    asio::co_spawn(io_, live(), [&](const std::exception_ptr& thrown) {
      failure = thrown;
      is_over_ = true;
      ticks_.cancel();
    });
    asio::co_spawn(io_, watch(), asio::detached);
    io_.run();
    if (failure && !result_.was_stopped) std::rethrow_exception(failure);
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
    pause_.cancel();
    boost::system::error_code ignored;
    if (connecting_) connecting_->close(ignored);
    const std::shared_ptr<JoinLink> link = link_;
    if (link == nullptr) co_return;
    link->put(goodbye(kStopped, false));
    co_await link->finish();
  }

  // ---- connections, one after another

  // Connects again and again until the server has said goodbye, or is gone for too long.
  asio::awaitable<void> live() {
    std::chrono::milliseconds pause = kFirstPause;
    while (!result_.was_stopped) {
      const std::uint64_t frames_before = frames_;
      const Clock::time_point heard_before = heard_;
      bool is_turned_away = false;
      try {
        co_await connect();
        co_await converse();
        drop_link();
        co_return;
      } catch (const HandshakeLost& lost) {
        if (lost_.empty()) events_.say("the handshake with " + name() + " is lost, and tried again: " + lost.what());
        lost_ = lost.what();
      } catch (const TurnedAway& refusal) {
        if (lost_ != refusal.what())
          events_.say(std::string(refusal.what()) + "; tried again for up to " + seconds() + " seconds (--patience)");
        lost_ = refusal.what();
        heard_ = heard_before;
        is_turned_away = true;
      } catch (const boost::system::system_error& error) {
        lost_ = link_ != nullptr && !link_->why_closed().empty() ? link_->why_closed() : reason_of(error);
      } catch (...) {
        drop_link();
        throw;
      }
      drop_link();
      if (frames_ > frames_before && !is_turned_away) pause = kFirstPause;
      if (Clock::now() - heard_ > std::chrono::duration<double>(options_.patience_s))
        throw Error(is_turned_away ? lost_ + "; it was asked for " + seconds() + " seconds (--patience)" : text_of_loss());
      pause_.expires_after(pause);
      boost::system::error_code cancelled;
      if (!result_.was_stopped) co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
      pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
    }
  }

  [[nodiscard]] std::string text_of_loss() const {
    if (frames_ == 0) return "cannot reach " + name() + ": " + lost_;
    return "the server at " + name() + " is gone for more than " + seconds() + " seconds (--patience): " + lost_ + "; " + state_.advice();
  }

  [[nodiscard]] std::string seconds() const { return std::to_string(static_cast<std::int64_t>(options_.patience_s)); }

  asio::awaitable<void> connect() {
    tcp::resolver resolver(io_);
    const auto found = co_await resolver.async_resolve(options_.host, std::to_string(options_.port), asio::use_awaitable);
    const auto socket = std::make_shared<tcp::socket>(io_);
    connecting_ = socket;
    asio::steady_timer limit(io_, kHandshakeLimit);
    limit.async_wait([socket](const boost::system::error_code& cancelled) {
      boost::system::error_code ignored;
      if (!cancelled) socket->close(ignored);
    });
    co_await asio::async_connect(*socket, found, asio::use_awaitable);
    limit.cancel();
    connecting_.reset();
    socket->set_option(tcp::no_delay(true));
    const std::shared_ptr<Transport> transport = options_.transport ? options_.transport : plain_transport();
    std::unique_ptr<Connection> connection = transport->connected(std::move(*socket), options_.host);
    try {
      co_await shake_hands(*connection, kHandshakeLimit);
    } catch (const HandshakeLost&) {  // a server with many connections may close this one for a newer one
      throw;
    } catch (const ProtocolError& refused) {
      if (frames_ == 0) throw Error("the server at " + name() + " is refused: " + refused.what());
      throw boost::system::system_error(asio::error::connection_aborted, refused.what());  // it was accepted before: it may be starting
    }
    link_ = std::make_shared<JoinLink>(std::move(connection), options_.times);
    link_->start();
  }

  void drop_link() {
    if (link_ == nullptr) return;
    link_->close();
    result_.bytes_out += link_->bytes_out();
    link_.reset();
  }

  // ---- one conversation

  // Returns when the server has said goodbye because all is done. Of what fails here the server is told the kind alone, before it is
  // thrown.
  asio::awaitable<void> converse() {
    std::string failure;
    std::exception_ptr thrown;
    try {
      co_return co_await follow();
    } catch (const boost::system::system_error&) {
      throw;
    } catch (const TurnedAway&) {
      throw;
    } catch (const Stopped&) {  // while the clients were prepared
      result_.was_stopped = true;
      is_over_ = true;
    } catch (const Refusal& refusal) {
      throw Error(refusal.what());
    } catch (const TlsAlert& alert) {
      throw Error("the server at " + name() + " refuses this connection: " + alert.what());
    } catch (const ProtocolError& error) {
      failure = failure_kind(error);
      const bool is_tls = dynamic_cast<const TlsOnOneSide*>(&error) != nullptr;
      thrown = std::make_exception_ptr(
          Error(is_tls ? name() + ": " + error.what() : std::string("the server breaks the protocol: ") + error.what()));
    } catch (const std::exception& error) {
      failure = failure_kind(error);
      thrown = std::current_exception();
    }
    link_->put(result_.was_stopped ? goodbye(kStopped, false) : goodbye(failure, true));
    co_await link_->finish();
    if (!result_.was_stopped) std::rethrow_exception(thrown);
  }

  asio::awaitable<void> follow() {
    tell({.kind = EventKind::connected, .text = name()});
    link_->put(hello());
    while (!result_.was_stopped) {
      Frame frame = co_await link_->read();
      heard_ = Clock::now();
      ++frames_;
      result_.bytes_in += kPrefixBytes + frame.header.ByteSizeLong() + frame.payload.size();
      if (frame.header.has_goodbye()) {
        const wire::Goodbye& goodbye = frame.header.goodbye();
        if (goodbye.is_error() && goodbye.may_return()) throw TurnedAway("the server has no place now: " + goodbye.reason());
        if (goodbye.is_error())
          throw Refusal("the server refused: " + goodbye.reason() + (run_.mismatch().empty() ? "" : "; " + run_.mismatch()));
        run_.remove();
        state_.keep_token("");
        co_return;
      }
      co_await take(std::move(frame));
      heard_ = Clock::now();  // nobody listened while the clients computed
      if (result_.was_stopped || events_.goes_on()) continue;
      result_.was_stopped = true;
      link_->put(goodbye(kStopped, false));
      co_await link_->finish();
    }
  }

  asio::awaitable<void> take(Frame frame) {
    switch (frame.header.kind_case()) {
      case wire::Header::kHeartbeat:
      case wire::Header::kSkip: co_return;
      case wire::Header::kAssignment: co_return co_await begin(std::move(frame));
      case wire::Header::kRefused: hear_refusal(frame.header.refused()); co_return;
      case wire::Header::kRunEnd: {
        run_.end();
        ++result_.runs;
        tell({.kind = EventKind::run_ended, .run = run_.run()});
        co_return;
      }
      default: break;
    }
    const std::uint32_t before = run_.closed_round();
    co_await compute([&] { run_.take(std::move(frame), [this](std::vector<OutgoingFrame> answers) { send_soon(std::move(answers)); }); });
    if (run_.closed_round() == before) co_return;
    ++result_.rounds;
    tell({.kind = EventKind::round_closed, .run = run_.run(), .round = run_.closed_round()});
  }

  // Sends frames from any thread. Those that are made while the connection is lost are sent again with the next one.
  void send_soon(std::vector<OutgoingFrame> frames) {
    asio::post(io_, [this, frames = std::move(frames)]() mutable {
      if (link_ == nullptr) return;
      for (OutgoingFrame& frame : frames) link_->put(std::move(frame));
    });
  }

  asio::awaitable<void> begin(Frame frame) {
    const wire::Assignment& assignment = frame.header.assignment();
    state_.keep_token(assignment.token());
    link_->put(co_await compute([&] { return run_.begin(assignment, frame.payload); }));
    events_.say("run " + to_hex(run_.run()) +
                (run_.closed_round() == 0 ? " begins" : " goes on after round " + std::to_string(run_.closed_round())) + ", with clients " +
                to_text(options_.clients) + " here");
    tell({.kind = EventKind::run_begun, .run = run_.run(), .round = run_.closed_round(), .text = to_text(options_.clients)});
  }

  void hear_refusal(const wire::Refused& refused) {
    events_.say("the server refuses the message of client " + std::to_string(refused.client()) + " in round " +
                std::to_string(refused.round()) + ": " + refused.reason());
    tell({.kind = EventKind::refused, .run = run_.run(), .round = refused.round(), .client = refused.client(), .text = refused.reason()});
  }

  // Calls a function on the thread of computing.
  template <class Function>
  asio::awaitable<std::invoke_result_t<Function>> compute(Function function) {
    return asio::co_spawn(
        worker_, [function = std::move(function)]() -> asio::awaitable<std::invoke_result_t<Function>> { co_return function(); },
        asio::use_awaitable);
  }

  [[nodiscard]] OutgoingFrame hello() const {
    wire::Header header;
    wire::Hello& hello = *header.mutable_hello();
    hello.set_protocol(kProtocol);
    hello.set_build(build_fingerprint());
    for (const ClientRange& range : options_.clients) {
      wire::ClientRange& one = *hello.add_clients();
      one.set_first(range.first);
      one.set_last(range.last);
    }
    hello.set_token(state_.token());
    return make_frame(header);
  }

  static OutgoingFrame goodbye(const std::string& reason, bool is_error) {
    wire::Header header;
    header.mutable_goodbye()->set_reason(reason);
    header.mutable_goodbye()->set_is_error(is_error);
    return make_frame(header);
  }

  void tell(const JoinEvent& event) const { events_.tell(event); }

  [[nodiscard]] std::string name() const { return options_.host + ":" + std::to_string(options_.port); }

  const JoinOptions& options_;
  const JoinEvents& events_;
  StateFolder state_;
  PeerRun run_;
  asio::io_context io_{1};
  asio::thread_pool worker_{1};
  std::shared_ptr<tcp::socket> connecting_;  // null = none
  std::shared_ptr<JoinLink> link_;           // null = none
  asio::steady_timer ticks_{io_}, pause_{io_};
  Clock::time_point heard_ = Clock::now();  // when the server sent something last
  std::uint64_t frames_ = 0;                // that it has sent
  std::string lost_;                        // why the last connection ended
  JoinResult result_;
  bool is_over_ = false;
};

}  // namespace

JoinResult join_server(const JoinOptions& options, const JoinEvents& events) { return JoiningPeer(options, events).play(); }

}  // namespace fl::net
