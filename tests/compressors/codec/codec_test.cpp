#include "compressors/codec/codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/finite.hpp"
#include "tests/compressors/codec/random_payload.hpp"

namespace fl {
namespace {

using test::any_scope;
using test::fill_payload;

template <class T>
std::vector<std::byte> encoded(const Payload<T>& message, const Scope& scope, const MessageLevels& known = {}) {
  const std::array<codec::Channel<T>, 1> channels = {codec::Channel<T>{&message, &scope, {}, known}};
  std::vector<std::byte> bytes;
  codec::encode<T>(channels, bytes);
  EXPECT_EQ(codec::encoded_bits<T>(channels), 8 * bytes.size());
  return bytes;
}

template <class T>
Result<std::uint64_t> decoded(std::span<const std::byte> bytes, const Scope& scope, std::size_t length, Payload<T>& out,
                              const MessageLevels& known = {}) {
  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {length};
  const std::array<Payload<T>*, 1> payloads = {&out};
  return codec::decode<T>(bytes, scopes, lengths, payloads, std::span(&known, 1));
}

template <class B>
void expect_same_bytes(const Buffer<B>& a, const Buffer<B>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(B)) == 0) << what;
}

// The rows of scales that travel: those of segments that send anything.
template <class T>
Buffer<T> sent_scales(const Payload<T>& message) {
  const std::size_t n = message.values == WireValue::levels ? scales_per_segment(message.level_format) : 0;
  if (n == 0) return {};
  Buffer<T> sent(n * (message.num_sent > 0 ? std::max<std::size_t>(message.scale.size(), n) / n : 0));
  std::size_t rows = 0;
  for (std::size_t s = 0; s < message.scale.size() / n; ++s) {
    const bool is_listed = message.positions == Positions::list && message.scale.size() == message.counts.size() * n;
    if (message.num_sent == 0 || (is_listed && message.counts[s] == 0)) continue;
    std::copy_n(message.scale.data() + s * n, n, sent.data() + rows++ * n);
  }
  sent.resize_discard(rows * n);
  return sent;
}

template <class T>
void expect_same(const Payload<T>& a, const Payload<T>& b) {
  EXPECT_EQ(a.silent, b.silent);
  ASSERT_EQ(a.num_sent, b.num_sent);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.length, b.length);
  expect_same_bytes(a.counts, b.counts, "counts");
  expect_same_bytes(a.index, b.index, "index");
  expect_same_bytes(a.value, b.value, "value");
  expect_same_bytes(a.level_bytes, b.level_bytes, "levels");
  expect_same_bytes(sent_scales(a), sent_scales(b), "scale");
  expect_same_bytes(a.excluded, b.excluded, "excluded");
  if (a.values != WireValue::levels) return;
  EXPECT_EQ(a.level_format.map, b.level_format.map);
  EXPECT_EQ(a.level_format.min_level, b.level_format.min_level);
  EXPECT_EQ(a.level_format.bits, b.level_format.bits);
  EXPECT_EQ(a.level_format.min_exponent, b.level_format.min_exponent);
  EXPECT_EQ(a.level_format.unit, b.level_format.unit);
  EXPECT_EQ(a.level_format.has_scale, b.level_format.has_scale);
  EXPECT_EQ(a.level_format.table_size, b.level_format.table_size);
  EXPECT_EQ(a.level_width, b.level_width);
}

template <class T>
class CodecTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CodecTest, Precisions);

TYPED_TEST(CodecTest, EveryKindOfMessageComesBackBitForBit) {
  using T = TypeParam;
  Payload<T> back;
  for (const std::size_t length : {0U, 1U, 2U, 63U, 64U, 65U, 1000U}) {
    test::for_each_kind<T>(length, length + 1, [&](const Payload<T>& message, const Scope& scope) {
      const MessageLevels known = test::known_of(message.level_format);
      const auto bytes = encoded(message, scope, known);
      const auto result = decoded<T>(bytes, scope, message.length, back, known);
      ASSERT_TRUE(result.ok()) << result.error().reason;
      EXPECT_EQ(result.value(), 8 * bytes.size());
      expect_same(message, back);
      EXPECT_EQ(encoded(back, scope, known), bytes);
    });
  }
}

TYPED_TEST(CodecTest, LongMessagesComeBack) {
  using T = TypeParam;
  std::mt19937_64 random(3);
  Payload<T> message, back;
  for (const std::size_t piece : {0U, 512U}) {
    const Scope scope = any_scope(100'000, piece, true);
    for (const double share : {1e-4, 1e-3, 1e-2, 0.1, 0.5}) {
      for (const LevelFormat& format : test::level_formats()) {
        fill_payload(message, scope, scope.P, Positions::list, WireValue::levels, format, share, random);
        const MessageLevels known = test::known_of(format);
        const auto bytes = encoded(message, scope, known);
        const auto result = decoded<T>(bytes, scope, scope.P, back, known);
        ASSERT_TRUE(result.ok()) << result.error().reason;
        expect_same(message, back);
      }
    }
  }
}

TYPED_TEST(CodecTest, SeveralChannelsSomeOfThemSilent) {
  using T = TypeParam;
  std::mt19937_64 random(5);
  const Scope scope = any_scope(300, 50, true), other = any_scope(90, 0, false);
  std::array<Payload<T>, 3> sent, back;
  fill_payload(sent[0], scope, 300, Positions::list, WireValue::fp32, {}, 0.1, random);
  fill_payload(sent[1], other, 90, Positions::all, WireValue::levels, test::level_formats()[3], 1, random);
  sent[2].clear(17);
  const std::array<const Scope*, 3> scopes = {&scope, &other, &scope};
  const std::array<std::size_t, 3> lengths = {300, 90, 17};
  const std::array<Payload<T>*, 3> out = {&back[0], &back[1], &back[2]};
  std::vector<std::byte> bytes;
  for (int silent = 0; silent < 8; ++silent) {
    std::array<codec::Channel<T>, 3> channels;
    sent[2].num_sent = 17;
    sent[2].value.resize_discard(17);
    for (std::size_t c = 0; c < 3; ++c) {
      sent[c].silent = (silent >> c & 1) != 0;
      channels[c] = {&sent[c], scopes[c]};
    }
    codec::encode<T>(channels, bytes);
    EXPECT_EQ(codec::encoded_bits<T>(channels), 8 * bytes.size());
    EXPECT_EQ(bytes.size() == 1, silent == 7);
    const auto result = codec::decode<T>(bytes, scopes, lengths, out);
    ASSERT_TRUE(result.ok()) << result.error().reason;
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(back[c].silent, sent[c].silent);
      if (!sent[c].silent) expect_same(sent[c], back[c]);
      EXPECT_EQ(back[c].elements(), sent[c].elements());
    }
  }
}

TYPED_TEST(CodecTest, TruncatedMessagesAreRefused) {
  using T = TypeParam;
  Payload<T> back;
  test::for_each_kind<T>(40, 11, [&](const Payload<T>& message, const Scope& scope) {
    const MessageLevels known = test::known_of(message.level_format);
    const auto bytes = encoded(message, scope, known);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      // A copy of its own, so that a sanitizer sees reads behind the end.
      const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      const auto result = decoded<T>(part, scope, message.length, back, known);
      ASSERT_FALSE(result.ok()) << "cut to " << n << " of " << bytes.size() << " bytes";
      EXPECT_FALSE(result.error().reason.empty());
    }
  });
}

TYPED_TEST(CodecTest, TrailingBytesAndPaddingAreRefused) {
  using T = TypeParam;
  Payload<T> back;
  std::size_t padded = 0;
  test::for_each_kind<T>(65, 12, [&](const Payload<T>& message, const Scope& scope) {
    const MessageLevels known = test::known_of(message.level_format);
    auto bytes = encoded(message, scope, known);
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decoded<T>(bytes, scope, message.length, back, known).ok());
    bytes.pop_back();
    bytes.back() ^= std::byte{0x80};
    const auto result = decoded<T>(bytes, scope, message.length, back, known);
    padded += !result.ok() && result.error().reason.find("padding") != std::string::npos ? 1 : 0;
  });
  EXPECT_GT(padded, 100U);
}

TYPED_TEST(CodecTest, DamagedMessagesNeverHarm) {
  using T = TypeParam;
  Payload<T> back;
  std::mt19937_64 random(13);
  std::size_t refused = 0, accepted = 0;
  test::for_each_kind<T>(130, 14, [&](const Payload<T>& message, const Scope& scope) {
    const MessageLevels known = test::known_of(message.level_format);
    const auto bytes = encoded(message, scope, known);
    for (int trial = 0; trial < 40; ++trial) {
      auto damaged = bytes;
      for (int flips = 1 + trial % 3; flips > 0; --flips) {
        const std::uint64_t bit = random() % (8 * std::min<std::size_t>(damaged.size(), trial < 20 ? 6 : damaged.size()));
        damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      }
      const auto result = decoded<T>(damaged, scope, message.length, back, known);
      (result.ok() ? accepted : refused) += 1;
      if (!result.ok()) continue;
      ASSERT_LE(back.num_sent, message.length);
      for (std::size_t i = 1; i < back.index.size(); ++i) ASSERT_LT(back.index[i - 1], back.index[i]);
      ASSERT_TRUE(back.index.empty() || back.index[back.index.size() - 1] < message.length);
      // An accepted payload is a message: it can be encoded again, and is not longer.
      EXPECT_LE(encoded(back, scope, known).size(), damaged.size());
    }
  });
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(accepted, 1000U);
}

TYPED_TEST(CodecTest, LengthsThatCanBeWorkedOutByHand) {
  using T = TypeParam;
  constexpr std::uint64_t kNative = 8 * sizeof(T);
  std::mt19937_64 random(1);
  const auto bits = [](const Payload<T>& message, const Scope& scope) { return 8 * encoded(message, scope).size(); };
  const auto whole = [](std::uint64_t n) { return (n + 7) / 8 * 8; };
  const Scope scope = any_scope(500, 0, false);
  Payload<T> message;
  message.clear(500);
  message.silent = true;
  EXPECT_EQ(bits(message, scope), 8U);

  fill_payload(message, scope, 500, Positions::all, kNativeWire<T>, {}, 1, random);
  EXPECT_EQ(bits(message, scope), 8 + 500 * kNative);
  fill_payload(message, scope, 500, Positions::all, WireValue::fp16, {}, 1, random);
  EXPECT_EQ(bits(message, scope), 8 + 500 * 16U);

  // Top-1: header 8, count 3, code 3, position 9.
  fill_payload(message, scope, 500, Positions::list, kNativeWire<T>, {}, 0, random);
  EXPECT_EQ(bits(message, scope), 16U);
  message.counts[0] = 1;
  message.num_sent = 1;
  message.index.resize_discard(1);
  message.index[0] = 321;
  message.value.resize_discard(1);
  message.value[0] = T(1.5);
  EXPECT_EQ(bits(message, scope), whole(8 + 3 + 3 + 9 + kNative));

  // Sign: coded 1, map 2, has_scale 1, the scale, a bit each.
  fill_payload(message, scope, 500, Positions::all, WireValue::levels, test::level_formats()[0], 1, random);
  EXPECT_EQ(bits(message, scope), whole(8 + 4 + kNative + 500));
  // QSGD with s = 127: and width 5, min_level 2*7+1, unit 1.
  fill_payload(message, scope, 500, Positions::all, WireValue::levels, test::level_formats()[3], 1, random);
  EXPECT_EQ(bits(message, scope), whole(8 + 4 + 5 + 15 + 1 + kNative + 500 * 8));
  // Where the receiver knows the format, coded 1 is all that is said of it; a largest level of 127 takes 13 bits, an exponent of 4 takes 7.
  const auto told = [&](const MessageLevels& known) { return 8 * encoded(message, scope, known).size(); };
  EXPECT_EQ(told(all_known(message.level_format)), whole(8 + 1 + kNative + 500 * 8));
  EXPECT_EQ(told(all_known_but(KnownLevels::Travels::top, {.unit = message.level_format.unit})), whole(8 + 1 + 13 + kNative + 500 * 8));
  LevelFormat powers{.map = LevelMap::power_of_two, .min_level = -7, .bits = 4, .min_exponent = 4};
  fill_payload(message, scope, 500, Positions::all, WireValue::levels, powers, 1, random);
  powers.min_exponent = -3;
  EXPECT_EQ(told(all_known_but(KnownLevels::Travels::min_exponent, powers)), whole(8 + 1 + 7 + kNative + 500 * 4));
}

TYPED_TEST(CodecTest, PlainVectorWhoseLengthHappensToBeThatOfTheModel) {
  using T = TypeParam;
  const Scope scope = any_scope(60, 9, true);
  Payload<T> message, back;
  message.clear(60);
  message.num_sent = 60;
  message.value.resize_discard(60);
  for (std::size_t j = 0; j < 60; ++j) message.value[j] = static_cast<T>(j);
  const auto result = decoded<T>(encoded(message, scope), scope, 60, back);
  ASSERT_TRUE(result.ok()) << result.error().reason;
  expect_same(message, back);
}

TYPED_TEST(CodecTest, NotANumberAndForeignValuesAreRefused) {
  using T = TypeParam;
  std::mt19937_64 random(21);
  Payload<T> message, back;
  const auto refuse = [&](const Scope& scope, const char* word) {
    const auto result = decoded<T>(encoded(message, scope), scope, message.length, back);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().reason.find(word), std::string::npos) << result.error().reason;
  };
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const bool exclude : {false, true}) {
    const Scope scope = any_scope(70, 0, exclude);
    for (const WireValue values : {WireValue::fp32, WireValue::fp16, WireValue::bf16}) {
      fill_payload(message, scope, 70, Positions::all, values, {}, 1, random);
      message.value[13] = nan;
      refuse(scope, "number 13 is not a number");
      message.value[13] = -std::numeric_limits<T>::infinity();
      refuse(scope, "number 13 is infinite");
    }
    fill_payload(message, scope, 70, Positions::list, WireValue::levels, test::level_formats()[3], 1, random);
    message.scale[0] = nan;
    refuse(scope, "scale");
    fill_payload(message, scope, 70, Positions::all, WireValue::levels, table_format(5, -2), 1, random);
    message.scale[3] = nan;
    refuse(scope, "scale");
    fill_payload(message, scope, 70, Positions::all, WireValue::levels, fp8_format(LevelMap::fp8_e4m3), 1, random);
    message.template levels<std::int8_t>()[8] = 0x7f;
    refuse(scope, "not a number");
    fill_payload(message, scope, 70, Positions::all, WireValue::levels, fp8_format(LevelMap::fp8_e5m2, false), 1, random);
    message.template levels<std::int8_t>()[8] = -1;
    refuse(scope, "not a number");
    message.template levels<std::int8_t>()[8] = 0x7c;
    refuse(scope, "not finite");
  }
  const Scope scope = any_scope(70, 0, true);
  fill_payload(message, scope, 70, Positions::all, WireValue::fp32, {}, 1, random);
  message.excluded[0] = nan;
  refuse(scope, "excluded");
  message.excluded[0] = std::numeric_limits<T>::infinity();
  refuse(scope, "excluded");
  if constexpr (sizeof(T) == sizeof(float)) {
    fill_payload(message, scope, 70, Positions::all, WireValue::fp64, {}, 1, random);
    refuse(scope, "precision");
  }
}

// Every field of these is finite, but a number that the receiver would compute from them is not.
TYPED_TEST(CodecTest, NumbersThatOverflowAtTheReceiverAreRefused) {
  using T = TypeParam;
  std::mt19937_64 random(23);
  constexpr T kMost = std::numeric_limits<T>::max();
  const Scope scope = any_scope(70, 9, false);
  Payload<T> message, back;
  const auto reason = [&](const MessageLevels& known) {
    const auto result = decoded<T>(encoded(message, scope, known), scope, 70, back, known);
    EXPECT_EQ(codec::is_finite(message, scope), result.ok());
    return result.ok() ? std::string() : result.error().reason;
  };
  const std::string overflow = "channel 0: an entry stands for a number that is not finite";
  for (const Positions positions : {Positions::all, Positions::list}) {
    for (const LevelFormat& format : test::level_formats()) {
      fill_payload(message, scope, 70, positions, WireValue::levels, format, 0.5, random);
      const MessageLevels known = test::known_of(format);
      EXPECT_EQ(reason(known), "");
      const bool multiplies = format.map == LevelMap::linear || format.map == LevelMap::power_of_two || format.map == LevelMap::fp8_e4m3;
      if (!format.has_scale || !multiplies || format.min_level >= 0 || format.unit * format.min_level > -2) continue;
      for (T& scale : message.scale) scale = kMost / 2;
      EXPECT_EQ(reason(known), overflow) << "map " << static_cast<int>(format.map);
    }
  }
  // Natural compression's largest level is 2^128, which float does not have.
  LevelFormat natural{.map = LevelMap::power_of_two, .min_level = -255, .bits = 9, .min_exponent = sizeof(T) == 4 ? -126 : 770};
  natural.has_scale = false;
  fill_payload(message, scope, 70, Positions::all, WireValue::levels, natural, 1, random);
  for (std::size_t i = 0; i < 70; ++i) message.template levels<std::int16_t>()[i] = -254;
  EXPECT_EQ(reason({}), "");
  message.template levels<std::int16_t>()[69] = 255;
  EXPECT_EQ(reason({}), overflow);
  // Sums of two.
  fill_payload(message, scope, 70, Positions::all, kNativeWire<T>, {}, 1, random);
  message.value[31] = kMost;
  message.rest = std::make_unique<Payload<T>>();
  fill_payload(*message.rest, scope, 70, Positions::all, kNativeWire<T>, {}, 1, random);
  message.rest->value[32] = kMost;
  EXPECT_EQ(reason({}), "");
  message.rest->value[31] = kMost;
  EXPECT_EQ(reason({}), "channel 0: the sum of its two vectors is not finite");
}

// Products of factors likewise.
TYPED_TEST(CodecTest, ProductsThatOverflowAreRefused) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  Scope scope = any_scope(12, 0, false);
  scope.segments[0].rows = 4;
  scope.segments[0].cols = 3;
  Payload<T> message, back;
  message.clear(12);
  message.positions = Positions::factors;
  message.counts.resize_discard(1);
  message.counts[0] = 1;
  message.num_sent = 7;
  message.value.resize_discard(7);
  for (T& v : message.value) v = T(1);
  message.value[2] = kMost;
  message.value[5] = T(0.5);
  EXPECT_TRUE(decoded<T>(encoded(message, scope), scope, 12, back).ok());
  message.value[5] = T(2);
  EXPECT_FALSE(decoded<T>(encoded(message, scope), scope, 12, back).ok());
  EXPECT_FALSE(codec::is_finite(message, scope));
}

TYPED_TEST(CodecTest, WrongVersionChannelsLevelsAndFormatsAreNamed) {
  using T = TypeParam;
  std::mt19937_64 random(22);
  const Scope scope = any_scope(4, 0, false);
  Payload<T> message, back, second;
  const auto reason = [&](std::vector<std::byte> bytes) {
    const auto result = decoded<T>(bytes, scope, 4, back);
    return result.ok() ? std::string("accepted") : result.error().reason;
  };
  EXPECT_EQ(reason({}), "the message is empty");
  EXPECT_EQ(reason({std::byte{1}}), "wire format 1 where 3 is understood");
  EXPECT_EQ(reason({std::byte{0x17}}), "the padding of the last byte is not zero");

  // Levels -1 .. 1 in two bits: 3 stands for 2.
  const auto write = [&](auto content) {
    std::vector<std::byte> bytes;
    codec::BitWriter writer(bytes);
    writer.put(3, 3);
    writer.put_gamma(1);
    content(writer);
    writer.finish();
    return bytes;
  };
  const auto ternary = [&](std::uint64_t level) {
    return write([&](codec::BitWriter& w) {
      w.put(0 | 3 << 1, 4);
      w.put(0, 1);  // not coded
      w.put(0, 3);
      w.put(1, 5);
      w.put_gamma(2);
      w.put(0, 1);
      for (int i = 0; i < 3; ++i) w.put(1, 2);
      w.put(level, 2);
    });
  };
  EXPECT_EQ(reason(ternary(2)), "accepted");
  EXPECT_EQ(back.level(3), 1);
  EXPECT_EQ(reason(ternary(3)), "channel 0: segment 0: a level lies outside -1 .. 1");
  EXPECT_EQ(reason(write([](codec::BitWriter& w) { w.put(0 | 3 << 1 | 0 << 4 | 3 << 5 | 5 << 7, 10); })),
            "channel 0: unknown map of levels");
  EXPECT_EQ(reason(write([](codec::BitWriter& w) { w.put(0 | 7 << 1, 4); })), "channel 0: unknown format of values");
  EXPECT_EQ(reason(write([](codec::BitWriter& w) { w.put(1 | 5 << 1, 4); })), "channel 0: unknown format of values") << "factors of a list";
  EXPECT_EQ(reason(write([](codec::BitWriter& w) { w.put(0 | 6 << 1 | 6 << 5, 8); })), "channel 0: unknown format of values")
      << "a sum inside a sum";
  // Factors of rank 9, which no segment here has.
  EXPECT_EQ(reason(write([](codec::BitWriter& w) {
              w.put(0 | 5 << 1, 4);
              w.put_gamma(9 + 1);
              w.put(0, 60);
            })),
            "channel 0: segment 0: a rank that the matrix cannot have");
  EXPECT_EQ(reason(write([](codec::BitWriter& w) {
              w.put(1, 4);
              w.put_gamma(5 + 1);
              w.put(0, 60);
            })),
            "channel 0: segment 0: 5 positions are announced in a segment of 4 parameters");

  fill_payload(message, scope, 4, Positions::all, WireValue::fp32, {}, 1, random);
  const auto bytes = encoded(message, scope);
  const std::array<const Scope*, 2> scopes = {&scope, &scope};
  const std::array<std::size_t, 2> lengths = {4, 4};
  const std::array<Payload<T>*, 2> payloads = {&back, &second};
  const auto result = codec::decode<T>(bytes, scopes, lengths, payloads);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, "the message has 1 channels where the scenario has 2");
}

// A count that the scope would allow but the bytes cannot hold allocates nothing.
TYPED_TEST(CodecTest, AnnouncedCountsDoNotAllocate) {
  using T = TypeParam;
  constexpr std::size_t kHuge = 4'000'000'000;
  const Scope scope = any_scope(kHuge, 0, false);
  for (const std::uint64_t positions : {0U, 1U}) {
    std::vector<std::byte> bytes;
    codec::BitWriter writer(bytes);
    writer.put(3, 3);
    writer.put_gamma(1);
    writer.put(positions, 4);
    writer.put_gamma(kHuge);
    writer.finish();
    Payload<T> back;
    EXPECT_FALSE(decoded<T>(bytes, scope, kHuge, back).ok());
    EXPECT_EQ(back.value.capacity() + back.index.capacity(), 0U);
  }
}

// A unit is never in a message: the receiver has it, or the sender's message is refused. What the two know differently is refused as well.
TYPED_TEST(CodecTest, UnitsDoNotTravel) {
  using T = TypeParam;
  std::mt19937_64 random(30);
  const Scope scope = any_scope(124, 0, false);
  const LevelFormat format{.min_level = -3, .bits = 3, .unit = 0.01, .has_scale = false};
  Payload<T> message, back;
  fill_payload(message, scope, 124, Positions::all, WireValue::levels, format, 1, random);
  const auto bytes = encoded(message, scope, all_known(format));
  EXPECT_EQ(8 * bytes.size(), (8U + 1 + 3 * 124 + 7) / 8 * 8);
  ASSERT_TRUE(decoded<T>(bytes, scope, 124, back, all_known(format)).ok());
  expect_same(message, back);
  LevelFormat other = format;
  other.unit = 0.02;
  ASSERT_TRUE(decoded<T>(bytes, scope, 124, back, all_known(other)).ok());
  EXPECT_EQ(back.level_format.unit, 0.02) << "the unit is the receiver's";
  const auto refused = [&](const MessageLevels& known) {
    const std::array<codec::Channel<T>, 1> channels = {codec::Channel<T>{&message, &scope, {}, known}};
    std::vector<std::byte> out;
    EXPECT_THROW((void)codec::encoded_bits<T>(channels), Error);
    EXPECT_THROW(codec::encode<T>(channels, out), Error);
  };
  refused({});
  refused(all_known(other));
  refused(all_known_but(KnownLevels::Travels::min_exponent, other));
  message.level_format.bits = 4;
  refused(all_known_but(KnownLevels::Travels::top, format));
}

// Mistakes of an operator are errors that name what is wrong, never memory written out of bounds.
TYPED_TEST(CodecTest, PayloadsThatContradictTheirScopeThrow) {
  using T = TypeParam;
  std::mt19937_64 random(31);
  const Scope scope = any_scope(100, 20, true);
  Payload<T> message;
  const auto fresh = [&] { fill_payload(message, scope, 100, Positions::list, WireValue::levels, test::level_formats()[3], 0.5, random); };
  const auto expect_throw = [&] {
    const std::array<codec::Channel<T>, 1> channels = {codec::Channel<T>{&message, &scope}};
    std::vector<std::byte> bytes;
    EXPECT_THROW(codec::encode<T>(channels, bytes), Error);
  };
  fresh();
  std::swap(message.index[1], message.index[2]);
  expect_throw();
  fresh();
  message.index[1] = message.index[0];
  expect_throw();
  fresh();
  message.index[0] = 99;
  expect_throw();
  fresh();
  message.index[message.num_sent - 1] = 4'000'000'000U;
  expect_throw();
  fresh();
  message.counts[0] += 1;
  expect_throw();
  fresh();
  message.scale.resize_discard(1);
  expect_throw();
  fresh();
  message.excluded.resize_discard(1);
  expect_throw();
  fresh();
  message.template levels<std::int8_t>()[4] = -128;
  expect_throw();
  fresh();
  message.level_format.bits = 0;
  expect_throw();
  fresh();
  message.level_format.map = LevelMap::two_values;
  expect_throw();
  fresh();
  message.level_format = table_format(3, -1);
  expect_throw();
  fill_payload(message, scope, 100, Positions::all, WireValue::levels, table_format(5), 1, random);
  message.template levels<std::int8_t>()[4] = 5;
  expect_throw();
  fresh();
  message.level_format = {.map = LevelMap::linear, .min_level = 1, .bits = 32};
  expect_throw();
  fill_payload(message, scope, 100, Positions::all, WireValue::fp32, {}, 1, random);
  message.num_sent -= 1;
  expect_throw();
  const Scope full = any_scope(3, 0, false);
  fill_payload(message, full, 3, Positions::list, WireValue::fp32, {}, 1, random);
  message.index[1] = 0;
  const std::array<codec::Channel<T>, 1> channels = {codec::Channel<T>{&message, &full}};
  EXPECT_THROW((void)codec::encoded_bits<T>(channels), Error);
}

TYPED_TEST(CodecTest, EntropyIsWhatTheDefinitionSays) {
  using T = TypeParam;
  constexpr double kNative = 8 * sizeof(T);
  std::mt19937_64 random(41);
  Payload<T> message;
  const Scope scope = any_scope(1000, 0, false);
  fill_payload(message, scope, 1000, Positions::list, WireValue::fp16, {}, 0.1, random);
  const double k = static_cast<double>(message.num_sent);
  EXPECT_NEAR(codec::entropy_bits(message, scope), codec::log2_binomial(1000, message.num_sent) + 16 * k, 1e-9);

  // Signs: 300 of 1000 are negative.
  fill_payload(message, scope, 1000, Positions::all, WireValue::levels, test::level_formats()[0], 1, random);
  for (std::size_t i = 0; i < 1000; ++i) message.template levels<std::int8_t>()[i] = i % 10 < 3 ? 0 : 1;
  const double h = -0.3 * std::log2(0.3) - 0.7 * std::log2(0.7);
  EXPECT_NEAR(codec::entropy_bits(message, scope), 1000 * h + kNative, 1e-9);
  message.silent = true;
  EXPECT_EQ(codec::entropy_bits(message, scope), 0);

  // Table and sort agree: the same levels in 8 and in 32 bits; a constant costs nothing but its scale.
  fill_payload(message, scope, 1000, Positions::all, WireValue::levels, test::level_formats()[3], 1, random);
  Payload<T> wide;
  LevelFormat format = message.level_format;
  format.bits = 24;
  fill_payload(wide, scope, 1000, Positions::all, WireValue::levels, format, 1, random);
  ASSERT_EQ(wide.level_width, LevelWidth::w8);
  for (std::size_t i = 0; i < 1000; ++i) wide.template levels<std::int8_t>()[i] = message.template levels<std::int8_t>()[i];
  EXPECT_NEAR(codec::entropy_bits(wide, scope), codec::entropy_bits(message, scope), 1e-8);
  for (std::size_t i = 0; i < 1000; ++i) message.template levels<std::int8_t>()[i] = 5;
  EXPECT_EQ(codec::entropy_bits(message, scope), kNative);
}

// No encoding of uniformly kept positions is shorter than the bound, nor much longer.
TYPED_TEST(CodecTest, EncodingIsCloseToTheBound) {
  using T = TypeParam;
  std::mt19937_64 random(43);
  const Scope scope = any_scope(200'000, 0, false);
  Payload<T> message;
  for (const double share : {0.001, 0.01, 0.1, 0.5}) {
    fill_payload(message, scope, scope.P, Positions::list, WireValue::fp32, {}, share, random);
    const double bound = codec::entropy_bits(message, scope), bits = 8.0 * static_cast<double>(encoded(message, scope).size());
    EXPECT_GT(bits, bound);
    EXPECT_LT(bits, bound * 1.01 + 64);
  }
}

TEST(Log2BinomialTest, KnownValues) {
  EXPECT_EQ(codec::log2_binomial(10, 0), 0);
  EXPECT_EQ(codec::log2_binomial(10, 10), 0);
  EXPECT_EQ(codec::log2_binomial(3, 4), 0);
  EXPECT_DOUBLE_EQ(codec::log2_binomial(500, 1), std::log2(500.0));
  EXPECT_NEAR(codec::log2_binomial(52, 5), std::log2(2598960.0), 1e-12);
  EXPECT_NEAR(codec::log2_binomial(52, 47), std::log2(2598960.0), 1e-12);
  double product = 0;
  for (int i = 0; i < 200; ++i) product += std::log2((1000.0 - i) / (i + 1.0));
  for (int repeat = 0; repeat < 2; ++repeat) EXPECT_NEAR(codec::log2_binomial(1000, 200), product, 1e-9);
  // 10M parameters, 1% kept: 8.08 bits each.
  EXPECT_NEAR(codec::log2_binomial(10'000'000, 100'000) / 100'000, 8.0792, 5e-4);
}

// Statistics stand behind the channels, raw; a silent message has none, and a message that ends inside them is refused.
TEST(Codec, StatisticsTravelRawBehindTheChannels) {
  std::mt19937_64 random(3);
  Scope scope{.kind = ScopeKind::model, .segments = {{0, 5, 5, 1}}, .excluded = {}, .P = 8, .unshared = {{5, 8, 3, 1}}};
  Payload<double> message, back;
  fill_payload(message, scope, 8, Positions::all, WireValue::fp64, {}, 1, random);
  ASSERT_EQ(message.num_sent, 5u);
  const std::array<codec::Channel<double>, 1> channels = {codec::Channel<double>{&message, &scope}};
  const std::array<double, 3> told = {0.25, -3, 1e300};
  std::vector<std::byte> bytes, alone;
  codec::encode<double>(channels, bytes, told);
  codec::encode<double>(channels, alone);
  EXPECT_EQ(codec::encoded_bits<double>(channels, {}, 3), 8 * bytes.size());
  EXPECT_EQ(bytes.size(), alone.size() + 24);

  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {8};
  const std::array<Payload<double>*, 1> payloads = {&back};
  std::array<double, 3> read{};
  ASSERT_TRUE(codec::decode<double>(bytes, scopes, lengths, payloads, {}, read).ok());
  EXPECT_EQ(read, told);
  expect_same(back, message);
  EXPECT_FALSE(codec::decode<double>(alone, scopes, lengths, payloads, {}, read).ok());

  message.clear(8);
  message.silent = true;
  codec::encode<double>(channels, bytes, told);
  EXPECT_EQ(bytes.size(), 1u);
  EXPECT_EQ(codec::encoded_bits<double>(channels, {}, 3), 8u);
}

}  // namespace
}  // namespace fl
