#include "fl_core/state/checksum.hpp"

#include <algorithm>

namespace fl {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ull;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

template <class Word>
std::uint64_t read(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(Word));
  return word;
}

std::uint64_t mix_lane(std::uint64_t lane, std::uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

std::uint64_t merge_lane(std::uint64_t hash, std::uint64_t lane) { return (hash ^ mix_lane(0, lane)) * kPrime1 + kPrime4; }

}  // namespace

// The lanes stay in registers over all blocks: bytes may alias the object's own members, which would be written after each block.
std::size_t Hash64::mix_blocks(std::span<const std::byte> bytes) {
  std::uint64_t a = lane_[0], b = lane_[1], c = lane_[2], d = lane_[3];
  std::size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    const std::byte* block = bytes.data() + at;
    a = mix_lane(a, read<std::uint64_t>(block));
    b = mix_lane(b, read<std::uint64_t>(block + 8));
    c = mix_lane(c, read<std::uint64_t>(block + 16));
    d = mix_lane(d, read<std::uint64_t>(block + 24));
  }
  lane_ = {a, b, c, d};
  return at;
}

Hash64& Hash64::add(std::span<const std::byte> bytes) {
  num_bytes_ += bytes.size();
  if (num_waiting_ > 0) {
    const std::size_t taken = std::min(kBlock - num_waiting_, bytes.size());
    std::copy_n(bytes.begin(), taken, waiting_.begin() + static_cast<std::ptrdiff_t>(num_waiting_));
    num_waiting_ += taken;
    bytes = bytes.subspan(taken);
    if (num_waiting_ < kBlock) return *this;
    static_cast<void>(mix_blocks(waiting_));
    num_waiting_ = 0;
  }
  bytes = bytes.subspan(mix_blocks(bytes));
  std::copy(bytes.begin(), bytes.end(), waiting_.begin());
  num_waiting_ = bytes.size();
  return *this;
}

Hash64& Hash64::add_text(std::string_view text) {
  add_value(static_cast<std::uint64_t>(text.size()));
  return add(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

std::uint64_t Hash64::value() const {
  std::uint64_t hash = kPrime5;
  if (num_bytes_ >= kBlock) {
    hash = std::rotl(lane_[0], 1) + std::rotl(lane_[1], 7) + std::rotl(lane_[2], 12) + std::rotl(lane_[3], 18);
    for (const std::uint64_t lane : lane_) hash = merge_lane(hash, lane);
  }
  hash += num_bytes_;
  const std::byte* next = waiting_.data();
  const std::byte* end = next + num_waiting_;
  for (; end - next >= 8; next += 8) hash = std::rotl(hash ^ mix_lane(0, read<std::uint64_t>(next)), 27) * kPrime1 + kPrime4;
  for (; end - next >= 4; next += 4) hash = std::rotl(hash ^ read<std::uint32_t>(next) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; next != end; ++next) hash = std::rotl(hash ^ read<std::uint8_t>(next) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::uint64_t hash64_of(std::span<const std::byte> bytes) { return Hash64().add(bytes).value(); }

std::string to_hex(std::uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = kDigits[hash >> (4 * i) & 15];
  return text;
}

}  // namespace fl
