#include "net/peer_hub.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "fl_core/config/error.hpp"
#include "net/client_ranges.hpp"
#include "net/frame_rules.hpp"
#include "net/stream.hpp"
#include "server/checkpoint.hpp"

namespace fl::net {

namespace {

using asio::ip::tcp;

std::vector<ClientRange> ranges_in(const wire::Hello& hello) {
  std::vector<ClientRange> ranges;
  for (const wire::ClientRange& range : hello.clients()) {
    if (range.last() < range.first() || (!ranges.empty() && range.first() <= ranges.back().last))
      throw ProtocolError("the ids of a hello do not ascend");
    ranges.push_back({range.first(), range.last()});
  }
  if (ranges.empty()) throw ProtocolError("a hello names no client");
  return ranges;
}

wire::Header goodbye_header(const std::string& reason, bool is_error) {
  wire::Header header;
  header.mutable_goodbye()->set_reason(reason);
  header.mutable_goodbye()->set_is_error(is_error);
  return header;
}

// A connection and what is known of who is behind it. The hub's mutex guards all of it but the connection.
struct Peer {
  Peer(PeerId id_, std::shared_ptr<Connection> connection_) : id(id_), connection(std::move(connection_)), wake(connection->executor()) {}

  [[nodiscard]] std::string name() const { return "the peer of clients " + to_text(clients); }
  [[nodiscard]] PeerFacts facts() const {
    return {.id = id,
            .address = connection->remote(),
            .clients = said_hello ? to_text(clients) : "",
            .is_ready = is_ready,
            .last_round = last_round,
            .refusals = refusals,
            .has_left = false,
            .why = {}};
  }

  PeerId id;
  std::shared_ptr<Connection> connection;
  asio::steady_timer wake;  // its expiry never comes: cancelled when there is something to write
  std::vector<ClientRange> clients;
  std::deque<OutgoingFrame> outbox;
  bool said_hello = false, is_ready = false, ends_after_outbox = false, is_gone = false;
  std::uint64_t refusals = 0;
  std::uint32_t last_round = 0;  // of its last answer that was accepted
};

}  // namespace

struct PeerHub::Impl : std::enable_shared_from_this<PeerHub::Impl> {
  explicit Impl(const HubOptions& options)
      : acceptor(listen_at(io, options.host, options.port)),
        transport(options.transport ? options.transport : plain_transport()),
        handshake_limit(options.handshake_limit) {}

  // ---- connections: on the thread of Asio

  asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code error;
      tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) co_return;
      if (error) continue;
      socket.set_option(tcp::no_delay(true), error);
      asio::co_spawn(io, welcome(transport->accepted(std::move(socket))), asio::detached);
    }
  }

  // Makes a peer of a connection whose handshake succeeds. Nothing is read from any other.
  asio::awaitable<void> welcome(std::shared_ptr<Connection> connection) {
    std::string why;
    try {
      co_await shake_hands(*connection, handshake_limit);
    } catch (const ProtocolError& error) {
      why = error.what();
      const std::lock_guard lock(mutex);
      count_refusal(why);
      news.push_back("a connection from " + connection->remote() + " was refused: " + why);
    }
    if (!why.empty()) {
      co_await connection->finish();
      co_return;
    }
    std::shared_ptr<Peer> peer;
    {
      const std::lock_guard lock(mutex);
      peer = std::make_shared<Peer>(++last_id, std::move(connection));
      peer->wake.expires_at(asio::steady_timer::time_point::max());
      peers.emplace(peer->id, peer);
    }
    asio::co_spawn(io, read(peer), asio::detached);
    asio::co_spawn(io, write(peer), asio::detached);
  }

  asio::awaitable<void> read(std::shared_ptr<Peer> peer) {
    std::string why = "it closed the connection";
    try {
      for (;;) {
        Frame frame = co_await read_frame(*peer->connection, limits(*peer));
        check_frame_of_peer(frame.header, frame.payload.size());
        const std::lock_guard lock(mutex);
        count_in(frame);
        if (frame.header.has_goodbye()) {
          why = frame.header.goodbye().is_error() ? frame.header.goodbye().reason() : "it said goodbye";
          break;
        }
        take(*peer, std::move(frame));
      }
    } catch (const ProtocolError& error) {
      why = error.what();
      const std::lock_guard lock(mutex);
      count_refusal(why);
      turn_away(*peer, why);
    } catch (const boost::system::system_error& error) {
      if (error.code() != asio::error::eof) why = error.code().message();
    }
    leave(*peer, why);
  }

  asio::awaitable<void> write(std::shared_ptr<Peer> peer) {
    try {
      for (;;) {
        OutgoingFrame frame;
        bool has_frame = false, ends = false;
        {
          const std::lock_guard lock(mutex);
          has_frame = !peer->outbox.empty();
          ends = !has_frame && (peer->ends_after_outbox || peer->is_gone);
          if (has_frame) {
            frame = std::move(peer->outbox.front());
            peer->outbox.pop_front();
            ++counts.frames_out;
            counts.payload_bytes_out += frame.payload_bytes();
            counts.bytes_out += frame.head.size() + frame.payload_bytes();
          }
        }
        if (ends) break;
        if (has_frame) {
          co_await write_frame(*peer->connection, frame);
          continue;
        }
        boost::system::error_code cancelled;
        co_await peer->wake.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
      }
    } catch (const boost::system::system_error&) {  // the reader hears of it too
    }
    co_await peer->connection->finish();
    const std::lock_guard lock(mutex);
    if (peers.empty()) changed.notify_all();
  }

  // ---- what frames mean: with the mutex

  [[nodiscard]] FrameLimits limits(const Peer& peer) {
    const std::lock_guard lock(mutex);
    return limits_of_peer(peer.is_ready, offer.most_message_bytes);
  }

  void count_in(const Frame& frame) {
    ++counts.frames_in;
    counts.payload_bytes_in += frame.payload.size();
    counts.bytes_in += kPrefixBytes + frame.header.ByteSizeLong() + frame.payload.size();
  }

  void take(Peer& peer, Frame frame) {
    switch (frame.header.kind_case()) {
      case wire::Header::kHello: return greet(peer, frame.header.hello());
      case wire::Header::kReady: return make_ready(peer, frame.header.ready());
      case wire::Header::kUpdate: {
        const wire::Update& update = frame.header.update();
        return take_answer(peer, {Expected::Kind::update, update.round(), update.phase(), update.client()}, std::move(frame));
      }
      case wire::Header::kNorms: {
        const wire::Norms& norms = frame.header.norms();
        return take_answer(peer, {Expected::Kind::norms, norms.round(), 0, norms.client()}, std::move(frame));
      }
      case wire::Header::kMemory: {
        const wire::Memory& memory = frame.header.memory();
        return take_answer(peer, {Expected::Kind::memory, memory.round(), 0, memory.client()}, std::move(frame));
      }
      default: throw ProtocolError("a frame that only a server sends");
    }
  }

  void greet(Peer& peer, const wire::Hello& hello) {
    if (peer.said_hello) throw ProtocolError("a second hello");
    if (hello.protocol() != kProtocol)
      throw ProtocolError("it understands version " + std::to_string(hello.protocol()) + " of the protocol; this server version " +
                          std::to_string(kProtocol));
    if (hello.build() != build_fingerprint())
      throw ProtocolError("it is another build (" + hello.build() + "; the server is " + build_fingerprint() +
                          "), so its results could differ in their last bits");
    std::vector<ClientRange> clients = ranges_in(hello);
    const Identity& identity = peer.connection->identity();
    if (!identity.may_host(clients))
      throw ProtocolError("its certificate " + identity.name + " speaks for clients " + to_text(identity.clients) + ", not " +
                          to_text(clients));
    for (const auto& [id, other] : peers) {
      if (other.get() == &peer || !other->said_hello || other->is_gone) continue;
      if (identity.is_proved() && other->connection->identity().name == identity.name)
        throw ProtocolError("another connection has the certificate " + identity.name + " already");
      for (const ClientRange& mine : clients)
        for (const ClientRange& theirs : other->clients)
          if (mine.first <= theirs.last && theirs.first <= mine.last)
            throw ProtocolError("client " + std::to_string(std::max(mine.first, theirs.first)) + " is hosted by another peer already");
    }
    peer.clients = std::move(clients);
    peer.said_hello = true;
    if (offer.scenario != nullptr) assign(peer);
  }

  // Tells a peer of the run. Clients' state begins with the run, so nobody may join one that plays.
  void assign(Peer& peer) {
    if (peer.clients.back().last >= offer.num_clients)
      return turn_away(peer, "the run has clients 0-" + std::to_string(offer.num_clients - 1) + ", not " + to_text(peer.clients));
    if (is_playing) return turn_away(peer, "the run has begun without its clients");
    wire::Header header;
    wire::Assignment& assignment = *header.mutable_assignment();
    assignment.set_run(offer.run);
    assignment.set_split(offer.split);
    for (const ClientRange& range : peer.clients) {
      wire::ClientRange& one = *assignment.add_clients();
      one.set_first(range.first);
      one.set_last(range.last);
    }
    put(peer, make_frame(header, {offer.scenario}));
  }

  void make_ready(Peer& peer, const wire::Ready& ready) {
    if (!peer.said_hello) throw ProtocolError("it is ready before its hello");
    if (ready.run() != offer.run) throw ProtocolError("it is ready for another run");
    if (ready.split() != offer.split)
      throw ProtocolError("its data are split in another way (hash " + std::to_string(ready.split()) + ", the server's " +
                          std::to_string(offer.split) + ")");
    peer.is_ready = true;
    for (const auto& [first, last] : peer.clients)
      for (std::uint32_t client = first; client <= last; ++client) host_of[client] = peer.id;
    changed.notify_all();
  }

  // Keeps the frame if the server waits for it.
  void take_answer(Peer& peer, const Expected& what, Frame frame) {
    if (!peer.is_ready) throw ProtocolError("it answers before it is ready");
    if (what.client >= host_of.size() || host_of[what.client] != peer.id)
      return refuse(peer, "it speaks for a client that it does not host");
    const auto found = awaited.find(what);
    if (found == awaited.end()) return refuse(peer, why_unexpected(what));
    answers[found->second] = std::move(frame);
    awaited.erase(found);
    peer.last_round = what.round;
    if (awaited.empty()) changed.notify_all();
  }

  [[nodiscard]] const char* why_unexpected(const Expected& what) const {
    if (asked.empty() || what.round != asked.front().round) return "the answer is of another round";
    for (const Expected& one : asked)
      if (one == what) return "the answer was there already";
    return "nobody waits for this answer";
  }

  // Peers choose what is wrong with what they send, and not how many reasons are kept.
  void count_refusal(const std::string& reason) {
    constexpr std::size_t kMostReasons = 64;
    const bool is_known = counts.refused.contains(reason) || counts.refused.size() < kMostReasons;
    ++counts.refused[is_known ? reason : "other reasons"];
  }

  void refuse(Peer& peer, const std::string& reason) {
    count_refusal(reason);
    if (++peer.refusals >= kMostRefusals) throw ProtocolError("it was refused " + std::to_string(kMostRefusals) + " times");
  }

  void put(Peer& peer, OutgoingFrame frame) {
    if (peer.is_gone || peer.ends_after_outbox) return;
    peer.outbox.push_back(std::move(frame));
    asio::post(io, [self = shared_from_this(), &wake = peer.wake, keep = peers.at(peer.id)] { wake.cancel(); });
  }

  // Says why, and closes the connection when that is written.
  void turn_away(Peer& peer, const std::string& why) {
    put(peer, make_frame(goodbye_header(why, true)));
    peer.ends_after_outbox = true;
  }

  void leave(Peer& peer, const std::string& why) {
    const std::lock_guard lock(mutex);
    peer.is_gone = true;
    peer.wake.cancel();
    if (peer.said_hello)
      news.push_back(peer.name() + " has left: " + why);
    else
      news.push_back("a peer was turned away: " + why);
    for (PeerId& host : host_of)
      if (host == peer.id) host = kNobody;
    remember(peer, why);
    peers.erase(peer.id);
    changed.notify_all();
  }

  void remember(const Peer& peer, const std::string& why) {
    departed.push_back(peer.facts());
    departed.back().has_left = true;
    departed.back().why = why;
    if (departed.size() > kMostDeparted) departed.pop_front();
  }

  asio::io_context io{1};
  tcp::acceptor acceptor;
  std::shared_ptr<Transport> transport;
  std::chrono::milliseconds handshake_limit;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<PeerId, std::shared_ptr<Peer>> peers;
  PeerId last_id = kNobody;
  RunOffer offer;
  bool is_playing = false;
  std::vector<PeerId> host_of;              // [N] of peers that are ready
  std::vector<Expected> asked;              // in the order of expect()
  std::map<Expected, std::size_t> awaited;  // of these, what is not there yet, and its place among the answers
  std::vector<Frame> answers;
  WireCounts counts;
  std::vector<std::string> news;
  std::deque<PeerFacts> departed;
};

PeerHub::PeerHub(const HubOptions& options) : impl_(std::make_shared<Impl>(options)) {
  asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
  thread_ = std::thread([impl = impl_.get()] { impl->io.run(); });
}

PeerHub::~PeerHub() {
  {
    std::unique_lock lock(impl_->mutex);
    asio::post(impl_->io, [impl = impl_] { impl->acceptor.close(); });
    for (const auto& [id, peer] : impl_->peers) {
      impl_->put(*peer, make_frame(goodbye_header("", false)));
      peer->ends_after_outbox = true;
    }
    impl_->changed.wait_for(lock, std::chrono::seconds(2), [this] { return impl_->peers.empty(); });
  }
  impl_->io.stop();
  thread_.join();
}

std::uint16_t PeerHub::port() const { return impl_->acceptor.local_endpoint().port(); }

void PeerHub::begin_run(const RunOffer& offer) {
  const std::lock_guard lock(impl_->mutex);
  impl_->offer = offer;
  impl_->is_playing = false;
  impl_->host_of.assign(offer.num_clients, kNobody);
  for (const auto& [id, peer] : impl_->peers) {
    peer->is_ready = false;
    if (peer->said_hello) impl_->assign(*peer);
  }
}

bool PeerHub::wait_until_ready(const std::function<bool()>& goes_on) {
  std::unique_lock lock(impl_->mutex);
  const auto all_are_there = [this] { return std::ranges::find(impl_->host_of, kNobody) == impl_->host_of.end(); };
  while (!impl_->changed.wait_for(lock, std::chrono::milliseconds(100), all_are_there))
    if (!goes_on()) return false;
  impl_->is_playing = true;
  return true;
}

void PeerHub::end_run() {
  wire::Header header;
  const std::lock_guard lock(impl_->mutex);
  header.mutable_run_end()->set_run(impl_->offer.run);
  const OutgoingFrame frame = make_frame(header);
  for (const auto& [id, peer] : impl_->peers)
    if (peer->is_ready) impl_->put(*peer, frame);
  impl_->offer = {};
  impl_->is_playing = false;
}

PeerId PeerHub::peer_of(std::uint32_t client) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->host_of.at(client);
}

void PeerHub::send(PeerId peer, OutgoingFrame frame) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->peers.find(peer);
  if (found != impl_->peers.end()) impl_->put(*found->second, std::move(frame));
}

void PeerHub::send_to_all(const OutgoingFrame& frame) {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [id, peer] : impl_->peers)
    if (peer->is_ready) impl_->put(*peer, frame);
}

void PeerHub::expect(std::vector<Expected> frames) {
  const std::lock_guard lock(impl_->mutex);
  impl_->asked = std::move(frames);
  impl_->answers.assign(impl_->asked.size(), {});
  impl_->awaited.clear();
  for (std::size_t i = 0; i < impl_->asked.size(); ++i) impl_->awaited.emplace(impl_->asked[i], i);
}

void PeerHub::refuse(std::uint32_t client, std::uint32_t round, const std::string& why) {
  wire::Header header;
  header.mutable_refused()->set_round(round);
  header.mutable_refused()->set_client(client);
  header.mutable_refused()->set_reason(why);
  const std::lock_guard lock(impl_->mutex);
  impl_->count_refusal("a message that is none: " + why);
  const auto found = impl_->peers.find(impl_->host_of.at(client));
  if (found == impl_->peers.end()) return;
  Peer& peer = *found->second;
  impl_->put(peer, make_frame(header));
  if (++peer.refusals >= kMostRefusals) impl_->turn_away(peer, "it was refused " + std::to_string(kMostRefusals) + " times");
}

std::vector<Frame> PeerHub::collect(const std::function<bool()>& goes_on) {
  std::unique_lock lock(impl_->mutex);
  const auto lost = [this] {
    return std::ranges::find_if(impl_->awaited, [this](const auto& one) { return impl_->host_of[one.first.client] == kNobody; });
  };
  const auto is_over = [&] { return impl_->awaited.empty() || lost() != impl_->awaited.end(); };
  while (!impl_->changed.wait_for(lock, std::chrono::milliseconds(100), is_over))
    if (!goes_on()) throw Interrupted();
  if (const auto gone = lost(); gone != impl_->awaited.end())
    throw Error("client " + std::to_string(gone->first.client) + " has left in round " + std::to_string(gone->first.round) +
                (impl_->news.empty() ? "" : ": " + impl_->news.back()));
  return std::move(impl_->answers);
}

WireCounts PeerHub::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

std::vector<PeerFacts> PeerHub::peers() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<PeerFacts> facts;
  for (const auto& [id, peer] : impl_->peers) facts.push_back(peer->facts());
  facts.insert(facts.end(), impl_->departed.begin(), impl_->departed.end());
  return facts;
}

std::vector<std::string> PeerHub::news() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->news, {});
}

}  // namespace fl::net
