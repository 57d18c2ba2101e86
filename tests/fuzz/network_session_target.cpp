// Sessions of peers with a server, without sockets: the bytes are steps of peers and of the server's rounds, in any order.
//
// net_session   Each step is a byte that chooses it, and the bytes of its numbers. Up to 8 connections host clients of a run with 6; they
//               send frames that a server waits for, and others. Whatever the order is, peers are only turned away; each client has one
//               host; what is accepted is what was expected; and what is kept of refusals is bounded.
#include <algorithm>
#include <set>
#include <utility>

#include "fl_core/state/checkpoint.hpp"
#include "net/server/hub_core.hpp"
#include "net/wire/frame_rules.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/memory_connection.hpp"

namespace {

namespace net = fl::net;
using fl::fuzz::require;

constexpr std::uint32_t kClients = 6;
constexpr std::size_t kMostConnections = 8, kMostSteps = 400;
constexpr std::uint64_t kMostMessage = 64;

class Steps {
 public:
  explicit Steps(std::span<const std::byte> bytes) : rest_(bytes) {}
  [[nodiscard]] bool has_more() const { return !rest_.empty() && num_taken_ < kMostSteps; }
  void count() { ++num_taken_; }
  // Returns a number below `bound`; 0 behind the end.
  std::uint32_t below(std::uint32_t bound) {
    if (rest_.empty()) return 0;
    const auto value = std::to_integer<std::uint32_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value % bound;
  }

 private:
  std::span<const std::byte> rest_;
  std::size_t num_taken_ = 0;
};

// A server's logic with the steps of a round, as the thread of rounds takes them, and the connections of its peers.
class SessionPlay {
 public:
  explicit SessionPlay(std::span<const std::byte> bytes) : steps_(bytes) {}
  ~SessionPlay() {
    core_.forget_peers();
    peers_.clear();
    io_.poll();
  }
  SessionPlay(const SessionPlay&) = delete;
  SessionPlay& operator=(const SessionPlay&) = delete;

  void play() {
    while (steps_.has_more()) {
      steps_.count();
      const std::lock_guard lock(core_.mutex);
      step(steps_.below(20));
      io_.restart();
      io_.poll();
      check();
    }
  }

 private:
  using Peers = std::vector<std::shared_ptr<net::Peer>>;

  void step(std::uint32_t choice) {
    switch (choice) {
      case 0: return connect();
      case 1: return begin_run();
      case 2: return core_.end_run();
      case 3: return open_round();
      case 4: return collect();
      case 5: return close_round();
      case 6: return core_.refuse_message(steps_.below(kClients + 2), steps_.below(8), "it is wrong");
      case 7: return core_.answers().give_up(steps_.below(kClients));
      case 8: return drop(any_peer());
      case 9: return write(any_peer());
      default: {
        const std::shared_ptr<net::Peer> peer = any_peer();
        return deliver(peer, any_header(choice));
      }
    }
  }

  // ---- the server

  void begin_run() {
    std::vector<std::uint32_t> closed;
    if (steps_.below(2) == 1) closed.assign(kClients, steps_.below(4));
    core_.begin_run({.run = 1 + steps_.below(2),
                     .split = 5,
                     .scenario = std::make_shared<const net::Bytes>(10),
                     .num_clients = kClients,
                     .most_message_bytes = kMostMessage,
                     .closed_rounds = closed});
    has_run_ = true;
    round_ = closed.empty() ? 0 : closed.front();
    cohort_.clear();
    host_of_.clear();
    hosts_.clear();
    asked_.clear();
  }

  void open_round() {
    if (core_.offer().scenario == nullptr || !cohort_.empty()) return;
    const std::uint32_t members = 1 + steps_.below(63);
    ++round_;
    for (std::uint32_t client = 0; client < kClients; ++client) {
      const net::Session* session = core_.roster().host_of(client);
      if ((members >> client & 1) == 0 || session == nullptr || !session->can_play()) continue;
      cohort_.push_back(client);
      host_of_.push_back(session->id);
      if (std::ranges::find(hosts_, session->id) == hosts_.end()) hosts_.push_back(session->id);
    }
    net::wire::Header header;
    header.mutable_open()->set_round(round_);
    for (const net::HostId host : hosts_) {
      net::Roster::open_round(*core_.roster().find(host), round_);
      core_.send(*core_.roster().find(host), net::make_frame(header));
    }
    asked_.clear();
    for (const std::uint32_t client : cohort_) asked_.push_back({net::Expected::Kind::update, round_, 0, client});
    if (members >= 32)
      for (const std::uint32_t client : cohort_) asked_.push_back({net::Expected::Kind::norms, round_, 0, client});
    core_.answers().expect(asked_);
  }

  void collect() {
    if (asked_.empty()) return;
    const net::Answers answers = core_.finish_answers();
    require(answers.frames.size() == asked_.size() && answers.arrived.size() == asked_.size(), "answers are missing");
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (answers.arrived[i] == 0) continue;
      const net::wire::Header& header = answers.frames[i].header;
      const bool is_norms = asked_[i].kind == net::Expected::Kind::norms;
      require(is_norms ? header.has_norms() : header.has_update(), "an answer is of another kind");
      require((is_norms ? header.norms().client() : header.update().client()) == asked_[i].client, "an answer is of another client");
      require((is_norms ? header.norms().round() : header.update().round()) == asked_[i].round, "an answer is of another round");
    }
    asked_.clear();
  }

  void close_round() {
    if (cohort_.empty()) return;
    collect();
    net::wire::Header header;
    header.mutable_close()->set_round(round_);
    for (const net::HostId host : hosts_) {
      net::Session* session = core_.roster().find(host);
      std::vector<std::uint32_t> clients;
      for (std::size_t i = 0; i < cohort_.size(); ++i)
        if (host_of_[i] == host) clients.push_back(cohort_[i]);
      core_.roster().close_round(round_, clients, session);
      if (session != nullptr) core_.send(*session, net::make_frame(header));
    }
    cohort_.clear();
    host_of_.clear();
    hosts_.clear();
  }

  // ---- connections, as net/server/hub_connections.cpp treats them

  void connect() {
    if (peers_.size() == kMostConnections) drop(peers_.front());
    peers_.push_back(core_.add(std::make_shared<fl::test::MemoryConnection>(io_, std::span<const std::byte>())));
  }

  std::shared_ptr<net::Peer> any_peer() {
    const std::uint32_t choice = steps_.below(kMostConnections);
    return peers_.empty() ? nullptr : peers_[choice % peers_.size()];
  }

  void deliver(const std::shared_ptr<net::Peer>& peer, const net::wire::Header& header) {
    if (peer == nullptr || peer->is_ending()) return;
    const net::FrameLimits limits = core_.limits_for(*peer);
    const net::Bytes payload(header.has_update() || header.has_memory() ? steps_.below(8) : 0);
    net::Frame frame{.header = header, .payload = net::ReceivedBytes(payload)};
    if (frame.payload.size() > limits.payload) return turn_away(*peer, "a payload is too long");
    core_.count_in(frame);
    try {
      net::check_frame_of_peer(frame.header, frame.payload.size());
      if (!frame.header.has_goodbye()) return core_.take(*peer, std::move(frame));
      core_.leave(*peer, "it said goodbye");
      peer->end();
    } catch (const net::ProtocolError& error) {
      turn_away(*peer, error.what());
    }
  }

  void turn_away(net::Peer& peer, const std::string& why) {
    require(!why.empty(), "turned away without a reason");
    if (!peer.is_ending()) {
      core_.count_refusal(why);
      core_.turn_away(peer, why);
    }
    core_.leave(peer, why);
    peer.end();
  }

  void drop(const std::shared_ptr<net::Peer>& peer) {
    if (peer == nullptr) return;
    core_.leave(*peer, "the connection ended");
    peer->end();
    core_.remove(*peer);
    std::erase(peers_, peer);
  }

  // Writes what waits for a peer, which learns its token.
  void write(const std::shared_ptr<net::Peer>& peer) {
    if (peer == nullptr) return;
    for (net::OutgoingFrame frame; peer->pop(frame);) {
      core_.count_out(frame);
      const net::wire::Header header = net::parse_header(std::span(frame.head).subspan(net::kPrefixBytes));
      if (header.has_assignment()) tokens_.push_back(header.assignment().token());
      if (tokens_.size() > 8) tokens_.erase(tokens_.begin());
    }
    if (peer->is_ending()) drop(peer);
  }

  // ---- frames

  net::wire::Header any_header(std::uint32_t choice) {
    net::wire::Header header;
    switch (choice) {
      case 10:
      case 11: *header.mutable_hello() = any_hello(); break;
      case 12: {
        net::wire::Ready& ready = *header.mutable_ready();
        ready.set_run(1 + steps_.below(2));
        ready.set_split(5);
        ready.set_closed_round(any_round());
        break;
      }
      case 13:
      case 14: {
        net::wire::Update& update = *header.mutable_update();
        update.set_round(any_round());
        update.set_phase(steps_.below(8) == 7 ? 1 : 0);
        update.set_client(steps_.below(kClients + 1));
        break;
      }
      case 15: {
        net::wire::Norms& norms = *header.mutable_norms();
        norms.set_round(any_round());
        norms.set_client(steps_.below(kClients + 1));
        for (int i = 0; i < net::kNumNorms; ++i) norms.add_values(i);
        break;
      }
      case 16: {
        header.mutable_memory()->set_round(any_round());
        header.mutable_memory()->set_client(steps_.below(kClients + 1));
        break;
      }
      case 17: header.mutable_closed()->set_round(any_round()); break;
      case 18: header.mutable_heartbeat(); break;
      default: header.mutable_goodbye()->set_is_error(steps_.below(2) == 1); break;
    }
    return header;
  }

  net::wire::Hello any_hello() {
    net::wire::Hello hello;
    hello.set_protocol(net::kProtocol);
    hello.set_build(fl::build_fingerprint());
    const std::uint32_t first = steps_.below(kClients), size = steps_.below(4);
    net::wire::ClientRange& range = *hello.add_clients();
    range.set_first(first);
    range.set_last(size == 3 && first == 5 ? 0xffffffff : first + size);
    if (const std::uint32_t token = steps_.below(12); token < tokens_.size())
      hello.set_token(tokens_[token]);
    else if (token == 11)
      hello.set_token("0123456789abcdef");
    return hello;
  }

  // Returns a round near the one that is open.
  std::uint32_t any_round() {
    const std::uint32_t choice = steps_.below(8);
    return choice == 7 ? 0xffffffff : choice >= 4 ? round_ + choice - 5 : choice == 0 ? 0 : round_;
  }

  // ---- what always holds

  void check() {
    const net::Roster& roster = core_.roster();
    if (has_run_) require(roster.missing().size() + roster.num_hosted() == kClients, "a client is hosted and missing, or neither");
    for (std::uint32_t client = 0; client < kClients; ++client) {
      const net::Session* session = core_.roster().host_of(client);
      if (session == nullptr) continue;
      const auto holds = [client](const net::ClientRange& range) { return range.first <= client && client <= range.last; };
      require(std::ranges::any_of(session->clients, holds), "a client has a host that does not host it");
      require(!session->is_banned() || !session->is_here(), "a peer that was refused too often is here");
      require(session->rounds.size() <= net::kMostBehind + 1, "a peer is too far behind");
    }
    std::set<net::HostId> speaking;
    for (const auto& [id, peer] : core_.peers()) {
      const net::Session* session = core_.roster().find(peer->host());
      if (session != nullptr && session->peer == id) require(speaking.insert(session->id).second, "two peers speak for a session");
    }
    require(core_.counts().refused.size() <= 65, "too many reasons are kept");
    require(core_.peers().size() <= kMostConnections, "a peer was not removed");
  }

  Steps steps_;
  boost::asio::io_context io_{1};
  net::HubCore core_{4096};
  Peers peers_;
  std::vector<std::string> tokens_;
  bool has_run_ = false;
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> cohort_;
  std::vector<net::HostId> host_of_;  // of each of these clients
  std::vector<net::HostId> hosts_;
  std::vector<net::Expected> asked_;
};

void net_session(std::span<const std::byte> bytes) { SessionPlay(bytes).play(); }

const fl::fuzz::Register kNetSession("net_session", net_session);

}  // namespace
