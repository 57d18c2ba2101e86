#include "fl_core/state/wide_hash.hpp"

#include <algorithm>
#include <cstring>

#include "fl_core/state/checksum.hpp"

namespace fl {

WideHash::WideHash() {
  std::uint32_t lane = 0x9E3779B9u;  // so that blocks of zeros move each lane, each on a way of its own
  for (std::uint32_t& one : lane_) one = lane += 0x7F4A7C15u;
}

// Lanes do not meet, so that the compiler takes as many at a time as a register holds.
void WideHash::mix_blocks(const std::byte* from, std::size_t num_blocks) {
  constexpr std::uint32_t kOdd = 0x9E3779B1u;
  std::array<std::uint32_t, kLanes> lane = lane_;  // a copy of its own, which stays in registers
  for (std::size_t block = 0; block < num_blocks; ++block, from += kBlock)
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::uint32_t word;
      std::memcpy(&word, from + i * sizeof word, sizeof word);
      const std::uint32_t mixed = (lane[i] ^ word) * kOdd;
      lane[i] = mixed ^ (mixed >> 15);
    }
  lane_ = lane;
}

WideHash& WideHash::add(std::span<const std::byte> bytes) {
  num_bytes_ += bytes.size();
  if (num_waiting_ > 0) {
    const std::size_t taken = std::min(kBlock - num_waiting_, bytes.size());
    std::copy_n(bytes.begin(), taken, waiting_.begin() + static_cast<std::ptrdiff_t>(num_waiting_));
    num_waiting_ += taken;
    bytes = bytes.subspan(taken);
    if (num_waiting_ < kBlock) return *this;
    mix_blocks(waiting_.data(), 1);
    num_waiting_ = 0;
  }
  const std::size_t num_blocks = bytes.size() / kBlock;
  mix_blocks(bytes.data(), num_blocks);
  bytes = bytes.subspan(num_blocks * kBlock);
  std::copy(bytes.begin(), bytes.end(), waiting_.begin());
  num_waiting_ = bytes.size();
  return *this;
}

std::uint64_t WideHash::value() const {
  Hash64 all;
  if (num_bytes_ >= kBlock) all.add(std::as_bytes(std::span(lane_)));
  return all.add(std::span(waiting_).first(num_waiting_)).add_value(num_bytes_).value();
}

}  // namespace fl
