#include "scenarios/analysis/equal_bits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fl_core/config/error.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::ElementsAre;
using testing::HasSubstr;

using Rounds = std::vector<std::pair<std::uint64_t, double>>;

// A start and then rounds of equal bits with these values.
Rounds rounds_of(std::uint64_t bits, std::size_t rounds, const std::function<double(double)>& value) {
  Rounds curve;
  for (std::size_t r = 0; r <= rounds; ++r) curve.emplace_back(r == 0 ? 0 : bits, value(static_cast<double>(r)));
  return curve;
}
Rounds falling(std::uint64_t bits, std::size_t rounds, double first, double step) {
  return rounds_of(bits, rounds, [=](double r) { return first - step * r; });
}
Rounds constant(std::uint64_t bits, std::size_t rounds, double value) { return falling(bits, rounds, value, 0); }

// Compares with `none` by default.
std::vector<EqualBitsComparison> compared(const MadeStore& made, const StudyOptions& options = {.baseline = "none"},
                                          Against against = Against::bits_up) {
  return compare_at_equal_bits(read_study(made.store(), options), 0, against);
}

// By hand: the budget is min(1200, 1000) = 1000 and the window begins at 800. There `none` has the values after rounds 40 to 49, whose
// mean is start - 0.445, `top` those after rounds 80 to 99, start - 0.716.
TEST(EqualBits, EndPointsPerPairAndSeed) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double start = 8 + static_cast<double>(seed) / 10, own = 0.01 * static_cast<double>(seed * seed);
    made.add({"none", "1", seed, RunStatus::done, falling(20, 60, start, 0.01)});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 100, start + own, 0.008)});
  }
  const auto comparisons = compared(made);
  ASSERT_EQ(comparisons.size(), 1u);
  const EqualBitsComparison& top = comparisons[0];
  EXPECT_THAT(top.seeds, ElementsAre(1u, 2u, 3u));
  EXPECT_EQ(top.num_seeds, 3u);
  EXPECT_EQ(top.budget_bits.mean, 1000);
  EXPECT_NEAR(top.differences[0], 0.01 - 0.716 + 0.445, 1e-9);
  EXPECT_NEAR(top.value.value.mean, 8.2 + 0.14 / 3 - 0.716, 1e-9);
  EXPECT_NEAR(top.baseline_value.value.mean, 8.2 - 0.445, 1e-9);
  EXPECT_EQ(top.value.num_evaluations, 21u);
  EXPECT_EQ(top.baseline_value.num_evaluations, 11u);
  EXPECT_EQ(top.verdict, Verdict::better);
  EXPECT_EQ(top.why, "");
  EXPECT_EQ(top.remarks, "");
  // Up and down together: three times the bits, the same rounds.
  EXPECT_EQ(compared(made, {}, Against::bits_both)[0].budget_bits.mean, 3000);
  // Half of the budget: rounds 25 to 49 and 50 to 99.
  EXPECT_NEAR(compared(made, {.window = 0.5})[0].differences[0], 0.01 - 0.008 * 74.5 + 0.01 * 37, 1e-9);
  EXPECT_THROW((void)compared(made, {.window = 0}), ConfigError);
  EXPECT_THROW((void)compared(made, {.window = 1.5}), ConfigError);
}

TEST(EqualBits, NoClaimWhereTheIntervalContainsZero) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, constant(10, 30, 1)});
    made.add({"top", "1", seed, RunStatus::done, constant(10, 30, seed == 2 ? 0.5 : 1.4)});
  }
  EXPECT_EQ(compared(made)[0].verdict, Verdict::no_claim);
  EXPECT_EQ(compared(made)[0].why, "the interval contains zero");
}

// Five seeds that enter the runs nowhere: the same final model and the same bits, five times. They are one observation.
TEST(EqualBits, SeedsOfADeterministicStudyAreOnePair) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    made.add({.method = "none", .level = "1", .seed = seed, .rounds = constant(10, 30, 1), .checksum = "a1"});
    made.add({.method = "top", .level = "1", .seed = seed, .rounds = constant(10, 30, 0.5), .checksum = "b2"});
  }
  const Study study = read_study(made.store());
  const auto top = compare_at_equal_bits(study, 0, Against::bits_up)[0];
  EXPECT_EQ(top.verdict, Verdict::no_claim);
  EXPECT_EQ(top.why, "all 5 seeds gave the same pair of runs, one observation: nothing in them is random");
  EXPECT_THAT(top.seeds, ElementsAre(1u));
  EXPECT_EQ(top.num_seeds, 5u);
  EXPECT_FALSE(top.paired.difference.student.is_known());
  EXPECT_EQ(top.paired.p_value, 1);
  EXPECT_NEAR(top.paired.difference.mean, -0.5, 1e-12);
  EXPECT_FALSE(bits_to_target(study, 0, Against::bits_up, 0.6)[1].bits.interval.is_known());
  EXPECT_EQ(bits_to_target(study, 0, Against::bits_up, 0.6)[1].bits.count, 1u);
  EXPECT_EQ(values_at_common_bits(study, 0, Against::bits_up, Budget::of_panel)[1].ends.value.count, 1u);
  EXPECT_THAT(study.notes,
              ElementsAre(HasSubstr("partition.alpha = 1, none: 5 seeds, 1 distinct run; partition.alpha = 1, top: 5 seeds, 1")));
}

// The baseline is deterministic, the method is not: every pair is its own. scipy.stats.ttest_1samp: t = -12.739, p = 0.0061056.
TEST(EqualBits, OneDeterministicSideLeavesThePairsApart) {
  MadeStore made;
  const double values[] = {0.5, 0.62, 0.55, 0.55};
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    made.add({.method = "none", .level = "1", .seed = seed, .rounds = constant(10, 30, 1), .checksum = "a1"});
    made.add({.method = "top",
              .level = "1",
              .seed = seed,
              .rounds = constant(10, 30, values[seed - 1]),
              .checksum = seed > 2 ? "c" : std::to_string(seed)});
  }
  const auto top = compared(made)[0];
  EXPECT_THAT(top.seeds, ElementsAre(1u, 2u, 3u));  // 3 and 4 are the same pair
  EXPECT_EQ(top.num_seeds, 4u);
  EXPECT_NEAR(top.paired.p_value, 0.006105644529, 1e-9);
  EXPECT_EQ(top.verdict, Verdict::better);
}

// Equal values are no sign of equal runs: the models differ. Their differences have no spread, and no test follows from them.
TEST(EqualBits, EqualValuesOfDifferentRunsAreNoReplicatesAndNoClaim) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({.method = "none", .level = "1", .seed = seed, .rounds = constant(10, 30, 1), .checksum = "n" + std::to_string(seed)});
    made.add({.method = "top", .level = "1", .seed = seed, .rounds = constant(10, 30, 0.5), .checksum = "t" + std::to_string(seed)});
  }
  const Study study = read_study(made.store());
  const auto top = compare_at_equal_bits(study, 0, Against::bits_up)[0];
  EXPECT_TRUE(study.notes.empty());
  EXPECT_EQ(top.seeds.size(), 3u);
  EXPECT_EQ(top.paired.p_value, 1);
  EXPECT_EQ(top.why, "all pairs have the same difference, which does not tell how far chance moves it");
}

// The baseline's loss alternates around 0.5 by 0.15 from round to round. The last value flatters it, the end point does not.
TEST(EqualBits, AnOscillationIsJudgedByItsMiddleAndFlagged) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const double own = 0.001 * static_cast<double>(seed);
    made.add({"none", "1", seed, RunStatus::done,
              rounds_of(10, 200, [own](double r) { return 0.5 + own + (static_cast<int>(r) % 2 == 0 ? -0.15 : 0.15); })});
    made.add({"top", "1", seed, RunStatus::done, constant(10, 200, 0.353)});
  }
  const auto top = compared(made)[0];
  EXPECT_NEAR(top.paired.difference.mean, -0.15, 1e-9);  // by the last values it is 0
  EXPECT_EQ(top.verdict, Verdict::better);
  EXPECT_EQ(top.remarks, "baseline oscillates");
  const auto common = values_at_common_bits(read_study(made.store()), 0, Against::bits_up, Budget::of_panel);
  EXPECT_EQ(common[0].remarks, "oscillates");
  EXPECT_EQ(common[1].remarks, "");
  EXPECT_NEAR(default_target(read_study(made.store()), 0), 0.505, 1e-9);
}

TEST(EqualBits, ASwingThatCannotDecideIsNotFlagged) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double own = 0.001 * static_cast<double>(seed);
    made.add(
        {"none", "1", seed, RunStatus::done, rounds_of(10, 200, [own](double r) { return 0.5 + own + (static_cast<int>(r) % 2) * 0.01; })});
    made.add({"top", "1", seed, RunStatus::done, constant(10, 200, 0.1)});
  }
  EXPECT_EQ(compared(made)[0].remarks, "");
}

// Measured after every fourth round of 10 bits: three evaluations in the last 100 of 500 bits.
TEST(EqualBits, NoClaimFromFewEvaluations) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done,
              rounds_of(10, 50, [seed](double r) { return static_cast<int>(r) % 4 == 0 ? 1 + 0.01 * static_cast<double>(seed) : NAN; })});
    made.add({"top", "1", seed, RunStatus::done, constant(10, 50, 0.5)});
  }
  const auto top = compared(made)[0];
  EXPECT_EQ(top.verdict, Verdict::no_claim);
  EXPECT_EQ(top.why, "baseline: 3 evaluations in the last 20% of the bits; a claim needs 5 or more");
}

// Rounds of 100 bits against a budget of 1,500: four evaluations lie in the window, both ends included.
TEST(EqualBits, NoClaimFromAFewCoarseRounds) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, falling(100, 40, 8 + 0.1 * static_cast<double>(seed), 0.1)});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 150, 8, 0.05)});
  }
  EXPECT_EQ(compared(made)[0].why, "baseline: 4 evaluations in the last 20% of the bits; a claim needs 5 or more");
  EXPECT_EQ(compared(made, {.window = 0.4})[0].verdict, Verdict::better);
}

TEST(EqualBits, RefusedUpdatesForbidASilentClaim) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, constant(10, 30, 1 + 0.01 * static_cast<double>(seed))});
    made.add({.method = "top", .level = "1", .seed = seed, .rounds = constant(10, 30, 0.5), .refused = 2});
  }
  const Study study = read_study(made.store());
  const auto top = compare_at_equal_bits(study, 0, Against::bits_up)[0];
  EXPECT_EQ(top.verdict, Verdict::no_claim);
  EXPECT_EQ(top.why, "6 updates were refused, not finite");
  EXPECT_EQ(study.runs_text(study.cells[1]), "3, 6 updates refused");
  EXPECT_THAT(study.notes, ElementsAre(HasSubstr("6 updates of clients in 1 cell were refused")));
  const auto asked = compared(made, {.claims_despite_refused = true})[0];
  EXPECT_EQ(asked.verdict, Verdict::better);
  EXPECT_EQ(asked.remarks, "6 updates refused");
}

// At the budget the loss stands at 20 times its start, although the run is done: stores of earlier versions hold such runs.
TEST(EqualBits, AMethodThatDivergedAtTheBudgetHasNoMean) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"none", "1", seed, RunStatus::done, constant(10, 30, 1)});
    made.add({"top", "1", seed, RunStatus::done, rounds_of(10, 30, [](double r) { return r == 0 ? 1 : 20; })});
  }
  EXPECT_EQ(compared(made)[0].why, "3/3 diverged at this budget");
  const auto common = values_at_common_bits(read_study(made.store()), 0, Against::bits_up, Budget::of_panel);
  EXPECT_EQ(common[1].remarks, "3/3 diverged at this budget");
  EXPECT_TRUE(std::isnan(common[1].ends.value.mean));
}

TEST(EqualBits, SeedsThatOneSideLacksAndRunsThatDiverged) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) made.add({"none", "1", seed, RunStatus::done, falling(10, 40, 8, 0.1)});
  for (const std::uint64_t seed : {2, 3, 4}) made.add({"top", "1", seed, RunStatus::done, falling(10, 40, 8, 0.12)});
  for (const std::uint64_t seed : {1, 2})
    made.add({"bad", "1", seed, seed == 1 ? RunStatus::diverged : RunStatus::done, falling(10, 40, 8, 0.1)});
  const auto comparisons = compared(made);
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
    made.add({"none", "1", seed, RunStatus::done, constant(10, 30, 1)});
    made.add({"top", "1", seed, RunStatus::done, constant(10, 30, 3 + noise[seed - 1])});
    made.add({"hard", "1", seed, RunStatus::done, constant(10, 30, 2 - noise[seed - 1])});
  }
  const auto comparisons = compared(made);
  const auto [top, hard] = std::pair{comparisons[0], comparisons[1]};
  EXPECT_LT(top.paired.p_value, hard.paired.p_value);
  EXPECT_DOUBLE_EQ(top.paired.p_holm, 2 * top.paired.p_value);
  EXPECT_DOUBLE_EQ(hard.paired.p_holm, std::max(hard.paired.p_value, top.paired.p_holm));
  EXPECT_EQ(top.verdict, Verdict::worse);
}

// Seeds move both methods alike (pairing helps), or each on its own (it does not).
TEST(EqualBits, TellsWhetherPairingHelps) {
  MadeStore made;
  const double common[] = {0.1, -0.1, 0.3, 0.2}, own[] = {0.02, 0.01, -0.02, 0.03};
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    made.add({"none", "1", seed, RunStatus::done, constant(10, 30, 1 + common[seed - 1])});
    made.add({"alike", "1", seed, RunStatus::done, constant(10, 30, 2 + common[seed - 1] + own[seed - 1])});
    made.add({"other", "1", seed, RunStatus::done, constant(10, 30, 2 - common[seed - 1])});
  }
  const auto comparisons = compared(made);
  EXPECT_NEAR(comparisons[0].paired.variance_ratio, 0.008313539192, 1e-9);  // NumPy
  EXPECT_NEAR(comparisons[1].paired.variance_ratio, 2, 1e-9);               // var(2 c) / (2 var(c))
}

// The budget that all three reached is 200 bits.
TEST(EqualBits, CommonBudgetOfAPanel) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, falling(20, 100, 8, 0.1)});
  made.add({"top", "1", 1, RunStatus::done, falling(10, 40, 8, 0.1)});
  made.add({"sign", "1", 1, RunStatus::done, falling(5, 40, 8, 0.1)});
  const auto values = values_at_common_bits(read_study(made.store()), 0, Against::bits_up, Budget::of_panel);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_NEAR(values[0].ends.value.mean, 8 - 0.1 * 8.5, 1e-9);   // rounds 8 and 9
  EXPECT_NEAR(values[1].ends.value.mean, 8 - 0.1 * 17.5, 1e-9);  // rounds 16 to 19
  EXPECT_NEAR(values[2].ends.value.mean, 8 - 0.1 * 35.5, 1e-9);  // rounds 32 to 39
  EXPECT_EQ(values[0].budget_bits.mean, 200);
  EXPECT_EQ(values[0].ends.num_evaluations, 3u);
}

// Panel 1 reached 200 bits, panel 2 reached 100: a budget for both is 100. The method that diverged takes no part.
TEST(EqualBits, CommonBudgetOverLevels) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, falling(5, 40, 8, 0.1)});
  made.add({"none", "2", 1, RunStatus::done, falling(5, 20, 8, 0.1)});
  made.add({"bad", "2", 1, RunStatus::diverged, falling(1, 10, 8, 0.1)});
  const Study study = read_study(made.store());
  const auto apart = values_at_common_bits(study, 0, Against::bits_up, Budget::of_panel);
  const auto together = values_at_common_bits(study, 0, Against::bits_up, Budget::over_levels);
  ASSERT_EQ(together.size(), 3u);
  EXPECT_NEAR(apart[0].ends.value.mean, 8 - 0.1 * 35.5, 1e-9);
  EXPECT_NEAR(together[0].ends.value.mean, 8 - 0.1 * 17.5, 1e-9);
  EXPECT_NEAR(together[1].ends.value.mean, 8 - 0.1 * 17.5, 1e-9);
  EXPECT_TRUE(std::isnan(together[2].ends.value.mean));
}

// `top` reaches 1 after 70 bits with seed 1, never with seed 2 (ends at 80), and diverges with seed 3.
// Method m at shares of the baseline's bits: `top` sends 400 bits in 40 rounds, `dear` 4,000, `none` 32,000 in rounds of 800 bits. The
// budgets are 100, 200 and 400; at 400 the window begins at 320, and `top` has the values of rounds 32 to 39, whose mean over the bits
// is 4.45.
TEST(EqualBits, SharesOfTheBaselinesBits) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double noise = 0.01 * static_cast<double>(seed * seed);
    made.add({"none", "1", seed, RunStatus::done, falling(800, 40, 8, 0.1)});
    made.add({"dear", "1", seed, RunStatus::done, falling(100, 40, 8 + noise, 0.1)});
    made.add({"top", "1", seed, RunStatus::done, falling(10, 40, 8, 0.1)});
    made.add({"short", "1", seed, RunStatus::done, falling(10, seed == 1 ? 36 : 50, 8, 0.1)});
    made.add({"matched", "1", seed, RunStatus::done, falling(10, seed == 1 ? 39 : 50, 8 + noise, 0.1)});
  }
  const Study study = read_study(made.store(), {.baseline = "top"});
  EXPECT_EQ(study.references.is_reference, (std::vector<bool>{true, false, false, false, false}));
  const auto all = compare_at_shares(study, 0, Against::bits_up);
  ASSERT_EQ(all.size(), 15u);
  const auto at = [&](std::size_t share, std::size_t method) { return all[5 * share + method]; };
  EXPECT_DOUBLE_EQ(at(0, 2).budget_bits.mean, 100);
  EXPECT_DOUBLE_EQ(at(1, 2).budget_bits.mean, 200);
  EXPECT_NEAR(at(2, 2).value.value.mean, 4.45, 1e-12);
  EXPECT_EQ(at(2, 2).why, "") << "the baseline's own value";
  for (const std::size_t share : {0, 1, 2}) {
    EXPECT_EQ(at(share, 0).value.num_at_start, 3u);
    EXPECT_THAT(at(share, 0).why, HasSubstr("still at its initial model"));
    EXPECT_EQ(at(share, 0).verdict, Verdict::no_claim);
  }
  EXPECT_EQ(at(0, 1).value.num_at_start, 0u) << "its first round ends with the budget";
  EXPECT_THAT(at(2, 1).why, HasSubstr("1 evaluation in the last 20%"));
  EXPECT_EQ(at(1, 3).why, "all pairs have the same difference, which does not tell how far chance moves it");
  EXPECT_EQ(at(2, 3).why, "1 of 3 runs end before this budget");
  EXPECT_TRUE(std::isnan(at(2, 3).value.value.mean));
  EXPECT_NEAR(at(2, 4).budget_bits.mean, (390 + 400 + 400) / 3.0, 1e-9) << "it is compared where it ended";
  EXPECT_EQ(at(2, 4).seeds.size(), 3u);
}

// All budgets are one family.
TEST(EqualBits, SharesAreOneFamily) {
  MadeStore made;
  const double noise[] = {0.1, -0.1, 0.3};
  for (const std::uint64_t seed : {1, 2, 3}) {
    made.add({"top", "1", seed, RunStatus::done, constant(10, 100, 1)});
    made.add({"hard", "1", seed, RunStatus::done, constant(10, 100, 3 + noise[seed - 1])});
  }
  const auto all = compare_at_shares(read_study(made.store(), {.baseline = "top"}), 0, Against::bits_up);
  ASSERT_EQ(all.size(), 6u);
  for (const std::size_t share : {0, 1, 2}) {
    EXPECT_EQ(all[2 * share + 1].verdict, Verdict::worse);
    EXPECT_DOUBLE_EQ(all[2 * share + 1].paired.p_holm, 3 * all[2 * share + 1].paired.p_value);
    EXPECT_EQ(all[2 * share].verdict, Verdict::no_claim) << "the baseline is not compared with itself";
  }
}

TEST(EqualBits, BitsToTargetCensorsRunsThatNeverGetThere) {
  MadeStore made;
  made.add({"top", "1", 1, RunStatus::done, falling(10, 8, 8, 1)});
  made.add({"top", "1", 2, RunStatus::done, falling(10, 8, 8, 0.1)});
  made.add({"top", "1", 3, RunStatus::diverged, {{0, 8}, {10, INFINITY}}});
  const Study study = read_study(made.store());
  const auto targets = bits_to_target(study, 0, Against::bits_up, 1);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].bits.count, 3u);
  EXPECT_EQ(targets[0].bits.reached, 1u);
  EXPECT_TRUE(std::isinf(targets[0].bits.median));
  // The worse of the two finished runs: of 16 bits 6 at 8 - 0.6 and 10 at 8 - 0.7.
  EXPECT_NEAR(default_target(study, 0), (6 * 7.4 + 10 * 7.3) / 16, 1e-12);
}

}  // namespace
}  // namespace fl
