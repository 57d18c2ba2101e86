// Bounds the memory that a peer's bytes can make the receiver allocate: 4 times the vectors, 16 times the bytes and 64 KiB, whatever the
// bytes announce.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/codec.hpp"
#include "tests/compressors/codec/random_payload.hpp"
#include "tests/support/most_held.hpp"

namespace fl {
namespace {

using test::any_scope;
using test::fill_payload;

constexpr std::int64_t kAnyway = 64 * 1024;

template <class T>
std::int64_t memory_bound(std::size_t length, std::size_t bytes, bool is_sum) {
  return static_cast<std::int64_t>(4 * length * sizeof(T) * (is_sum ? 2 : 1) + 16 * bytes) + kAnyway;
}

// Decodes into a payload without memory of its own. Returns whether the bytes were accepted.
template <class T>
bool decode_within_bound(std::span<const std::byte> bytes, const Scope& scope, std::size_t length, const MessageLevels& known,
                         std::int64_t* most = nullptr) {
  Payload<T> payload;
  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {length};
  const std::array<Payload<T>*, 1> payloads = {&payload};
  bool accepted = false;
  const std::int64_t held =
      test::most_held([&] { accepted = codec::decode<T>(bytes, scopes, lengths, payloads, std::span(&known, 1)).ok(); });
  if (most != nullptr) *most = held;
  EXPECT_LE(held, memory_bound<T>(length, bytes.size(), payload.rest != nullptr))
      << bytes.size() << " bytes for a vector of " << length << " in " << scope.segments.size() << " segments";
  return accepted;
}

template <class T>
class CodecMemoryTest : public testing::Test {};
using MemoryPrecisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CodecMemoryTest, MemoryPrecisions);

template <class Content>
std::vector<std::byte> channel_of(Content content) {
  std::vector<std::byte> bytes;
  codec::BitWriter writer(bytes);
  writer.put(3, 3);
  writer.put_gamma(1);
  content(writer);
  writer.finish();
  return bytes;
}

void put_table_format(codec::BitWriter& w, std::uint64_t size) {
  w.put(3 | 1 << 2 | 1 << 5, 6);  // another map: a table, with its numbers
  w.put_gamma(size);
  w.put_gamma(1);
}

// Sixteen bytes announced, twice, tables of 65,536 numbers for sixteen segments of one parameter that all send nothing.
TYPED_TEST(CodecMemoryTest, SegmentsThatSendNothingGetNoTables) {
  using T = TypeParam;
  const Scope scope = any_scope(16, 1, false);
  const auto bytes = channel_of([](codec::BitWriter& w) {
    w.put(0 | 6 << 1, 4);  // a sum
    for (int part = 0; part < 2; ++part) {
      w.put(1 | 3 << 1, 4);  // a list of levels
      w.put(0, 1);
      put_table_format(w, 65536);
      for (int s = 0; s < 16; ++s) w.put_gamma(1);
    }
  });
  EXPECT_LE(bytes.size(), 24U);
  EXPECT_TRUE(decode_within_bound<T>(bytes, scope, 16, {}));
}

// A table of slots for 2^16 parts of a model is not worth its memory for a vector of one parameter.
TYPED_TEST(CodecMemoryTest, ModelsOfManyPartsForFewLevels) {
  using T = TypeParam;
  const Scope scope = any_scope(1, 0, false);
  const auto bytes = channel_of([](codec::BitWriter& w) {
    w.put(0 | 3 << 1, 4);
    w.put(1, 1);           // coded
    w.put(1 | 0 << 2, 3);  // sign, without scales
    w.put(8, 4);           // r = 16
    w.put_gamma(1);        // one token
    w.put_gamma(1);
    w.put_gamma(2);
    w.put(std::uint64_t{1} << 31, 64);
  });
  EXPECT_TRUE(decode_within_bound<T>(bytes, scope, 1, {}));
}

// Every beginning of a channel of twelve bits, followed by nothing, zeros, ones, or bits at random.
TYPED_TEST(CodecMemoryTest, EveryHeader) {
  using T = TypeParam;
  std::mt19937_64 random(71);
  for (const std::size_t length : {1, 16, 700}) {
    for (const std::size_t piece : {0, 1, 50}) {
      const Scope scope = any_scope(length, static_cast<std::size_t>(piece), length > 500);
      for (std::uint64_t header = 0; header < 4096; ++header) {
        for (int tail = 0; tail < 4; ++tail) {
          const auto bytes = channel_of([&](codec::BitWriter& w) {
            w.put(header, 12);
            for (std::uint64_t i = 0; tail > 0 && i < 1 + header % 40; ++i) {
              w.put(tail == 1 ? 0 : tail == 2 ? 0xffffffff : random() >> (random() % 32 + 32), 32);
            }
          });
          (void)decode_within_bound<T>(bytes, scope, length, {});
        }
      }
    }
  }
}

TYPED_TEST(CodecMemoryTest, DamagedMessagesOfEveryKind) {
  using T = TypeParam;
  std::mt19937_64 random(72);
  std::size_t accepted = 0, refused = 0;
  test::for_each_kind<T>(90, 73, [&](const Payload<T>& message, const Scope& scope) {
    const MessageLevels known = test::known_of(message.level_format);
    const codec::Channel<T> channel{&message, &scope, {}, known};
    std::vector<std::byte> bytes;
    codec::encode<T>(std::span(&channel, 1), bytes);
    EXPECT_TRUE(decode_within_bound<T>(bytes, scope, message.length, known));
    for (int trial = 0; trial < 12; ++trial) {
      auto damaged = bytes;
      for (int flips = 1 + trial % 4; flips > 0; --flips) {
        const std::uint64_t bit = random() % (8 * std::min<std::size_t>(damaged.size(), trial < 8 ? 8 : damaged.size()));
        damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      }
      (decode_within_bound<T>(damaged, scope, message.length, known) ? accepted : refused) += 1;
    }
  });
  EXPECT_GT(accepted, 500U);
  EXPECT_GT(refused, 500U);
}

// Long messages of every kind that are right take no more either, and short ones of long vectors take little.
TYPED_TEST(CodecMemoryTest, LongMessagesStayWithinTheBound) {
  using T = TypeParam;
  std::mt19937_64 random(74);
  constexpr std::size_t kLength = 60'000;
  Payload<T> message;
  for (const std::size_t piece : {std::size_t{0}, std::size_t{1}, std::size_t{64}}) {
    const Scope scope = any_scope(kLength, piece, false);
    for (const double share : {0.001, 0.4, 0.9}) {
      for (const LevelFormat& format : test::level_formats()) {
        if (piece == 1 && scales_per_segment(format) > 5) continue;  // gigabytes of the sender's
        fill_payload(message, scope, kLength, Positions::list, WireValue::levels, format, share, random);
        const MessageLevels known = test::known_of(format);
        const codec::Channel<T> channel{&message, &scope, {}, known};
        std::vector<std::byte> bytes;
        codec::encode<T>(std::span(&channel, 1), bytes);
        std::int64_t most = 0;
        EXPECT_TRUE(decode_within_bound<T>(bytes, scope, kLength, known, &most));
        const bool is_short = share < 0.01 && piece == 0;
        EXPECT_LE(most, is_short ? kAnyway + 64 * static_cast<std::int64_t>(bytes.size()) : most);
      }
    }
  }
}

}  // namespace
}  // namespace fl
