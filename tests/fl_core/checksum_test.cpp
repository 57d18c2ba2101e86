#include "fl_core/state/checksum.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fl_core/data/dataset.hpp"

namespace fl {
namespace {

std::uint64_t of(std::string_view text) { return hash64_of(std::as_bytes(std::span<const char>(text.data(), text.size()))); }

std::string counting(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 + 7);
  return text;
}

// Values of the reference program, xxhsum -H1.
TEST(Hash64, AgreesWithTheReference) {
  EXPECT_EQ(of(""), 0xEF46DB3751D8E999ull);
  EXPECT_EQ(of("a"), 0xD24EC4F1A98C6E5Bull);
  EXPECT_EQ(of("abc"), 0x44BC2CF5AD770999ull);
  EXPECT_EQ(of("The quick brown fox jumps over the lazy dog"), 0x0B242D361FDA71BCull);
}

TEST(Hash64, DoesNotDependOnThePieces) {
  for (const std::size_t size : {1u, 31u, 32u, 33u, 64u, 100u, 1000u}) {
    const std::string text = counting(size);
    for (const std::size_t piece : {1u, 3u, 8u, 31u, 32u, 33u, 65u}) {
      Hash64 hash;
      for (std::size_t at = 0; at < size; at += piece) {
        const std::string_view part = std::string_view(text).substr(at, piece);
        hash.add(std::as_bytes(std::span<const char>(part.data(), part.size())));
      }
      EXPECT_EQ(hash.value(), of(text)) << size << " in pieces of " << piece;
    }
  }
}

TEST(Hash64, SeesEveryByteAndTheBordersOfTexts) {
  const std::string text = counting(77);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_NE(of(changed), of(text)) << i;
  }
  EXPECT_NE(Hash64().add_text("ab").add_text("c").value(), Hash64().add_text("a").add_text("bc").value());
}

TEST(Hash64, ShowsSixteenDigits) { EXPECT_EQ(to_hex(0x00ab), "00000000000000ab"); }

TEST(HashOfSplit, TellsRowsFromBorders) {
  using Shards = std::vector<Shard>;
  EXPECT_EQ(hash_of(Shards{{0, 1}, {2}}), hash_of(Shards{{0, 1}, {2}}));
  EXPECT_NE(hash_of(Shards{{0, 1}, {2}}), hash_of(Shards{{0}, {1, 2}}));
  EXPECT_NE(hash_of(Shards{{0, 1}, {2}}), hash_of(Shards{{2}, {0, 1}}));
  EXPECT_NE(hash_of(Shards{{0}}), hash_of(Shards{{0}, {}}));
}

}  // namespace
}  // namespace fl
