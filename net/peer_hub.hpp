// The server's side of all connections: the peers, the clients that each of them hosts, and their answers.
//
// All connections run on one thread of Boost.Asio, with a reading and a writing coroutine per peer. The thread that plays rounds sends
// frames and states which answers it expects. All other frames are refused, counted by reason, and cost the other peers nothing. A peer
// with kMostRefusals refused frames is disconnected.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fl_core/config/error.hpp"
#include "net/connection.hpp"
#include "net/frame.hpp"

namespace fl::net {

using PeerId = std::uint64_t;
inline constexpr PeerId kNobody = 0;
inline constexpr std::uint64_t kMostRefusals = 16;

struct HubOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                             // 0 = any free port
  std::shared_ptr<Transport> transport{};             // null = plain TCP
  std::chrono::milliseconds handshake_limit{10'000};  // for what precedes a peer's first frame
};

// A run as announced to peers.
struct RunOffer {
  std::uint64_t run = 0, split = 0;            // hashes of the resolved scenario and of the rows of every client
  std::shared_ptr<const Bytes> scenario;       // its text
  std::uint32_t num_clients = 0;               // N
  std::uint64_t most_message_bytes = 1 << 20;  // of one client's message
};

// One frame that the server expects.
struct Expected {
  enum class Kind { update, norms, memory } kind = Kind::update;
  std::uint32_t round = 0, phase = 0, client = 0;
  friend auto operator<=>(const Expected&, const Expected&) = default;
};

// Reports that the server was asked to stop while it waited.
class FL_API Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

// Bytes on sockets since the hub was created, and refused frames.
struct WireCounts {
  std::uint64_t bytes_in = 0, bytes_out = 0;                  // all bytes
  std::uint64_t payload_bytes_in = 0, payload_bytes_out = 0;  // part of them: payloads
  std::uint64_t frames_in = 0, frames_out = 0;
  std::map<std::string, std::uint64_t> refused;  // by reason
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
  // Closes the session of every peer.
  ~PeerHub();
  PeerHub(const PeerHub&) = delete;
  PeerHub& operator=(const PeerHub&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  // Offers a run to all peers, including those that connect later.
  void begin_run(const RunOffer& offer);
  // Waits until every client is hosted by a peer that is ready. Returns false if goes_on() returns false.
  [[nodiscard]] bool wait_until_ready(const std::function<bool()>& goes_on);
  // Ends the run: peers wait for the next one.
  void end_run();

  // Returns the ready peer that hosts a client, or kNobody.
  [[nodiscard]] PeerId peer_of(std::uint32_t client) const;
  // Both may be called while the peer disconnects: then nothing is sent.
  void send(PeerId peer, OutgoingFrame frame);
  void send_to_all(const OutgoingFrame& frame);

  // Sets the expected frames; all others are refused from now on.
  void expect(std::vector<Expected> frames);
  // Tells a client's peer that its message is refused, and counts the refusal by its reason.
  void refuse(std::uint32_t client, std::uint32_t round, const std::string& why);
  // Waits for all expected frames and returns them in the order of expect(). Throws Error if a peer of one of them has left, and
  // Interrupted if goes_on() returns false.
  [[nodiscard]] std::vector<Frame> collect(const std::function<bool()>& goes_on);

  [[nodiscard]] WireCounts counts() const;
  // Returns the peers that are connected, by id, and behind them the last kMostDeparted that have left, the newest last.
  [[nodiscard]] std::vector<PeerFacts> peers() const;
  // Returns why the last peers were rejected or left, newest last, and empties the list.
  [[nodiscard]] std::vector<std::string> news();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::thread thread_;  // of all connections
};

}  // namespace fl::net
