#include "net/hub_connections.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "net/frame_rules.hpp"
#include "net/stream.hpp"

namespace fl::net {

namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kPauseAfterError{50};  // where no connection can be accepted, as without a free file descriptor

OutgoingFrame heartbeat_frame() {
  wire::Header header;
  header.mutable_heartbeat();
  return make_frame(header);
}

}  // namespace

HubConnections::HubConnections(HubCore& core, const HubOptions& options)
    : core_(core),
      options_(options),
      acceptor_(listen_at(io_, options.host, options.port)),
      transport_(options.transport ? options.transport : plain_transport()),
      port_(acceptor_.local_endpoint().port()) {}

HubConnections::~HubConnections() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  core_.forget_peers();  // their sockets belong to this context
}

void HubConnections::run() {
  asio::co_spawn(io_, accept(), asio::detached);
  asio::co_spawn(io_, watch(), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
}

void HubConnections::stop_listening() {
  asio::post(io_, [this] { acceptor_.close(); });
}

asio::awaitable<void> HubConnections::accept() {
  asio::steady_timer pause(io_);
  for (;;) {
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
    if (error) {
      pause.expires_after(kPauseAfterError);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(io_, welcome(transport_->accepted(std::move(socket))), asio::detached);
  }
}

// Makes a peer of a connection whose handshake succeeds. Nothing is read from any other.
asio::awaitable<void> HubConnections::welcome(std::shared_ptr<Connection> connection) {
  std::string why;
  try {
    co_await shake_hands(*connection, options_.handshake_limit);
  } catch (const ProtocolError& error) {
    why = error.what();
    const std::lock_guard lock(core_.mutex);
    core_.count_refusal(why);
    core_.tell("a connection from " + connection->remote() + " was refused: " + why);
  }
  if (!why.empty()) {
    co_await connection->finish();
    co_return;
  }
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard lock(core_.mutex);
    peer = core_.add(std::move(connection));
  }
  asio::co_spawn(io_, read(peer), asio::detached);
  asio::co_spawn(io_, write(peer), asio::detached);
}

asio::awaitable<void> HubConnections::read(std::shared_ptr<Peer> peer) {
  const auto limits = [this, &peer] {
    const std::lock_guard lock(core_.mutex);
    return core_.limits_for(*peer);
  };
  std::string why = "it closed the connection";
  bool is_wrong = false;
  try {
    for (bool goes_on = true; goes_on;) {
      Frame frame = co_await read_frame(peer->connection(), limits());
      const std::lock_guard lock(core_.mutex);
      core_.count_in(frame);
      check_frame_of_peer(frame.header, frame.payload.size());
      if (peer->is_ending()) continue;  // what comes after a goodbye counts for nothing
      goes_on = !frame.header.has_goodbye();
      if (goes_on)
        core_.take(*peer, std::move(frame));
      else
        why = frame.header.goodbye().is_error() ? "it said: " + frame.header.goodbye().reason() : "it said goodbye";
    }
  } catch (const ProtocolError& error) {
    why = error.what();
    is_wrong = true;
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::eof) why = error.code().message();
  } catch (const std::bad_alloc&) {
    why = "there is no memory for its frame";
  }
  const std::lock_guard lock(core_.mutex);
  if (is_wrong && !peer->is_ending()) {
    core_.count_refusal(why);
    core_.turn_away(*peer, why);
  }
  core_.leave(*peer, why);
  peer->end();
}

asio::awaitable<void> HubConnections::write(std::shared_ptr<Peer> peer) {
  try {
    for (;;) {
      OutgoingFrame frame;
      bool has_frame = false, ends = false;
      {
        const std::lock_guard lock(core_.mutex);
        has_frame = peer->pop(frame);
        ends = !has_frame && peer->is_ending();
        if (has_frame) core_.count_out(frame);
      }
      if (ends) break;
      if (has_frame) {
        co_await write_frame(peer->connection(), frame);
        continue;
      }
      boost::system::error_code cancelled;
      co_await peer->wake().async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  } catch (const boost::system::system_error&) {  // the connection has ended
  }
  {
    // finish() takes bytes from the socket, so what the reader may still read counts for nothing.
    const std::lock_guard lock(core_.mutex);
    core_.leave(*peer, "the connection ended");
    peer->end();
  }
  co_await peer->connection().finish();
  const std::lock_guard lock(core_.mutex);
  core_.remove(*peer);
}

// Looks at all connections from time to time.
asio::awaitable<void> HubConnections::watch() {
  const milliseconds tick = std::clamp(std::min({options_.hello_limit, options_.heartbeat_every, options_.silence_limit}) / 8,
                                       milliseconds{5}, milliseconds{250});
  asio::steady_timer timer(io_);
  for (;;) {
    timer.expires_after(tick);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    const std::lock_guard lock(core_.mutex);
    core_.roster().forget_rounds_of_left(Clock::now() - options_.keeps_rounds);
    const auto peers = core_.peers();
    for (const auto& [id, peer] : peers) check(*peer, Clock::now());
  }
}

// Closes a connection that exceeds a limit, and sends a heartbeat where nothing else was sent.
void HubConnections::check(Peer& peer, Clock::time_point now) {
  const auto limit_text = [](milliseconds limit) { return std::to_string(limit.count()) + " ms"; };
  if (peer.is_ending()) {
    if (now - peer.ends_at() > options_.farewell_limit) peer.close();
    return;
  }
  if (peer.host() == kNobody && now - peer.begun() > options_.hello_limit) {
    const std::string why = "it has said no hello after " + limit_text(options_.hello_limit);
    core_.count_refusal(why);
    return core_.turn_away(peer, why);
  }
  if (now - peer.connection().last_read() > options_.silence_limit) {
    const std::string why = "nothing was heard of it for " + limit_text(options_.silence_limit);
    core_.leave(peer, why);
    return peer.close();
  }
  if (const std::string why = peer.connection().why_invalid(); !why.empty()) {
    core_.count_refusal(why);
    return core_.turn_away(peer, why);
  }
  if (peer.host() != kNobody && now - peer.last_put() > options_.heartbeat_every) core_.put(peer, heartbeat_frame());
}

}  // namespace fl::net
