// The meaning of the frames that peers send, and what they are sent: everything of a hub but its connections.
//
// Frames arrive on the thread of all connections; rounds are played on another one. Every member is called with the mutex.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/server/expected_answers.hpp"
#include "net/server/peer.hpp"
#include "net/server/peer_hub.hpp"
#include "net/server/roster.hpp"

namespace fl::net {

class HubCore {
 public:
  explicit HubCore(std::size_t most_outbox_bytes) : most_outbox_bytes_(most_outbox_bytes) {}

  std::mutex mutex;
  std::condition_variable changed;  // note_change() was called, answers are there, or the connection of a known peer has ended
  bool tells_each_client = false;   // `changed` is told of each client whose answers are there, not only of the last one

  // ---- peers
  std::shared_ptr<Peer> add(std::shared_ptr<Connection> connection);
  // Returns the limits of the next frame of a peer.
  [[nodiscard]] FrameLimits limits_for(const Peer& peer);
  // Acts on a frame. Throws ProtocolError for one that ends the connection.
  void take(Peer& peer, Frame frame);
  // Adds a frame to a peer's outbox. A peer that does not read is disconnected.
  void put(Peer& peer, OutgoingFrame frame);
  // Tells the peer why, and closes the connection when that is written. A peer that may return tries again.
  enum class Return { no, yes };
  void turn_away(Peer& peer, const std::string& why, Return may_return = Return::no);
  // Notes that the peer's session has no connection any more.
  void leave(Peer& peer, const std::string& why);
  void remove(Peer& peer);
  void forget_peers() { peers_.clear(); }
  [[nodiscard]] const std::map<PeerId, std::shared_ptr<Peer>>& peers() const { return peers_; }
  [[nodiscard]] std::vector<PeerFacts> facts();
  // Returns how often a peer has become ready, left or acknowledged a round.
  [[nodiscard]] std::uint64_t num_changes() const { return num_changes_; }

  // ---- the run
  void begin_run(const RunOffer& offer);
  void end_run();
  [[nodiscard]] const RunOffer& offer() const { return offer_; }
  [[nodiscard]] Roster& roster() { return roster_; }
  [[nodiscard]] ExpectedAnswers& answers() { return answers_; }
  // Adds a frame to the open round of a session, and sends it if the peer is there.
  void send(Session& session, OutgoingFrame frame);
  // Sends a frame between two rounds. A peer that connects again is sent the last one of them once more, until a round closes.
  void order(Session& session, OutgoingFrame frame);
  // Counts a reason for which an answer of a client is not used, and tells its peer.
  void tell_of_refusal(std::uint32_t client, std::uint32_t round, const std::string& why);
  // Tells a client's peer that its message is refused. After kMostRefusals of them the peer is turned away.
  void refuse_message(std::uint32_t client, std::uint32_t round, const std::string& why);
  // Returns the clients that are waited for, and whose peer has left and is not back after `patience_s`.
  [[nodiscard]] std::vector<std::uint32_t> lost_clients(double patience_s);
  // Ends the wait for answers. Those that are missing may come late.
  [[nodiscard]] Answers finish_answers();

  // ---- counts
  void count_in(const Frame& frame);
  void count_out(const OutgoingFrame& frame);
  void count_refusal(const std::string& reason);
  void tell(const std::string& news);
  // Tells of a connection that ends before its peer is known. If there are many of them, they are counted instead.
  void tell_of_stranger(const std::string& news);
  void tell_of_untold();
  [[nodiscard]] const WireCounts& counts() const { return counts_; }
  [[nodiscard]] std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  void note_change() {
    ++num_changes_;
    changed.notify_all();
  }
  void greet(Peer& peer, const wire::Hello& hello);
  void require_identity(const Peer& peer, const std::vector<ClientRange>& clients, const std::string& token);
  void assign(Peer& peer, const Session& session);
  void make_ready(Peer& peer, const wire::Ready& ready);
  Session& give_place(Peer& peer, const Session& rival);
  void send_again(Peer& peer, Session& session);
  void take_answer(Peer& peer, const Expected& what, Frame frame);
  void take_late(Session& session);
  void take_closed(Peer& peer, const wire::Closed& closed);
  void refuse(Session& session, const std::string& reason);
  void keep_departed(PeerFacts facts);
  [[nodiscard]] Session* session_of(const Peer& peer);

  std::size_t most_outbox_bytes_;
  PeerId last_id_ = kNobody;
  std::map<PeerId, std::shared_ptr<Peer>> peers_;
  std::map<std::string, PeerId> by_certificate_;  // peers that said hello, by the name that they have proved
  Roster roster_;
  RunOffer offer_;
  ExpectedAnswers answers_;
  WireCounts counts_;
  std::vector<std::string> news_;
  std::uint64_t num_changes_ = 0;
  std::deque<PeerFacts> departed_;
  // Connections that closed before their hello, since `since`.
  struct {
    Clock::time_point since{};
    std::uint64_t told = 0, untold = 0;
  } strangers_;
};

// Returns the frame that ends a session.
[[nodiscard]] OutgoingFrame goodbye_frame(const std::string& reason, bool is_error, bool may_return = false);

}  // namespace fl::net
