// Times and faults of one direction of an emulated connection, without sockets and without a clock of its own.
//
// The stream is cut into packets of kPacketBytes bytes. Faults and jitter of packet p are a function of (seed, place, connection,
// direction, p), so they occur at the same bytes in each repetition, whatever the timing is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "fl_core/random/random.hpp"
#include "net/transport/network_conditions.hpp"
#include "net/transport/token_bucket.hpp"

namespace fl::net {

inline constexpr std::uint32_t kServerPlace = 0xffffffff;

// The numbers that tell an emulated direction from others of the same seed.
struct LinkName {
  std::uint32_t place = 0;       // of the process: the first client of a peer, kServerPlace for a server
  std::uint32_t connection = 0;  // counted by the process, from 0
  std::uint32_t direction = 0;   // 0 = this process sends, 1 = it receives
};

class FL_API LinkSchedule {
 public:
  using Time = TokenBucket::Time;

  LinkSchedule(const NetworkConditions& conditions, const LinkName& name);

  enum class Fault { none, reset, half_open };
  // The next bytes of the stream, which pass together.
  struct Passage {
    std::size_t bytes = 0;  // 0 where a fault ends the connection
    Time departs{0};        // when the bandwidth allows them to leave
    Time arrives{0};        // never before the bytes in front of them
    Fault fault = Fault::none;
    int flipped_bit = -1;  // of the first byte, which changes on the way; -1 = none
  };
  // Returns the passage of up to `size` (at least 1) further bytes, which are ready to leave at `now`.
  [[nodiscard]] Passage pass(std::size_t size, Time now);

 private:
  [[nodiscard]] double uniform(std::uint64_t packet, int word) const;
  [[nodiscard]] bool has_event(std::uint64_t packet) const;

  NetworkConditions conditions_;
  RandomStream draws_;
  TokenBucket bucket_;
  std::uint64_t offset_ = 0;  // bytes that have passed
  Time last_departure_{0}, last_arrival_{0};
};

}  // namespace fl::net
