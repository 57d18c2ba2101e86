// The sessions of peers, and the clients that each of them hosts.
//
// A session outlives its connection: a peer that connects again names it by its token, takes its clients back, and is sent again what it
// missed. The frames of a round are kept until the peer has acknowledged the round. All members are called with the hub's mutex.
//
// A hello alone holds no place: while the peer of a session has never been ready, others may ask for its clients too. They are rivals, and
// the first one that is ready has the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/server/kept_rounds.hpp"
#include "net/server/peers.hpp"
#include "net/server/presence.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

using PeerId = std::uint64_t;
inline constexpr std::uint64_t kMostRefusals = 16;
// Rounds that a connected peer has not acknowledged. A peer with this number of them takes part in no further round.
inline constexpr std::size_t kMostBehind = 4;
// Peers that wait for the same client beside the one that has its place and is not ready.
inline constexpr std::size_t kMostRivals = 16;

// Reports that another peer has a client now. The peer may ask again.
class FL_API PlaceTaken : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

struct FL_API Session {
  HostId id = kNobody;
  std::string token, next_token;  // `next_token` of a peer without the token that has not proved its state yet
  std::vector<ClientRange> clients;
  PeerId peer = kNobody;  // its connection
  bool is_ready = false;  // the peer has proved the state of its clients
  bool was_ready = false;
  // The claim of its peer to the place: nothing but a hello; a proof, because it has been ready or has the token of a peer that was; or
  // none, while it waits for clients of another session.
  enum class Hold { hello, proof, rival } hold = Hold::hello;
  bool is_counted_on = false;  // the run has asked for a host of its clients and was given this session
  struct {
    Clock::time_point at{};
    std::string why{};
  } left;                          // where no peer is connected
  std::deque<PlayedRound> rounds;  // not acknowledged, ascending
  std::uint32_t closed = 0;        // the last closed round with clients of the session
  std::uint32_t last_round = 0;    // of the last answer that was accepted
  std::uint64_t refusals = 0;
  struct {
    std::uint64_t owed = 0;      // answers that were not there in time; they still arrive
    std::uint64_t repeated = 0;  // answers that arrive once more, because their round was sent again
  } late;

  [[nodiscard]] bool is_rival() const { return hold == Hold::rival; }
  [[nodiscard]] bool is_here() const { return peer != kNobody && is_ready; }
  // Returns whether the peer can take part in another round.
  [[nodiscard]] bool can_play() const { return is_here() && rounds.size() < kMostBehind; }
  // Returns whether the run has something that only a peer of exactly these clients can go on with.
  [[nodiscard]] bool has_part() const { return is_counted_on || closed > 0 || !rounds.empty(); }
  [[nodiscard]] bool is_banned() const { return refusals >= kMostRefusals; }
  // Forgets the closed rounds until `round`, which the peer has closed too.
  void acknowledge(std::uint32_t round);
  // Returns whether a peer whose state is of `round` can go on from there with the rounds that are kept.
  [[nodiscard]] bool can_continue_from(std::uint32_t round) const;
};

class FL_API Roster {
 public:
  // Forgets the sessions of peers that have left, and the rounds of all others. `closed` [N] is the last closed round of each client, from
  // a checkpoint, and empty = 0 for all. `kept` is from there, too: its rounds are sent to peers that come with the state before them.
  void begin_run(std::uint32_t num_clients, std::span<const std::uint32_t> closed, std::span<const KeptRounds> kept = {});

  // Returns the session that a peer continues, a new one, or that of a rival. Throws PlaceTaken if a client is hosted by another peer that
  // has been ready, ProtocolError for clients that do not fit. A connection of the same session that is still open is returned in
  // `replaced`.
  Session& admit(PeerId peer, const std::vector<ClientRange>& clients, const std::string& token, PeerId& replaced);
  // Returns the session whose rounds a peer goes on with when it is ready: for a rival the one whose place it would take.
  [[nodiscard]] const Session& place_for(const Session& session);
  // Gives a rival that is ready its place, and returns the session. The peers that had it, and were not ready, are added to `displaced`.
  // Throws PlaceTaken if another one was ready first.
  Session& take_place(const Session& rival, std::vector<PeerId>& displaced);
  // Returns the rivals that wait for one of the clients.
  [[nodiscard]] std::vector<PeerId> rivals_for(const std::vector<ClientRange>& clients) const;
  // Registers the peer as the host of its clients.
  void make_ready(Session& session);
  // Notes that the session's connection has ended. Forgets a session that has no part in the run yet.
  void leave(Session& session, const std::string& why);

  // Forgets the frames that are kept for peers that have left before a time, so that they do not take memory for ever.
  void forget_rounds_of_left(Clock::time_point before);

  // Returns the session, or null.
  [[nodiscard]] Session* find(HostId id);
  // Returns the session that hosts a client, even if its peer has left; null = none.
  [[nodiscard]] Session* host_of(std::uint32_t client);
  [[nodiscard]] std::size_t num_hosted() const { return num_hosted_; }
  // Returns the clients that no peer hosts now.
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
  // Returns those of them that no connected peer has asked for.
  [[nodiscard]] std::vector<std::uint32_t> unclaimed() const;

  // Opens a round for a session.
  static void open_round(Session& session, std::uint32_t round);
  // Closes the round for these clients, and for the session that hosts them; null = it is gone.
  void close_round(std::uint32_t round, std::span<const std::uint32_t> clients, Session* session);
  // Returns whether every connected peer, and with `also_away` every other one, has acknowledged all rounds that are closed.
  [[nodiscard]] bool all_acknowledged(bool also_away = false) const;
  [[nodiscard]] std::span<const std::uint32_t> closed_rounds() const { return closed_; }
  // Returns the closed rounds that peers have not acknowledged, whether they are connected or not.
  [[nodiscard]] std::vector<KeptRounds> kept_rounds() const;
  // Keeps the last order of sums that a session is sent, until a round closes. order_of() returns null if there is none.
  void keep_order(const Session& session, OutgoingFrame frame) { orders_[session.id] = std::move(frame); }
  [[nodiscard]] const OutgoingFrame* order_of(const Session& session) const {
    const auto found = orders_.find(session.id);
    return found == orders_.end() ? nullptr : &found->second;
  }

 private:
  // A session that has one of some clients, and the first of these.
  struct Owner {
    Session* session = nullptr;
    std::uint32_t shared = 0;
  };
  [[nodiscard]] std::vector<Owner> owners_of(const std::vector<ClientRange>& clients);
  Session& readmit(Session& session, PeerId peer, const std::vector<ClientRange>& clients, PeerId& replaced);
  Session& add(const std::vector<ClientRange>& clients);
  Session& add_rival(const std::vector<ClientRange>& clients);
  void restore(const KeptRounds& kept);
  void forget(Session& session);
  void count_hosted(const Session& session, bool is_here);
  [[nodiscard]] std::uint32_t last_closed(const std::vector<ClientRange>& clients) const;

  HostId last_id_ = kNobody;
  std::map<HostId, Session> sessions_;
  std::map<std::string, HostId> by_token_;
  std::map<std::uint32_t, std::pair<std::uint32_t, HostId>> by_last_;  // {first, host} by last client; ranges do not overlap
  std::vector<HostId> host_of_;                                        // [N] of sessions that were ready
  std::vector<std::uint32_t> closed_;                                  // [N] last closed round with the client
  std::map<HostId, OutgoingFrame> orders_;                             // of sums, since the last round
  std::size_t num_hosted_ = 0;                                         // clients of peers that are here
};

}  // namespace fl::net
