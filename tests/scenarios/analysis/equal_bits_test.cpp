#include "scenarios/analysis/equal_bits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::ElementsAre;
using testing::HasSubstr;

// A start and then rounds of equal bits, each of which multiplies the value.
std::vector<std::pair<std::uint64_t, double>> falling(std::uint64_t bits, std::size_t rounds, double first, double factor) {
  std::vector<std::pair<std::uint64_t, double>> curve = {{0, first}};
  for (std::size_t r = 1; r <= rounds; ++r) curve.emplace_back(bits, curve.back().second * factor);
  return curve;
}

// By hand, seed 1: budgets min(200, 40) = 40; none has 8/4 = 2 after two rounds of 20 bits, top has 8/16 = 0.5 after four of 10.
TEST(EqualBits, TruncationPerPairAndSeed) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double start = 8 + static_cast<double>(seed) / 10;
    made.add({"none", "1", seed, RunStatus::done, falling(20, 10, start, 0.5)});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 4, start, 0.5)});
  }
  const Study study = read_study(made.store());
  const auto comparisons = compare_at_equal_bits(study, 0, Against::bits_up);
  ASSERT_EQ(comparisons.size(), 1u);
  const EqualBitsComparison& top = comparisons[0];
  EXPECT_THAT(top.seeds, ElementsAre(1u, 2u, 3u));
  EXPECT_EQ(top.budget_bits.mean, 40);
  EXPECT_NEAR(top.differences[0], 8.1 / 16 - 8.1 / 4, 1e-12);
  EXPECT_NEAR(top.value.mean, 8.2 / 16, 1e-12);
  EXPECT_NEAR(top.baseline_value.mean, 8.2 / 4, 1e-12);
  EXPECT_EQ(top.measured_share, 1);
  EXPECT_EQ(top.verdict, Verdict::better);
  EXPECT_EQ(top.why, "");
  // Up and down together: three times the bits, the same rounds.
  EXPECT_EQ(compare_at_equal_bits(study, 0, Against::bits_both)[0].budget_bits.mean, 120);
}

TEST(EqualBits, NoClaimWhereTheIntervalContainsZero) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, {{0, 8}, {10, 1}}});
    made.add({"top", "1", seed, RunStatus::done, {{0, 8}, {10, seed == 2 ? 0.5 : 1.4}}});
  }
  const auto comparisons = compare_at_equal_bits(read_study(made.store()), 0, Against::bits_up);
  EXPECT_EQ(comparisons[0].verdict, Verdict::no_claim);
  EXPECT_EQ(comparisons[0].why, "the interval contains zero");
}

// At the budget of 150 bits `none` has played three rounds of 50 and was measured after the second.
TEST(EqualBits, NoClaimFromOldMeasurements) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, {{0, 8}, {50, 4}, {50, 2 + 0.1 * static_cast<double>(seed)}, {50, NAN}, {50, 1}}});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 15, 8, 0.5)});
  }
  const auto comparisons = compare_at_equal_bits(read_study(made.store()), 0, Against::bits_up);
  EXPECT_EQ(comparisons[0].verdict, Verdict::no_claim);
  EXPECT_NEAR(comparisons[0].measured_share, 100.0 / 150, 1e-12);
  EXPECT_THAT(comparisons[0].why, HasSubstr("measured too rarely: a value is from 66%"));
}

// Rounds of 100 bits against a budget of 150: the value after the first round is all that the budget buys.
TEST(EqualBits, CoarseRoundsAreNoOldMeasurements) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, falling(100, 4, 8 + 0.1 * static_cast<double>(seed), 0.5)});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 15, 8, 0.5)});
  }
  const auto comparisons = compare_at_equal_bits(read_study(made.store()), 0, Against::bits_up);
  EXPECT_EQ(comparisons[0].measured_share, 1);
  EXPECT_EQ(comparisons[0].verdict, Verdict::better);
}

TEST(EqualBits, SeedsThatOneSideLacksAndRunsThatDiverged) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) made.add({"none", "1", seed, RunStatus::done, falling(10, 4, 8, 0.5)});
  for (const std::uint64_t seed : {2, 3, 4}) made.add({"top", "1", seed, RunStatus::done, falling(10, 4, 8, 0.4)});
  for (const std::uint64_t seed : {1, 2})
    made.add({"bad", "1", seed, seed == 1 ? RunStatus::diverged : RunStatus::done, falling(10, 4, 8, 2)});
  const auto comparisons = compare_at_equal_bits(read_study(made.store()), 0, Against::bits_up);
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_THAT(comparisons[0].seeds, ElementsAre(2u, 3u));
  EXPECT_EQ(comparisons[1].why, "1/2 diverged");
  EXPECT_TRUE(comparisons[1].seeds.empty());
}

// Two comparisons make a family: the smaller p-value doubles.
TEST(EqualBits, TheFamilyIsCorrected) {
  MadeStore made;
  const double noise[] = {0.1, -0.1, 0.3};
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, {{0, 8}, {10, 1}}});
    made.add({"top", "1", seed, RunStatus::done, {{0, 8}, {10, 3 + noise[seed - 1]}}});
    made.add({"hard", "1", seed, RunStatus::done, {{0, 8}, {10, 2 - noise[seed - 1]}}});
  }
  const auto comparisons = compare_at_equal_bits(read_study(made.store()), 0, Against::bits_up);
  const auto [top, hard] = std::pair{comparisons[0], comparisons[1]};
  EXPECT_LT(top.paired.p_value, hard.paired.p_value);
  EXPECT_DOUBLE_EQ(top.paired.p_holm, 2 * top.paired.p_value);
  EXPECT_DOUBLE_EQ(hard.paired.p_holm, std::max(hard.paired.p_value, top.paired.p_holm));
  EXPECT_EQ(top.verdict, Verdict::worse);
}

// The budget that all three reached is 20 bits.
TEST(EqualBits, CommonBudgetOfAPanel) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, falling(20, 10, 8, 0.5)});
  made.add({"top", "1", 1, RunStatus::done, falling(10, 4, 8, 0.5)});
  made.add({"sign", "1", 1, RunStatus::done, falling(5, 4, 8, 0.5)});
  const auto values = values_at_common_bits(read_study(made.store()), 0, Against::bits_up, Budget::of_panel);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].value.mean, 4);
  EXPECT_EQ(values[1].value.mean, 2);
  EXPECT_EQ(values[2].value.mean, 0.5);
  EXPECT_EQ(values[0].budget_bits.mean, 20);
}

// Panel 1 reached 20 bits, panel 2 reached 10: a budget for both is 10. The method that diverged takes no part.
TEST(EqualBits, CommonBudgetOverLevels) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, falling(5, 4, 8, 0.5)});
  made.add({"none", "2", 1, RunStatus::done, falling(5, 2, 8, 0.5)});
  made.add({"bad", "2", 1, RunStatus::diverged, falling(1, 1, 8, 2)});
  const Study study = read_study(made.store());
  const auto apart = values_at_common_bits(study, 0, Against::bits_up, Budget::of_panel);
  const auto together = values_at_common_bits(study, 0, Against::bits_up, Budget::over_levels);
  ASSERT_EQ(together.size(), 3u);
  EXPECT_EQ(apart[0].value.mean, 0.5);
  EXPECT_EQ(together[0].value.mean, 2);
  EXPECT_EQ(together[1].value.mean, 2);
  EXPECT_TRUE(std::isnan(together[2].value.mean));
}

// `top` reaches 1 after 30 bits with seed 1, never with seed 2 (ends at 40), and diverges with seed 3.
TEST(EqualBits, BitsToTargetCensorsRunsThatNeverGetThere) {
  MadeStore made;
  made.add({"top", "1", 1, RunStatus::done, falling(10, 4, 8, 0.5)});
  made.add({"top", "1", 2, RunStatus::done, falling(10, 4, 8, 0.9)});
  made.add({"top", "1", 3, RunStatus::diverged, {{0, 8}, {10, INFINITY}}});
  const Study study = read_study(made.store());
  const auto targets = bits_to_target(study, 0, Against::bits_up, 1);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].bits.count, 3u);
  EXPECT_EQ(targets[0].bits.reached, 1u);
  EXPECT_TRUE(std::isinf(targets[0].bits.median));
  EXPECT_NEAR(default_target(study, 0), 8 * std::pow(0.9, 4), 1e-12);  // the worse of the two finished runs
}

}  // namespace
}  // namespace fl
