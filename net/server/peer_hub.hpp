// The server's side of all connections: the peers, the clients that each of them hosts, and their answers.
//
// All connections run on one thread of Boost.Asio, with a reading and a writing coroutine per peer. The thread that plays rounds sends
// frames and states which answers it expects. All other frames are refused, counted by reason, and cost the other peers nothing. A peer
// with kMostRefusals refused frames is disconnected. A peer whose connection ends can connect again and continue (net/server/roster.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "net/server/expected_answers.hpp"
#include "net/server/roster.hpp"
#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

struct HubOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                             // 0 = any free port
  std::shared_ptr<Transport> transport{};             // null = plain TCP
  std::chrono::milliseconds handshake_limit{10'000};  // for what precedes a peer's first frame
  std::chrono::milliseconds hello_limit{10'000};      // for that frame
  std::chrono::milliseconds ready_limit{600'000};     // from a run's assignment to the peer's answer, whatever it sends meanwhile
  std::size_t most_pending = 512;                     // connections before that frame; the oldest is closed for a newer one
  std::chrono::milliseconds pending_grace{1'000};     // but not before this time
  std::chrono::milliseconds heartbeat_every{5'000};   // without another frame
  std::chrono::milliseconds silence_limit{20'000};    // without a byte of a peer: the connection is closed
  std::chrono::milliseconds farewell_limit{2'000};    // for a peer that is told goodbye to read it
  std::chrono::seconds keeps_rounds{
      600};  // for a peer that has left; after that, only a peer with the last round's state can take its place
  std::size_t most_outbox_bytes = std::size_t{64} << 20;  // that wait for one peer, beside one frame
};

// A run as announced to peers.
struct RunOffer {
  std::uint64_t run = 0, split = 0;            // hashes of the resolved scenario and of the rows of every client
  std::shared_ptr<const Bytes> scenario;       // its text
  std::uint32_t num_clients = 0;               // N
  std::uint64_t most_message_bytes = 1 << 20;  // of one client's message
  std::vector<std::uint64_t> row_hashes{};     // [N] of what each client's rows contain; empty = peers do not compare it
  // For a run that continues: [N] last closed round of each client, empty = 0 for all; and the rounds that peers may not have.
  std::vector<std::uint32_t> closed_rounds{};
  std::vector<KeptRounds> kept_rounds{};
};

// Reports that the server was asked to stop while it waited.
class FL_API Interrupted : public Stopped {
 public:
  Interrupted() : Stopped("interrupted") {}
};

// Bytes on sockets since the hub was created, and refused frames.
struct WireCounts {
  std::uint64_t bytes_in = 0, bytes_out = 0;                  // all bytes
  std::uint64_t payload_bytes_in = 0, payload_bytes_out = 0;  // part of them: payloads
  std::uint64_t frames_in = 0, frames_out = 0;
  std::uint64_t late = 0;                        // answers that arrived after their round or phase
  std::map<std::string, std::uint64_t> refused;  // frames and messages, by reason
};

// A peer that is connected, or that has left.
struct PeerFacts {
  PeerId id = kNobody;
  std::string address{};         // of its end of the connection
  std::string clients{};         // ids, as in 0-4,7; "" before its hello
  bool is_ready = false;         // for the run that is offered
  std::uint32_t last_round = 0;  // of its last answer that was accepted; 0 = none
  std::uint64_t refusals = 0;    // of its frames
  bool has_left = false;
  std::string why{};  // the reason for which it has left
};
inline constexpr std::size_t kMostDeparted = 64;  // peers that have left and are remembered

class FL_API PeerHub {
 public:
  // Starts to listen. Throws Error if the address cannot be used.
  explicit PeerHub(const HubOptions& options);
  // Closes the session of every peer, and tells it the farewell.
  ~PeerHub();
  // Sets what peers are told at the end: why not all is done, or "" (the default) if it is.
  void set_farewell(const std::string& reason);
  PeerHub(const PeerHub&) = delete;
  PeerHub& operator=(const PeerHub&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  // Offers a run to all peers, including those that connect later.
  void begin_run(const RunOffer& offer);
  // Ends the run: peers wait for the next one.
  void end_run();

  // Returns the number of clients that ready peers host.
  [[nodiscard]] std::size_t num_hosted() const;
  // Returns the clients that nobody hosts now.
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
  // Returns those of them that no connected peer has asked for.
  [[nodiscard]] std::vector<std::uint32_t> unclaimed() const;
  // Returns the text of an error about clients whose peers have left and are not back within `patience_s`.
  [[nodiscard]] std::string why_left(const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s) const;
  // Returns the session that hosts each client of a cohort and can play another round, or kNobody. These sessions stay for the whole run,
  // so that a peer that leaves before it is sent a round is sent it when it connects again.
  [[nodiscard]] std::vector<HostId> hosts_of(std::span<const std::uint32_t> cohort);
  // Returns how often a peer has become ready, left or acknowledged a round.
  [[nodiscard]] std::uint64_t num_changes() const;
  // Waits until num_changes() is not `seen` any more, for a short time at most. Throws Interrupted if goes_on() returns false.
  void wait_for_change(std::uint64_t seen, const std::function<bool()>& goes_on);

  // Opens a round for sessions. What they are sent until they acknowledge the round is kept for peers that connect again.
  void open_round(std::uint32_t round, std::span<const HostId> hosts);
  // Sends a frame of the last round that was opened. May be called while the peer is away.
  void send(HostId host, OutgoingFrame frame);
  // Sends an order of sums between two rounds. A peer that is away is sent the last one when it connects again, until a round closes.
  void order(HostId host, OutgoingFrame frame);
  // Notes that the round is closed for its cohort and its sessions. Call it before their Close is sent.
  void close_round(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const HostId> hosts);
  // Returns the last closed round of each client [N].
  [[nodiscard]] std::vector<std::uint32_t> closed_rounds() const;
  // Returns the closed rounds that peers have not acknowledged.
  [[nodiscard]] std::vector<KeptRounds> kept_rounds() const;
  // Returns whether every connected peer, and with `also_away` every other one, has acknowledged all rounds that are closed.
  [[nodiscard]] bool all_acknowledged(bool also_away = false) const;

  // Sets the expected frames (ExpectedAnswers::expect); all others are refused from now on.
  void expect(std::vector<Expected> frames, std::span<const std::uint8_t> required = {}, std::size_t enough = kAllClients);
  // Tells a client's peer that its message is refused, and counts the refusal by its reason.
  void refuse(std::uint32_t client, std::uint32_t round, const std::string& why);
  // Tells a client's peer that its answer is not used, and counts it by its reason. It costs the peer nothing.
  void leave_out(std::uint32_t client, std::uint32_t round, const std::string& why);
  // The limits of a wait in collect().
  struct Wait {
    std::optional<Clock::time_point> until{};  // nothing = until all is there
    double patience_s = 60;                    // for a client whose peer has left; not used with `until`
    bool tolerates_absence = false;            // goes on without such a client instead of throwing
  };
  // Waits for the expected frames and returns those that are there. Throws Error if a client's peer has left and is not back in time, and
  // Interrupted if goes_on() returns false.
  [[nodiscard]] Answers collect(const Wait& wait, const std::function<bool()>& goes_on);

  [[nodiscard]] WireCounts counts() const;
  // Returns the peers that are connected, by id, and behind them the last kMostDeparted that have left, the newest last.
  [[nodiscard]] std::vector<PeerFacts> peers() const;
  // Returns why the last peers were rejected or left, newest last, and empties the list.
  [[nodiscard]] std::vector<std::string> news();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl::net
