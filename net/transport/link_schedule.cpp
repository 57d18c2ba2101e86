#include "net/transport/link_schedule.hpp"

#include <algorithm>

namespace fl::net {

namespace {

// Separates these draws from those of runs, whose purposes are small numbers.
constexpr std::uint64_t kEmulationSalt = 0x6e65745f656d756c;
constexpr std::size_t kMostPassage = 16384;
enum Word { fault_word, jitter_word, bit_word };

// Returns the rate of a direction in bit/s: what a peer sends goes up, and what a server sends goes down.
double rate_of(const NetworkConditions& conditions, const LinkName& name) {
  const bool is_up = (name.direction == 0) != (name.place == kServerPlace);
  const double rate = is_up ? conditions.up : conditions.down;
  return rate > 0 ? rate : conditions.bandwidth;
}

LinkSchedule::Time seconds(double s) { return std::chrono::duration_cast<LinkSchedule::Time>(std::chrono::duration<double>(s)); }

}  // namespace

LinkSchedule::LinkSchedule(const NetworkConditions& conditions, const LinkName& name)
    : conditions_(conditions),
      draws_(hash64(conditions.seed, kEmulationSalt), name.place, name.connection, 0, name.direction),
      bucket_(rate_of(conditions, name) / 8, conditions.burst_bytes) {}

double LinkSchedule::uniform(std::uint64_t packet, int word) const {
  return draws_.uniform<double>(4 * packet + static_cast<std::uint64_t>(word));
}

bool LinkSchedule::has_event(std::uint64_t packet) const {
  return uniform(packet, fault_word) < conditions_.reset + conditions_.half_open + conditions_.stall + conditions_.flip;
}

LinkSchedule::Passage LinkSchedule::pass(std::size_t size, Time now) {
  const std::uint64_t packet = offset_ / kPacketBytes;
  Passage passage;
  Time pause{0};
  if (offset_ % kPacketBytes == 0 && has_event(packet)) {
    const double u = uniform(packet, fault_word);
    if (u < conditions_.reset)
      passage.fault = Fault::reset;
    else if (u < conditions_.reset + conditions_.half_open)
      passage.fault = Fault::half_open;
    else if (u < conditions_.reset + conditions_.half_open + conditions_.stall)
      pause = seconds(conditions_.stall_s);
    else
      passage.flipped_bit = static_cast<int>(8 * uniform(packet, bit_word));
    if (passage.fault != Fault::none) return passage;
  }
  // Up to the next packet that has an event of its own.
  const std::size_t most = std::min(size, kMostPassage);
  for (std::uint64_t next = packet + 1; passage.bytes < most; ++next) {
    passage.bytes = std::min(most, static_cast<std::size_t>(next * kPacketBytes - offset_));
    if (passage.bytes < most && has_event(next)) break;
  }
  last_departure_ = std::max(last_departure_, bucket_.take(passage.bytes, now) + pause);
  passage.departs = last_departure_;
  const Time way = seconds(conditions_.latency_s + conditions_.jitter_s * uniform(packet, jitter_word));
  last_arrival_ = std::max(last_arrival_, passage.departs + way);
  passage.arrives = last_arrival_;
  offset_ += passage.bytes;
  return passage;
}

}  // namespace fl::net
