#include "fl_core/state/wide_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "fl_core/state/checksum.hpp"

namespace fl {
namespace {

std::vector<std::byte> drawn_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

std::uint64_t wide_hash_of(std::span<const std::byte> bytes) { return WideHash().add(bytes).value(); }

// The definition, word by word.
std::uint64_t plain_wide_hash(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> lane(64);
  for (std::uint32_t i = 0; i < 64; ++i) lane[i] = 0x9E3779B9u + (i + 1) * 0x7F4A7C15u;
  const std::size_t whole = bytes.size() / 256 * 256;
  for (std::size_t at = 0; at < whole; at += 4) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < 4; ++b) word |= static_cast<std::uint32_t>(bytes[at + b]) << (8 * b);
    std::uint32_t& one = lane[at / 4 % 64];
    one = (one ^ word) * 0x9E3779B1u;
    one ^= one >> 15;
  }
  Hash64 all;
  if (whole > 0) all.add(std::as_bytes(std::span(lane)));
  return all.add(bytes.subspan(whole)).add_value(std::uint64_t{bytes.size()}).value();
}

TEST(WideHash, IsItsDefinitionHoweverTheBytesArrive) {
  for (const std::size_t size : {0, 1, 255, 256, 257, 511, 512, 1000, 4096, 100003}) {
    const std::vector<std::byte> bytes = drawn_bytes(size, static_cast<std::uint32_t>(size));
    const std::uint64_t expected = plain_wide_hash(bytes);
    EXPECT_EQ(wide_hash_of(bytes), expected) << size;
    std::mt19937 random(3);
    for (int way = 0; way < 20; ++way) {
      WideHash hash;
      std::span<const std::byte> rest = bytes;
      while (!rest.empty()) {
        const std::size_t piece = std::min<std::size_t>(rest.size(), random() % (way < 10 ? 40 : 900));
        hash.add(rest.first(piece));
        rest = rest.subspan(piece);
      }
      ASSERT_EQ(hash.value(), expected) << size << ", way " << way;
    }
  }
}

// Each change within a word changes its lane, whatever follows; the lengths of runs of zeros differ too.
TEST(WideHash, FindsEveryChangeOfAByte) {
  for (const bool is_drawn : {true, false}) {
    std::vector<std::byte> bytes = is_drawn ? drawn_bytes(1300, 7) : std::vector<std::byte>(1300);
    const std::uint64_t whole = wide_hash_of(bytes);
    std::set<std::uint64_t> seen = {whole};
    for (std::byte& b : bytes) {
      const std::byte before = b;
      for (int bit = 0; bit < 8; ++bit) {
        b = before ^ static_cast<std::byte>(1 << bit);
        EXPECT_TRUE(seen.insert(wide_hash_of(bytes)).second);
      }
      b = before;
    }
  }
  std::set<std::uint64_t> of_zeros;
  for (std::size_t size = 0; size < 2000; ++size) EXPECT_TRUE(of_zeros.insert(wide_hash_of(std::vector<std::byte>(size))).second) << size;
}

// Records that a disk gives in place of each other, or whose blocks changed places.
TEST(WideHash, TellsTheOrderOfBlocks) {
  const std::vector<std::byte> bytes = drawn_bytes(16 * 256, 9);
  const std::uint64_t whole = wide_hash_of(bytes);
  for (std::size_t a = 0; a < 16; ++a)
    for (std::size_t b = a + 1; b < 16; ++b) {
      std::vector<std::byte> other = bytes;
      std::swap_ranges(other.begin() + static_cast<std::ptrdiff_t>(a * 256), other.begin() + static_cast<std::ptrdiff_t>((a + 1) * 256),
                       other.begin() + static_cast<std::ptrdiff_t>(b * 256));
      EXPECT_NE(wide_hash_of(other), whole) << a << " and " << b;
    }
}

}  // namespace
}  // namespace fl
