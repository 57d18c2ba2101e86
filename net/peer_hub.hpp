// The server's end of all connections: who is there, which clients each peer hosts, and what they answer.
//
// Connections live on one thread of Boost.Asio, with a coroutine that reads and one that writes for each peer. The thread that plays rounds
// says what it sends and for which answers it waits; everything else that arrives is refused, counted by its reason, and costs nobody else
// anything. A peer that is refused kMostRefusals times is disconnected.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "net/frame.hpp"

namespace fl::net {

using PeerId = std::uint64_t;
inline constexpr PeerId kNobody = 0;
inline constexpr std::uint64_t kMostRefusals = 16;

struct HubOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 = any that is free
};

// A run as peers are told of it.
struct RunOffer {
  std::uint64_t run = 0, split = 0;            // hashes of the resolved scenario and of the rows of every client
  std::shared_ptr<const Bytes> scenario;       // its text
  std::uint32_t num_clients = 0;               // N
  std::uint64_t most_message_bytes = 1 << 20;  // of one client's message
};

// One frame that the server waits for.
struct Expected {
  enum class Kind { update, norms, memory } kind = Kind::update;
  std::uint32_t round = 0, phase = 0, client = 0;
  friend auto operator<=>(const Expected&, const Expected&) = default;
};

// The server was asked to end while it waited.
class FL_API Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

// Bytes on sockets since the hub began, and what was refused.
struct WireCounts {
  std::uint64_t bytes_in = 0, bytes_out = 0;                  // all of it
  std::uint64_t payload_bytes_in = 0, payload_bytes_out = 0;  // of these, payloads
  std::uint64_t frames_in = 0, frames_out = 0;
  std::map<std::string, std::uint64_t> refused;  // by reason
};

class FL_API PeerHub {
 public:
  // Listens from now on. Throws Error where the address cannot be used.
  explicit PeerHub(const HubOptions& options);
  // Says goodbye to everybody.
  ~PeerHub();
  PeerHub(const PeerHub&) = delete;
  PeerHub& operator=(const PeerHub&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  // Offers a run to all peers, those who come later included.
  void begin_run(const RunOffer& offer);
  // Waits until every client is hosted by a peer that is ready. Returns false when goes_on() does.
  [[nodiscard]] bool wait_until_ready(const std::function<bool()>& goes_on);
  // Ends the run: peers wait for the next one.
  void end_run();

  // The peer that hosts a client and is ready; kNobody without one.
  [[nodiscard]] PeerId peer_of(std::uint32_t client) const;
  // Both may be called while the peer leaves: then nothing is sent.
  void send(PeerId peer, OutgoingFrame frame);
  void send_to_all(const OutgoingFrame& frame);

  // From now on these frames are awaited, and no others.
  void expect(std::vector<Expected> frames);
  // Tells a client's peer that its message is refused, and counts it by its reason.
  void refuse(std::uint32_t client, std::uint32_t round, const std::string& why);
  // Waits for all of them and returns them in the order of expect(). Throws Error when the peer of one has left, and Interrupted when
  // goes_on() returns false.
  [[nodiscard]] std::vector<Frame> collect(const std::function<bool()>& goes_on);

  [[nodiscard]] WireCounts counts() const;
  // Why the last peers were turned away or left, newest last; empties the list.
  [[nodiscard]] std::vector<std::string> news();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fl::net
