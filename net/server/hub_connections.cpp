#include "net/server/hub_connections.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "net/transport/stream.hpp"
#include "net/wire/frame_rules.hpp"

namespace fl::net {

namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kPauseAfterError{50};  // where no connection can be accepted, as without a free file descriptor
constexpr milliseconds kShortestWait{10};     // for a place, so that many connections are accepted at once
constexpr const char* kReplaced = "it said no hello in time, and newer connections waited";

OutgoingFrame heartbeat_frame() {
  wire::Header header;
  header.mutable_heartbeat();
  return make_frame(header);
}

}  // namespace

HubConnections::HubConnections(HubCore& core, const HubOptions& options)
    : core_(core),
      options_(options),
      pending_(options.most_pending, options.pending_grace),
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
  asio::steady_timer timer(io_);
  for (;;) {
    co_await wait_for_room(timer);
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
    if (error) {
      timer.expires_after(kPauseAfterError);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
      if (pending_.end_of_grace(Clock::now()) <= Clock::now()) pending_.replace_oldest();  // which frees a file descriptor
      continue;
    }
    if (pending_.is_full()) pending_.replace_oldest();
    socket.set_option(tcp::no_delay(true), error);
    const std::shared_ptr<Connection> connection = transport_->accepted(std::move(socket));
    asio::co_spawn(io_, welcome(connection, pending_.add(connection)), asio::detached);
  }
}

// Waits until a place is free, or its connection may be closed for another one.
asio::awaitable<void> HubConnections::wait_for_room(asio::steady_timer& timer) {
  for (;;) {
    const Clock::time_point now = Clock::now(), free = pending_.next_free(now);
    if (free <= now) co_return;
    timer.expires_at(std::max(free, now + kShortestWait));
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

// Makes a peer of a connection whose handshake succeeds. Nothing is read from any other.
asio::awaitable<void> HubConnections::welcome(std::shared_ptr<Connection> connection, Place place) {
  if (const std::string why = co_await why_refused(*connection, place); !why.empty()) {
    {
      const std::lock_guard lock(core_.mutex);
      core_.count_refusal(why);
      core_.tell_of_stranger("a connection from " + connection->remote() + " was refused: " + why);
    }
    co_return co_await connection->finish();
  }
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard lock(core_.mutex);
    peer = core_.add(std::move(connection));
  }
  asio::co_spawn(io_, read(peer, place), asio::detached);
  asio::co_spawn(io_, write(peer, std::move(place)), asio::detached);
}

// Returns why the handshake of a connection has failed, or "".
asio::awaitable<std::string> HubConnections::why_refused(Connection& connection, const Place& place) {
  try {
    co_await shake_hands(connection, options_.handshake_limit);
  } catch (const ProtocolError& error) {
    co_return place->is_replaced() ? kReplaced : error.what();
  }
  co_return std::string();
}

asio::awaitable<void> HubConnections::read(std::shared_ptr<Peer> peer, Place place) {
  const auto limits = [this, &peer] {
    const std::lock_guard lock(core_.mutex);
    return core_.limits_for(*peer);
  };
  std::string why = "it closed the connection";
  bool is_wrong = false, is_damaged = false;
  HubCore::Return may_return = HubCore::Return::no;
  FrameReader frames(peer->connection());
  try {
    for (bool goes_on = true; goes_on;) {
      Frame frame = co_await frames.read(limits());
      const std::lock_guard lock(core_.mutex);
      core_.count_in(frame);
      check_frame_of_peer(frame.header, frame.payload.size());
      if (peer->is_ending()) continue;  // what comes after a goodbye counts for nothing
      goes_on = !frame.header.has_goodbye();
      if (goes_on)
        core_.take(*peer, std::move(frame));
      else
        why = frame.header.goodbye().is_error() ? "it said: " + frame.header.goodbye().reason() : "it said goodbye";
      if (peer->host() != kNobody) place->leave();
    }
  } catch (const ProtocolError& error) {
    why = error.what();
    is_wrong = true;
    if (dynamic_cast<const PlaceTaken*>(&error) != nullptr) may_return = HubCore::Return::yes;
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::eof) why = reason_of(error);
    is_damaged = dynamic_cast<const ConnectionLost*>(&error) != nullptr;
    if (place->is_replaced()) why = kReplaced;
  } catch (const std::bad_alloc&) {
    why = "there is no memory for its frame";
  }
  const std::lock_guard lock(core_.mutex);
  if (place->is_replaced() && !peer->is_ending()) core_.count_refusal(kReplaced);
  if (is_damaged && !peer->is_ending()) core_.count_refusal(why);  // and nothing more: the peer may come back
  if (is_wrong && !peer->is_ending()) {
    core_.count_refusal(why);
    core_.turn_away(*peer, why, may_return);
  }
  core_.leave(*peer, why);
  peer->end();
}

asio::awaitable<void> HubConnections::write(std::shared_ptr<Peer> peer, Place place) {
  try {
    for (;;) {
      FrameBatch batch;
      bool ends = false;
      {
        const std::lock_guard lock(core_.mutex);
        for (OutgoingFrame frame; !batch.is_full() && peer->pop(frame); batch.add(std::move(frame))) core_.count_out(frame);
        ends = batch.empty() && peer->is_ending();
      }
      if (ends) break;
      if (!batch.empty()) {
        co_await batch.write(peer->connection());
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
  place->leave();
}

// Looks at all connections from time to time.
asio::awaitable<void> HubConnections::watch() {
  const milliseconds tick =
      std::clamp(std::min({options_.hello_limit, options_.heartbeat_every, options_.silence_limit, options_.ready_limit}) / 8,
                 milliseconds{5}, milliseconds{250});
  asio::steady_timer timer(io_);
  for (;;) {
    timer.expires_after(tick);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    const std::lock_guard lock(core_.mutex);
    core_.roster().forget_rounds_of_left(Clock::now() - options_.keeps_rounds);
    core_.tell_of_untold();
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
  if (const auto since = peer.unanswered_since(); since && now - *since > options_.ready_limit) {
    const std::string why =
        "its clients were not ready " + limit_text(options_.ready_limit) + " after it was told of the run (--ready-limit)";
    core_.count_refusal(why);
    return core_.turn_away(peer, why, HubCore::Return::yes);
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
