// Compares message lengths from a GPU's counts with those from a host that reads the messages: the bits are equal for every operator and
// for lists of positions of every kind. Skipped without a GPU; the emulator takes threads in both orders.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/codec/device_tally.hpp"
#include "compressors/codec/finite.hpp"
#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"

namespace fl {
namespace {

using codec::Channel;
using test::Pattern;
using test::same_value;
using test::Where;

template <class T>
std::vector<Payload<T>> on_device(const std::vector<Payload<T>>& messages) {
  std::vector<Payload<T>> there(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    there[i].place_on(Device::managed);
    cuda::copy_payload(messages[i], there[i], nullptr);
    there[i].silent = messages[i].silent;
  }
  return there;
}

// Compares the counts of one message, as a host reads it and as the GPU has counted it.
template <class T>
void expect_tally(const Where& where, const Payload<T>& message, const Channel<T>& counted) {
  const Scope& scope = *counted.scope;
  const bool counts_levels = message.values == WireValue::levels && message.num_sent > 0 && message.rest == nullptr &&
                             codec::num_levels(message.level_format) <= codec::kMostDirect && !message.silent;
  EXPECT_TRUE(same_value(where, "whether levels are counted", counts_levels, !counted.tally.levels.empty()));
  const bool counts_positions = message.positions == Positions::list && message.num_sent > 0 && message.rest == nullptr && !message.silent;
  EXPECT_TRUE(same_value(where, "whether positions are counted", counts_positions, !counted.tally.positions.empty()));
  const Channel<T> read{&message, &scope, {}, counted.levels};
  EXPECT_TRUE(same_value(where, "encoded_bits", codec::encoded_bits<T>({&read, 1}), codec::encoded_bits<T>({&counted, 1})));
  EXPECT_TRUE(
      same_value(where, "entropy_bits", codec::entropy_bits(message, scope), codec::entropy_bits(*counted.payload, scope, counted.tally)));
  EXPECT_TRUE(same_value(where, "is_finite", codec::is_finite(message, scope), codec::is_finite(*counted.payload, scope, counted.tally)));
}

// A receiver of these messages knows the formats of their levels.
template <class T>
MessageLevels known_of(const Payload<T>& message) {
  MessageLevels levels = all_known(message.level_format);
  if (message.rest != nullptr) levels.rest = all_known(message.rest->level_format).first;
  return levels;
}

template <class T>
void expect_same_bits(const Where& where, const std::vector<Payload<T>>& messages, const Scope& scope) {
  const std::vector<Payload<T>> there = on_device(messages);
  test::in_each_order(where, [&](const Where& here) {
    const auto tally = codec::make_device_tally<T>();
    std::vector<Channel<T>> channels;
    for (const Payload<T>& message : there) channels.push_back({&message.on_wire(), &scope, {}, known_of(message.on_wire())});
    tally->count(channels);
    for (std::size_t i = 0; i < messages.size(); ++i)
      expect_tally(here.with("message " + std::to_string(i)), messages[i].on_wire(), channels[i]);
  });
}

class GpuTally : public testing::TestWithParam<std::string> {};

TEST_P(GpuTally, GivesTheBitsOfTheHost) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const auto compare = [&]<class T>(T /*of what*/, Pattern pattern, std::size_t P) {
    for (Scope scope : test::message_scopes(P)) {
      std::vector<Payload<T>> messages = test::compressed<T>(GetParam(), scope, pattern, 3);
      messages[1].silent = true;
      expect_same_bits(test::of_vectors<T>("messages of " + test::operator_text(GetParam()), pattern, 3, scope), messages, scope);
    }
  };
  compare(float(), Pattern::uniform, 5003);
  compare(float(), Pattern::sparse, 2049);
  compare(double(), Pattern::ties, 997);
}

INSTANTIATE_TEST_SUITE_P(Operators, GpuTally, testing::ValuesIn(test::device_operators()),
                         [](const auto& test) { return std::string(test.param); });

// ---- positions ----

Payload<float> list_of(const std::vector<std::uint32_t>& positions, std::size_t length) {
  Payload<float> message;
  message.clear(length);
  message.positions = Positions::list;
  message.num_sent = positions.size();
  message.index.resize_discard(positions.size());
  message.value.resize_discard(positions.size());
  std::copy(positions.begin(), positions.end(), message.index.begin());
  std::fill(message.value.begin(), message.value.end(), 1.0f);
  message.counts.resize_discard(1);
  message.counts[0] = static_cast<std::uint32_t>(positions.size());
  return message;
}

// Returns the description of messages with K lists of positions or levels.
Where of_messages(const std::string& what, std::size_t K, std::size_t length) {
  return {.what = what, .K = K, .P = length, .precision = "float32"};
}

// Each kept with probability 1 / every (0: 49 of 50), in runs of `run`.
std::vector<std::uint32_t> drawn(std::size_t length, std::uint64_t every, std::uint64_t run, std::uint64_t salt) {
  std::vector<std::uint32_t> positions;
  for (std::uint64_t j = 0; j < length; ++j)
    if (every == 0 ? hash64(salt, j / run) % 50 != 0 : hash64(salt, j / run) % every == 0)
      positions.push_back(static_cast<std::uint32_t>(j));
  return positions;
}

TEST(GpuTallyOfPositions, AreTheHostsForEveryDensityAndShape) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  constexpr std::size_t kLength = 40001;
  std::vector<Payload<float>> messages;
  for (const std::uint64_t every : {0u, 1u, 2u, 3u, 5u, 10u, 40u, 100u, 1000u, 10000u})
    for (const std::uint64_t run : {1u, 7u, 150u}) messages.push_back(list_of(drawn(kLength, every, run, 17 * every + run), kLength));
  for (const std::uint32_t j : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 1023u, 40000u}) messages.push_back(list_of({j}, kLength));
  for (const std::size_t count : {63u, 64u, 65u, 127u, 128u, 129u, 255u, 256u, 257u}) {
    std::vector<std::uint32_t> positions = drawn(kLength, 50, 1, count);
    positions.resize(count);
    messages.push_back(list_of(positions, kLength));
  }
  expect_same_bits(of_messages("lists of positions", messages.size(), kLength), messages, test::model_scope(kLength));
}

TEST(GpuTallyOfPositions, MayBeFarApart) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  constexpr std::size_t kLength = 0xffffffffULL;
  std::vector<std::uint32_t> even;
  for (std::uint32_t i = 0; i < 300; ++i) even.push_back(i * 14'000'003);
  std::vector<Payload<float>> messages;
  for (const auto& positions : std::vector<std::vector<std::uint32_t>>{{0, 0xfffffffeU}, {0x80000000U}, {7, 8, 9}, even})
    messages.push_back(list_of(positions, kLength));
  expect_same_bits(of_messages("lists of positions far apart", messages.size(), kLength), messages, test::model_scope(kLength));
}

TEST(GpuTallyOfPositions, OutOfOrderAreLeftToTheHost) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const Scope scope = test::model_scope(100);
  const std::vector<Payload<float>> there = on_device<float>([&] {
    std::vector<Payload<float>> messages;
    std::vector<std::uint32_t> most = drawn(100, 1, 1, 0);
    most.erase(most.begin() + 40, most.begin() + 50);
    std::swap(most[7], most[8]);
    for (const auto& positions : std::vector<std::vector<std::uint32_t>>{{3, 3}, {5, 4}, {9, 100}, most, {1, 2}})
      messages.push_back(list_of(positions, 100));
    return messages;
  }());
  std::vector<Channel<float>> channels;
  for (const Payload<float>& message : there) channels.push_back({&message, &scope});
  const auto tally = codec::make_device_tally<float>();
  tally->count(channels);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(channels[i].tally.positions.empty());
    EXPECT_THROW((void)codec::encoded_bits<float>({&channels[i], 1}), Error);
  }
  EXPECT_FALSE(channels[4].tally.positions.empty());
}

// ---- levels ----

Payload<float> levels_of(std::size_t count, const LevelFormat& format, std::int32_t most) {
  Payload<float> message;
  message.clear(count);
  message.values = WireValue::levels;
  message.level_format = format;
  message.level_width = LevelWidth::w32;
  message.num_sent = count;
  message.level_bytes.resize_discard(4 * count);
  message.scale.resize_discard(1);
  for (std::size_t i = 0; i < count; ++i)
    message.levels<std::int32_t>()[i] = format.min_level + static_cast<std::int32_t>(hash64(5, i) % static_cast<std::uint64_t>(most));
  return message;
}

TEST(GpuTallyOfLevels, CountsUpToAsManyAsHaveTheirOwnToken) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  constexpr std::size_t kLength = 70001;  // more than one piece
  std::vector<Payload<float>> messages;
  for (const std::uint8_t bits : {1, 2, 6, 7, 8, 12, 13}) {
    const LevelFormat format{.map = LevelMap::linear, .min_level = bits > 1 ? -2 : 0, .bits = bits};
    messages.push_back(levels_of(kLength, format, codec::max_level(format) - format.min_level + 1));
    messages.push_back(levels_of(kLength, format, 1));
  }
  expect_same_bits(of_messages("levels", messages.size(), kLength), messages, test::model_scope(kLength));
}

// The largest value, scale and excluded value, and infinity for NaN.
template <class T>
void expect_magnitudes() {
  constexpr std::size_t kLength = 40'000;  // more than one piece
  const Scope scope = test::model_scope(kLength);
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
  std::vector<Payload<T>> messages(6);
  for (std::size_t m = 0; m < messages.size(); ++m) {
    messages[m].clear(kLength);
    messages[m].num_sent = kLength;
    messages[m].value.resize_discard(kLength);
    for (std::size_t i = 0; i < kLength; ++i) messages[m].value[i] = static_cast<T>(static_cast<double>(hash64(3, i) % 2001) - 1000);
  }
  messages[1].value[39'999] = -T(1e30);
  messages[2].value[20'000] = kNaN;
  messages[3].value[0] = -kInfinity;
  messages[4].excluded.resize_discard(1);
  messages[4].excluded[0] = kInfinity;
  messages[5].scale.resize_discard(2);
  messages[5].scale[1] = -T(7);
  const std::vector<Payload<T>> there = on_device(messages);
  std::vector<Channel<T>> channels;
  for (const Payload<T>& message : there) channels.push_back({&message, &scope});
  Where magnitudes = of_messages("largest magnitudes", messages.size(), kLength);
  magnitudes.precision = test::kPrecisionName<T>;
  test::in_each_order(magnitudes, [&](const Where& where) {
    const auto tally = codec::make_device_tally<T>();
    tally->count(channels);
    const double value[] = {1000, T(1e30), kInfinity, kInfinity, 1000, 1000};
    for (std::size_t m = 0; m < channels.size(); ++m) {
      EXPECT_TRUE(channels[m].tally.has_magnitudes);
      const Where message = where.with("message " + std::to_string(m));
      EXPECT_TRUE(same_value(message, "largest_value", value[m], channels[m].tally.largest_value));
      EXPECT_TRUE(same_value(message, "largest_excluded", double{m == 4 ? kInfinity : 0}, channels[m].tally.largest_excluded));
      EXPECT_TRUE(same_value(message, "largest_scale", m == 5 ? 7.0 : 0.0, channels[m].tally.largest_scale));
    }
  });
}

TEST(GpuTallyOfNumbers, FindsTheLargestMagnitude) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  expect_magnitudes<float>();
  expect_magnitudes<double>();
}

TEST(GpuTallyOfLevels, OutsideTheFormatAreLeftToTheHost) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const Scope scope = test::model_scope(300);
  std::vector<Payload<float>> messages;
  messages.push_back(levels_of(300, {.map = LevelMap::linear, .min_level = 0, .bits = 3}, 9));
  const std::vector<Payload<float>> there = on_device(messages);
  Channel<float> channel{&there[0], &scope};
  const auto tally = codec::make_device_tally<float>();
  tally->count({&channel, 1});
  EXPECT_TRUE(channel.tally.levels.empty());
  EXPECT_THROW((void)codec::encoded_bits<float>({&channel, 1}), Error);
}

}  // namespace
}  // namespace fl
