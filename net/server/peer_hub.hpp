// The server's side of all connections, behind the interface of its peers (net/server/peers.hpp).
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
#include <span>
#include <string>
#include <vector>

#include "net/server/peers.hpp"
#include "net/server/roster.hpp"
#include "net/transport/connection.hpp"

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

class FL_API PeerHub final : public Peers {
 public:
  // Starts to listen. Throws Error if the address cannot be used.
  explicit PeerHub(const HubOptions& options);
  // Closes the session of every peer, and tells it the farewell.
  ~PeerHub() override;
  // Sets what peers are told at the end: why not all is done, or "" (the default) if it is.
  void set_farewell(const std::string& reason);
  PeerHub(const PeerHub&) = delete;
  PeerHub& operator=(const PeerHub&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  void set_run(const RunOffer* offer) override;
  Attendance wait_for_change(std::uint64_t seen, const std::function<bool()>& goes_on) override;
  [[nodiscard]] std::vector<MissingClient> missing() const override;
  // These sessions stay for the whole run, so that a peer that leaves before it is sent a round is sent it when it connects again.
  [[nodiscard]] std::vector<HostId> hosts_of(std::span<const std::uint32_t> clients) override;
  // Keeps frames from a round's opening on until the peer acknowledges the round, and sends them again when it connects again.
  void send(Sending sending) override;
  void expect(std::vector<Expected> frames, std::span<const std::uint8_t> required = {}) override;
  [[nodiscard]] Answers collect(const Wait& wait, const std::function<bool()>& goes_on) override;
  void reject(std::uint32_t client, std::uint32_t round, const std::string& why, Penalty penalty) override;
  [[nodiscard]] ClosedRounds closed_rounds() const override;
  [[nodiscard]] bool all_acknowledged(bool also_away = false) const override;

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
