#include "fl_core/random/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

// The vectors published with Random123 for philox4x32, 10 rounds.
TEST(RandomStream, AgreesWithPublishedVectors) {
  std::uint32_t words[4];
  RandomStream(0, 0, 0).quad(0, words);
  EXPECT_EQ((std::array{words[0], words[1], words[2], words[3]}), (std::array{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  RandomStream(UINT64_MAX, UINT32_MAX, UINT32_MAX, 0xffff, 0xffff).quad(UINT32_MAX, words);
  EXPECT_EQ((std::array{words[0], words[1], words[2], words[3]}), (std::array{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(RandomStream, EveryCoordinateOfTheCounterCounts) {
  std::set<std::uint32_t> words;
  for (std::uint64_t key : {1u, 2u})
    for (std::uint32_t client : {0u, 1u})
      for (std::uint32_t round : {0u, 1u})
        for (std::uint32_t step : {0u, 1u})
          for (std::uint32_t layer : {0u, 1u})
            for (std::uint64_t index : {0u, 1u, 4u}) words.insert(RandomStream(key, client, round, step, layer).bits(index));
  EXPECT_EQ(words.size(), 2u * 2 * 2 * 2 * 2 * 3);
}

TEST(RandomStream, UniformStaysBelowOne) {
  EXPECT_LT(RandomStream::to_uniform<float>(UINT32_MAX), 1.0f);
  EXPECT_LT(RandomStream::to_uniform<double>(UINT32_MAX), 1.0);
  EXPECT_EQ(RandomStream::to_uniform<float>(0), 0.0f);
}

TEST(RandomSequence, RepeatsForTheSameSeedAndPurpose) {
  RandomSequence a(7, Purpose::partition), b(7, Purpose::partition), other_seed(8, Purpose::partition), other_use(7, Purpose::minibatch);
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t word = a.next_bits();
    EXPECT_EQ(word, b.next_bits());
    EXPECT_NE(word, other_seed.next_bits());
    EXPECT_NE(word, other_use.next_bits());
  }
}

TEST(RandomSequence, IsItsStreamInOrder) {
  const RandomStream stream(9, 4, 2, 1, 3);
  RandomSequence sequence(stream);
  for (std::uint64_t i = 0; i < 11; ++i) EXPECT_EQ(sequence.next_bits(), stream.bits(i));
  RandomSequence copy = sequence;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sequence.next_bits(), copy.next_bits());
}

TEST(RandomSequence, BelowIsEvenAndInRange) {
  RandomSequence random(1, Purpose::partition);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(7));
  double chi_sq = 0;
  for (int count : counts) chi_sq += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_sq, 22.46);  // 6 degrees of freedom, 0.1%
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0u);
  const std::uint64_t wide = (std::uint64_t{1} << 40) + 1;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t drawn = random.below(wide);
    EXPECT_LT(drawn, wide);
    high = high || drawn > wide / 2;
  }
  EXPECT_TRUE(high);
  EXPECT_THROW((void)random.below(0), Error);
}

struct Moments {
  double mean = 0, variance = 0;
};
template <class Draw>
Moments moments(int count, Draw draw) {
  double sum = 0, sum_sq = 0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x;
    sum_sq += x * x;
  }
  const double mean = sum / count;
  return {mean, sum_sq / count - mean * mean};
}

TEST(RandomSequence, UniformNormalAndGammaHaveTheirMoments) {
  constexpr int kDraws = 200000;
  RandomSequence random(3, Purpose::synthetic_data);
  const Moments uniform = moments(kDraws, [&] { return random.uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.003);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.001);
  const Moments normal = moments(kDraws, [&] { return random.normal(); });
  EXPECT_NEAR(normal.mean, 0, 0.01);
  EXPECT_NEAR(normal.variance, 1, 0.015);
  for (const double shape : {0.1, 0.5, 1.0, 3.7, 50.0}) {
    const Moments gamma = moments(kDraws, [&] { return random.gamma(shape); });
    EXPECT_NEAR(gamma.mean, shape, 5 * std::sqrt(shape / kDraws)) << shape;
    EXPECT_NEAR(gamma.variance, shape, 0.06 * shape + 0.01) << shape;
  }
  EXPECT_THROW((void)random.gamma(0), Error);
  EXPECT_THROW((void)random.gamma(-1), Error);
  EXPECT_THROW((void)random.gamma(NAN), Error);
}

TEST(RandomSequence, ShuffleIsAnEvenPermutation) {
  std::array<std::array<int, 4>, 4> where{};
  RandomSequence random(5, Purpose::partition);
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    std::array<int, 4> items{0, 1, 2, 3};
    random.shuffle(items.begin(), items.end());
    for (std::size_t at = 0; at < 4; ++at) ++where.at(at).at(static_cast<std::size_t>(items.at(at)));
  }
  for (const auto& row : where)
    for (int count : row) EXPECT_NEAR(count, kDraws / 4, 450);
}

}  // namespace
}  // namespace fl
