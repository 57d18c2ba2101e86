// Tests the entropy code of levels: lengths, the bound, decoding by a plain decoder of the specification, and rejected bytes.
#include "compressors/codec/level_coder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/codec/values.hpp"
#include "tests/compressors/codec/random_payload.hpp"

namespace fl::codec {
namespace {

using test::any_scope;

void set_level(Payload<float>& message, std::size_t i, std::int32_t level) {
  switch (message.level_width) {
    case LevelWidth::w8: message.levels<std::int8_t>()[i] = static_cast<std::int8_t>(level); break;
    case LevelWidth::w16: message.levels<std::int16_t>()[i] = static_cast<std::int16_t>(level); break;
    case LevelWidth::w32: message.levels<std::int32_t>()[i] = level; break;
  }
}

// A dense message whose levels are drawn one by one; those outside the format are brought back into it.
Payload<float> message_of(std::size_t n, const LevelFormat& format, const std::function<double()>& draw) {
  Payload<float> message;
  message.clear(n);
  message.values = WireValue::levels;
  message.level_format = format;
  message.level_width = narrowest_width(format);
  message.num_sent = n;
  message.level_bytes.resize_discard(n * static_cast<std::size_t>(message.level_width));
  message.scale.resize_discard(n > 0 ? scales_per_segment(format) : 0);
  for (float& s : message.scale) s = 0.5F;
  for (std::size_t i = 0; i < n; ++i) {
    const double level = std::clamp(std::round(draw()), static_cast<double>(format.min_level), static_cast<double>(max_level(format)));
    set_level(message, i, static_cast<std::int32_t>(level));
  }
  return message;
}

std::vector<std::byte> bytes_of(const Payload<float>& message, const Scope& scope) {
  const std::array<Channel<float>, 1> channels = {Channel<float>{&message, &scope, {}, test::known_of(message.level_format)}};
  std::vector<std::byte> bytes;
  encode<float>(channels, bytes);
  EXPECT_EQ(encoded_bits<float>(channels), 8 * bytes.size());
  return bytes;
}

Result<std::uint64_t> decode_one(const std::vector<std::byte>& bytes, const Scope& scope, std::size_t length, Payload<float>& back,
                                 const MessageLevels& known = {}) {
  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {length};
  const std::array<Payload<float>*, 1> payloads = {&back};
  return decode<float>(bytes, scopes, lengths, payloads, std::span(&known, 1));
}

// Comes back level by level; returns its bits.
double round_trip(const Payload<float>& message, const Scope& scope) {
  const auto bytes = bytes_of(message, scope);
  Payload<float> back;
  const auto result = decode_one(bytes, scope, message.length, back, test::known_of(message.level_format));
  EXPECT_TRUE(result.ok()) << result.error().reason;
  EXPECT_EQ(back.num_sent, message.num_sent);
  for (std::size_t i = 0; i < message.num_sent; ++i) {
    if (back.level(i) == message.level(i)) continue;
    ADD_FAILURE() << "level " << i << " is " << back.level(i) << " instead of " << message.level(i);
    break;
  }
  return 8.0 * static_cast<double>(bytes.size());
}

LevelFormat linear(std::int32_t min, int bits) {
  return {.map = LevelMap::linear, .min_level = min, .bits = static_cast<std::uint8_t>(bits), .unit = 1};
}

struct Source {
  const char* name;
  LevelFormat format;
  std::function<double(std::mt19937_64&)> draw;
};

std::function<double(std::mt19937_64&)> normal(double deviation) {
  return [=](std::mt19937_64& random) { return std::normal_distribution<double>(0, deviation)(random); };
}

std::vector<Source> sources() {
  const auto rarely = [](double p) {
    return [=](std::mt19937_64& random) {
      if (!std::bernoulli_distribution(p)(random)) return 0.0;
      return random() % 2 == 0 ? -1.0 : 1.0;
    };
  };
  return {{"ternary, 2% not zero", linear(-1, 2), rarely(0.02)},
          {"ternary, 10%", linear(-1, 2), rarely(0.1)},
          {"ternary, 60%", linear(-1, 2), rarely(0.6)},
          {"four bits, narrow", linear(-7, 4), normal(0.7)},
          {"four bits, wide", linear(-7, 4), normal(3)},
          {"eight bits, narrow", linear(-127, 8), normal(1)},
          {"eight bits, wide", linear(-127, 8), normal(30)},
          {"ten bits", linear(-511, 10), normal(60)},
          {"exponents",
           {.map = LevelMap::power_of_two, .min_level = -255, .bits = 9, .min_exponent = -126, .has_scale = false},
           [](std::mt19937_64& random) {
             const double x = std::normal_distribution<double>(0, 1)(random);
             return std::copysign(127 + std::floor(std::log2(std::abs(x) + 1e-30)), x);
           }},
          {"unsigned", linear(0, 6), [](std::mt19937_64& random) { return std::geometric_distribution<int>(0.3)(random); }},
          {"skewed signs", {.map = LevelMap::sign, .bits = 1}, [](std::mt19937_64& random) {
             return std::bernoulli_distribution(0.03)(random) ? 0.0 : 1.0;
           }}};
}

// Messages of 10,000 levels and more are within 2% of their empirical entropy, header, model and scale included.
TEST(LevelCoderTest, CloseToTheEmpiricalEntropy) {
  std::mt19937_64 random(3);
  for (const Source& source : sources()) {
    for (const std::size_t n : {10'000U, 100'000U, 1'000'000U}) {
      if (source.format.bits > 9 && n < 100'000) continue;  // the model of some hundred levels takes 2% itself
      const Scope scope = any_scope(n, 0, false);
      const Payload<float> message = message_of(n, source.format, [&] { return source.draw(random); });
      const double bits = round_trip(message, scope), bound = entropy_bits(message, scope);
      EXPECT_GT(bits, bound) << source.name << " " << n;
      EXPECT_LT(bits, 1.02 * bound + 150) << source.name << " " << n;
    }
  }
}

// Whatever the levels, the message is not longer than one of fixed width; where they are all alike it is nearly empty.
TEST(LevelCoderTest, NeverLongerThanFixedWidth) {
  std::mt19937_64 random(4);
  for (const LevelFormat& format : test::level_formats()) {
    for (const std::size_t n : {0U, 1U, 10U, 40U, 100U, 1000U, 300'000U}) {
      const Scope scope = any_scope(n, 0, false);
      const Payload<float> same = message_of(n, format, [] { return 1.0; });
      const Payload<float> uniform = message_of(n, format, [&] {
        const double drawn = std::uniform_real_distribution<double>(format.min_level, max_level(format))(random);
        return test::is_number<float>(format, static_cast<std::int32_t>(std::lround(drawn))) ? drawn : 1.0;
      });
      const double scales = n > 0 ? 32.0 * static_cast<double>(scales_per_segment(format)) : 0;
      const double header = 8 + static_cast<double>(levels_header_bits(format, test::known_of(format).first)) + 7;  // and the padding
      if (format.map != LevelMap::fp8_e4m3 && format.map != LevelMap::fp8_e5m2) {
        EXPECT_LE(round_trip(uniform, scope), header + scales + static_cast<double>(n) * format.bits);
      }
      const double bits = round_trip(same, scope);
      EXPECT_LE(bits, header + scales + static_cast<double>(n) * format.bits);
      if (n >= 1000 && format.bits > 1) {
        EXPECT_LT(bits, header + scales + 200 + 25.0 * static_cast<double>(n) * (format.bits > 12 ? 1 : 0));
      }
    }
  }
}

// Formats of more than 4096 levels: tokens and extra bits. Levels that stay small cost what they need, not what the format allows.
TEST(LevelCoderTest, WideFormats) {
  std::mt19937_64 random(5);
  for (const double deviation : {0.5, 20.0, 3000.0, 1e6, 1e9}) {
    for (const LevelFormat& format : {linear(INT32_MIN, 32), linear(-40000, 17), linear(-8'000'000, 24), linear(0, 20)}) {
      const std::size_t n = 50'000;
      const Payload<float> message = message_of(n, format, [&] { return std::normal_distribution<double>(0, deviation)(random); });
      const double bits = round_trip(message, any_scope(n, 0, false));
      // The entropy of a normal distribution, rounded to integers that are fine against it; clamped ones have less.
      const double normal_bits = std::log2(deviation * std::sqrt(2 * std::acos(-1.0) * std::exp(1.0)));
      if (deviation >= 20) {
        EXPECT_LT(bits, 1.02 * static_cast<double>(n) * normal_bits + 3000) << deviation;
      }
      EXPECT_LE(bits, static_cast<double>(n) * format.bits + 120);
    }
  }
  // The ends of the range.
  const std::vector<std::int32_t> ends = {INT32_MIN, INT32_MAX, 0, -1, 1, 255, 256, -128, -129, INT32_MIN + 1};
  std::size_t next = 0;
  const Payload<float> message = message_of(5000, linear(INT32_MIN, 32), [&] { return ends[next++ % ends.size()]; });
  EXPECT_LT(round_trip(message, any_scope(5000, 0, false)), 5000.0 * 20);
}

TEST(LevelCoderTest, ListsAndSegmentsShareOneModel) {
  std::mt19937_64 random(6);
  for (const bool exclude : {false, true}) {
    for (const std::size_t piece : {std::size_t{0}, std::size_t{50}}) {
      const Scope scope = any_scope(20'000, piece, exclude);
      Payload<float> message;
      test::fill_payload(message, scope, 20'000, Positions::list, WireValue::levels, linear(-7, 4), 0.2, random);
      for (std::size_t i = 0; i < message.num_sent; ++i) set_level(message, i, i % 9 == 0 ? -2 : 1);
      const auto fixed = static_cast<double>(4 * message.num_sent);
      const double bits = round_trip(message, scope), bound = entropy_bits(message, scope);
      EXPECT_LT(bits, bound * 1.02 + 16 * static_cast<double>(scope.segments.size()) + 200);
      EXPECT_LT(bits, bound + fixed - 0.51 * static_cast<double>(message.num_sent));
    }
  }
}

// ---- a plain decoder of the specification ----

struct PlainBits {
  const std::vector<std::byte>& bytes;
  std::uint64_t at = 0;
  std::uint64_t get(unsigned n) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < n; ++i, ++at) value |= std::uint64_t{static_cast<unsigned>(bytes[at / 8]) >> (at % 8) & 1} << i;
    return value;
  }
  std::uint64_t gamma() {
    unsigned n = 0;
    while (get(1) == 0) ++n;
    return std::uint64_t{1} << n | get(n);
  }
};

TEST(LevelCoderTest, APlainDecoderReadsTheSame) {
  std::mt19937_64 random(7);
  const LevelFormat format = linear(-7, 4);
  const Payload<float> message = message_of(3000, format, [&] { return std::normal_distribution<double>(0.5, 1.2)(random); });
  const LevelPlan plan = plan_levels(message);
  ASSERT_TRUE(plan.coded);
  std::vector<std::byte> bytes;
  BitWriter writer(bytes);
  write_coded_levels(writer, plan, message);
  EXPECT_EQ(writer.position(), plan.bits);
  writer.finish();

  PlainBits in{bytes};
  const std::uint64_t r = 8 + in.get(4), p = in.gamma();
  std::vector<std::uint64_t> token(p), frequency(p);
  std::uint64_t next = 0, left = std::uint64_t{1} << r, width = r;
  for (auto& t : token) next = (t = next + in.gamma() - 1) + 1;
  for (std::size_t i = 0; i + 1 < p; ++i) {
    const std::uint64_t change = in.gamma();
    width = change % 2 == 1 ? width + change / 2 : width - change / 2;
    frequency[i] = std::uint64_t{1} << (width - 1) | in.get(static_cast<unsigned>(width - 1));
    left -= frequency[i];
  }
  frequency[p - 1] = left;
  const std::uint64_t words = in.gamma(), end = in.at + 32 * words;
  std::uint64_t x = in.get(32);
  x |= in.get(32) << 32;
  for (std::size_t i = 0; i < 3000; ++i) {
    std::uint64_t which = 0, below = 0;
    for (; x % (std::uint64_t{1} << r) >= below + frequency[which]; ++which) below += frequency[which];
    ASSERT_EQ(static_cast<std::int32_t>(token[which]) - 7, message.level(i)) << i;
    x = frequency[which] * (x >> r) + x % (std::uint64_t{1} << r) - below;
    if (x < std::uint64_t{1} << 31) x = x << 32 | in.get(32);
  }
  EXPECT_EQ(x, std::uint64_t{1} << 31);
  while (in.at < end) EXPECT_EQ(in.get(32), 0U);
  EXPECT_EQ(in.at, plan.bits);
}

// ---- refusals ----

// Frequencies are powers of two below 2^8: a width, and no low bits set.
struct Parts {
  std::uint64_t precision = 0;                // r - 8
  std::vector<std::uint64_t> steps = {1, 1};  // tokens 0 and 1
  std::vector<std::uint64_t> widths = {1};    // folded change; 1 is none, and 8 bits are r's own
  std::vector<std::uint64_t> words = {0x80000000U, 0};
};

std::string refusal(const Parts& parts, std::size_t n, std::uint64_t num_words = 0) {
  std::vector<std::byte> bytes;
  BitWriter writer(bytes);
  writer.put(parts.precision, 4);
  writer.put_gamma(parts.steps.size());
  for (const std::uint64_t step : parts.steps) writer.put_gamma(step);
  for (const std::uint64_t width : parts.widths) {
    writer.put_gamma(width);
    writer.put(0, 7);
  }
  writer.put_gamma(num_words > 0 ? num_words : parts.words.size());
  for (const std::uint64_t word : parts.words) writer.put(word, 32);
  writer.finish();
  Payload<float> message = message_of(n, linear(-1, 2), [] { return 0.0; });
  BitReader reader(bytes);
  return read_coded_levels(reader, message);
}

TEST(LevelCoderTest, MalformedModelsAndStatesAreRefused) {
  const auto expect = [](const std::string& wrong, const char* word) { EXPECT_NE(wrong.find(word), std::string::npos) << wrong; };
  // Two tokens of frequency 128. Nothing to decode: the state is what it ends at.
  const Parts good;
  EXPECT_EQ(refusal(good, 0), "");
  Parts bad = good;
  bad.precision = 9;
  expect(refusal(bad, 0), "2^17 parts");
  bad = good;
  bad.steps = {1, 1, 1, 1};
  expect(refusal(bad, 0), "1 .. 3 are possible");
  bad = good;
  bad.steps = {1, 3};
  expect(refusal(bad, 0), "does not have");
  bad = good;
  bad.widths = {3};  // width 9 of r = 8
  expect(refusal(bad, 0), "do not add up");
  bad.widths = {16};  // width 0
  expect(refusal(bad, 0), "do not add up");
  bad = good;
  bad.steps = {1, 1, 1};
  bad.widths = {1, 1};  // 128 and at least 128: nothing is left for the third
  expect(refusal(bad, 0), "do not add up");
  bad = good;
  bad.words = {0x7fffffffU, 0};
  expect(refusal(bad, 0), "outside 2^31");
  bad.words = {0, 0x80000000U};
  expect(refusal(bad, 0), "outside 2^31");
  bad.words = {0x80000001U, 0};
  expect(refusal(bad, 0), "do not end in the state");
  bad.words = {0x80000000U, 0, 1};
  expect(refusal(bad, 0), "not zero");
  EXPECT_EQ(refusal({.words = {0x80000000U, 0, 0}}, 0), "");
  expect(refusal(good, 100), "more words");
  expect(refusal(good, 0, 3), "ends inside");
  expect(refusal({.words = {0x80000000U}}, 0), "ends inside");
}

// A short message cannot announce more levels than its bits can stand for.
TEST(LevelCoderTest, AnnouncedLevelsDoNotAllocate) {
  constexpr std::size_t kHuge = 4'000'000'000;
  const Scope scope = any_scope(kHuge, 0, false);
  for (const bool list : {false, true}) {
    std::vector<std::byte> bytes;
    BitWriter writer(bytes);
    writer.put(3, 3);
    writer.put_gamma(1);
    writer.put((list ? 1 : 0) | 3 << 1, 4);
    write_levels_header(writer, sign_format(false), {}, LevelCoding::coded);
    if (list) writer.put_gamma(kHuge);
    writer.put(0, 64);
    writer.finish();
    Payload<float> back;
    EXPECT_FALSE(decode_one(bytes, scope, kHuge, back).ok());
    EXPECT_EQ(back.level_bytes.capacity() + back.index.capacity(), 0U);
  }
}

}  // namespace
}  // namespace fl::codec
