#include "scenarios/analysis/contrasts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fl_core/config/error.hpp"
#include "scenarios/analysis/sign_flip.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::HasSubstr;

const std::vector<double> kExtraSleep = {1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4};

// scipy 1.17: permutation_test((d,), numpy.mean, permutation_type="samples", n_resamples=inf).pvalue = 4/1024.
TEST(SignFlip, IsExactForFewValues) {
  const SignFlip flip = sign_flip_test(kExtraSleep);
  EXPECT_TRUE(flip.is_exact);
  EXPECT_DOUBLE_EQ(flip.p_value, 4.0 / 1024);
  EXPECT_DOUBLE_EQ(sign_flip_test(std::vector<double>{1, 1, 1}).p_value, 0.25);
  EXPECT_DOUBLE_EQ(sign_flip_test(std::vector<double>{1, -1}).p_value, 1);
  EXPECT_DOUBLE_EQ(sign_flip_test(std::vector<double>{3}).p_value, 1);
  EXPECT_DOUBLE_EQ(sign_flip_test(std::vector<double>{1, NAN, 2}).p_value, 1);
}

// The tolerance is four standard deviations of the share of the drawn vectors.
TEST(SignFlip, DrawnVectorsAreNearTheExactShare) {
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) values.push_back(i % 3 == 0 ? -1 : 1);  // the sum is 8: p = P(|S| >= 8) for 24 coins
  const SignFlip flip = sign_flip_test(values);
  EXPECT_FALSE(flip.is_exact);
  const double exact = 0.15158963203430176;  // scipy: 2 * stats.binom.sf(15, 24, 0.5)
  EXPECT_NEAR(flip.p_value, exact, 4 * std::sqrt(exact * (1 - exact) / kFlips));
  EXPECT_EQ(sign_flip_test(values).p_value, flip.p_value);
}

// By hand: three chains. The smallest is 3 * 0.004, its second follows at 3 * 0.006; then two chains remain.
TEST(SignFlip, ChainsPassTheirShareOn) {
  const std::vector<std::pair<double, double>> chains = {{0.004, 0.006}, {0.01, 0.2}, {0.5, 0.001}};
  const auto adjusted = chain_adjusted(chains);
  EXPECT_NEAR(adjusted[0].first, 0.012, 1e-15);
  EXPECT_NEAR(adjusted[0].second, 0.018, 1e-15);
  EXPECT_NEAR(adjusted[1].first, 0.02, 1e-15);
  EXPECT_NEAR(adjusted[1].second, 0.4, 1e-15);
  EXPECT_NEAR(adjusted[2].first, 0.5, 1e-15);
  EXPECT_NEAR(adjusted[2].second, 0.5, 1e-15);  // no earlier than its first
}

TEST(Margins, AreReadWithTheirUnits) {
  EXPECT_DOUBLE_EQ(read_margin("1.1x")->value, 1.1);
  EXPECT_TRUE(read_margin("1.1x")->is_ratio);
  EXPECT_DOUBLE_EQ(read_margin("0.5pt")->value, 0.005);
  for (const char* text : {"", "x", "1x", "0.9x", "1.1", "0pt", "-1pt", "100pt", "nanx", "infx", "1.1 x"})
    EXPECT_FALSE(read_margin(text)) << text;
}

std::vector<std::pair<std::uint64_t, double>> held(double start, double value) {
  std::vector<std::pair<std::uint64_t, double>> rounds(31, {10, value});
  rounds.front() = {0, start};
  return rounds;
}

// Adds both methods at three levels with zeta^2 = 1, e, e^2 at x*: log(A/B) = intercept + slope * level.
void add_lines(MadeStore& made, std::uint64_t seed, double intercept, double slope) {
  for (int level = 0; level < 3; ++level) {
    const std::vector<ResolvedConstant> zeta = {{"zeta_sq_at_optimum", std::exp(level)}};
    made.add({.method = "a",
              .level = std::to_string(level),
              .seed = seed,
              .rounds = held(8, 0.1 * std::exp(intercept + slope * level)),
              .constants = zeta});
    made.add({.method = "b", .level = std::to_string(level), .seed = seed, .rounds = held(8, 0.1), .constants = zeta});
  }
}

constexpr double kPOfDifferences = 0.06318007496544598;  // by the closed form of Student's distribution for 3 degrees of freedom

Contrasts contrast(const MadeStore& made, ContrastOptions options = {}) {
  if (options.contrasts.empty()) options.contrasts = {"a:b"};
  return contrast_methods(read_study(made.store(), {.measures = {"f_gap"}}), 0, Against::bits_up, options);
}

// The slopes are 0.3, 0.1, 0.2, 0.25. scipy: ttest_1samp: p = 0.015587, interval [0.07662, 0.34838]; permutation test: 2/16.
TEST(Contrasts, SlopesOfKnownLines) {
  MadeStore made;
  const double slopes[] = {0.3, 0.1, 0.2, 0.25};
  for (const std::uint64_t seed : {1, 2, 3, 4}) add_lines(made, seed, 0.05 * static_cast<double>(seed), slopes[seed - 1]);
  const Contrasts contrasts = contrast(made, {.margins = {*read_margin("1.1x")}});
  EXPECT_EQ(contrasts.heterogeneity, Heterogeneity::at_optimum);
  EXPECT_THAT(contrasts.levels, testing::ElementsAre("0", "1", "2"));
  ASSERT_EQ(contrasts.slopes.size(), 1u);
  const SlopeContrast& slope = contrasts.slopes[0];
  ASSERT_EQ(slope.slopes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(slope.slopes[i], slopes[i], 1e-12);
  EXPECT_NEAR(slope.slope.mean, 0.2125, 1e-12);
  EXPECT_NEAR(slope.slope.student.low, 0.07662345581, 1e-10);
  EXPECT_NEAR(slope.slope.student.high, 0.34837654419, 1e-10);
  EXPECT_NEAR(slope.p_value, 0.0155873581215, 1e-10);
  EXPECT_DOUBLE_EQ(slope.p_flip, 0.125);
  EXPECT_EQ(slope.why, "");
  EXPECT_EQ(slope.verdict, Verdict::worse);  // the gap of A grows with heterogeneity
  EXPECT_EQ(contrasts.margins[0].result, MarginResult::not_shown);
  EXPECT_NEAR(contrasts.margins[0].difference.mean, 0.125 + 2 * 0.2125, 1e-12);
  // The sign-flip test of four seeds cannot decide.
  EXPECT_EQ(contrast(made, {.test = SlopeTest::sign_flip}).slopes[0].why, "not after Holm's correction");
}

// Adds both methods of a feedback, with the given slope of each seed.
void add_feedback(MadeStore& made, const std::string& feedback, const std::string& participation, const std::vector<double>& slopes) {
  for (std::size_t seed = 1; seed <= slopes.size(); ++seed)
    for (int level = 0; level < 3; ++level)
      for (const std::string method : {"a", "b"})
        made.add({.method = method,
                  .level = std::to_string(level),
                  .seed = seed,
                  .rounds = held(8, method == "b" ? 0.1 : 0.1 * std::exp(slopes[seed - 1] * level)),
                  .more_axes = {{"feedback.up", feedback}, {"local.kind", feedback}, {"participation", participation}},
                  .constants = {{"zeta_sq_at_optimum", std::exp(level)}}});
}

// By hand: the seeds' slopes are 0.3, 0.1, 0.2, 0.25 and 0.1, 0.05, 0.15, 0.05, so that their differences are 0.2, 0.05, 0.05, 0.2 with
// mean 0.125, variance 0.0075 and t = 0.125 / sqrt(0.0075 / 4) = 2.886751. The closed form of Student's distribution gives p = 0.063180;
// 2 of the 16 sign vectors reach the sum.
TEST(Contrasts, SlopesAreComparedBetweenFeedbacks) {
  MadeStore made;
  add_feedback(made, "x", "1", {0.3, 0.1, 0.2, 0.25});
  add_feedback(made, "y", "1", {0.1, 0.05, 0.15, 0.05});
  add_feedback(made, "y", "0.1", {0, 0.1, 0, 0.1});  // no feedback x beside it
  const Contrasts contrasts = contrast(made, {.between = {"feedback.up=x:y", "feedback.up=y:x"}});
  EXPECT_EQ(contrasts.slopes.size(), 3u);
  ASSERT_EQ(contrasts.slope_differences.size(), 2u);
  const SlopeDifference& one = contrasts.slope_differences[0];
  EXPECT_THAT(contrasts.groups[one.contrast.group], HasSubstr("feedback.up=x"));
  EXPECT_THAT(contrasts.groups[one.other_group], testing::AllOf(HasSubstr("feedback.up=y"), HasSubstr("participation=1")));
  const double expected[] = {0.2, 0.05, 0.05, 0.2};
  ASSERT_EQ(one.contrast.slopes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(one.contrast.slopes[i], expected[i], 1e-12);
  EXPECT_NEAR(one.contrast.slope.mean, 0.125, 1e-12);
  EXPECT_NEAR(one.contrast.p_value, kPOfDifferences, 1e-9);
  EXPECT_NEAR(one.contrast.p_holm, 2 * kPOfDifferences, 1e-9);
  EXPECT_DOUBLE_EQ(one.contrast.p_flip, 0.125);
  EXPECT_NEAR(contrasts.slope_differences[1].contrast.slope.mean, -0.125, 1e-12);
  // The slopes' own family is the same without the comparison.
  const Contrasts alone = contrast(made);
  EXPECT_TRUE(alone.slope_differences.empty());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(alone.slopes[i].p_holm, contrasts.slopes[i].p_holm);
}

TEST(Contrasts, ClearDifferencesOfSlopesAreClaimed) {
  MadeStore made;
  add_feedback(made, "x", "1", {0.3, 0.31, 0.32, 0.33, 0.3, 0.34});
  add_feedback(made, "y", "1", {0.1, 0.12, 0.11, 0.1, 0.13, 0.11});
  EXPECT_EQ(contrast(made, {.between = {"feedback.up=x:y"}}).slope_differences[0].contrast.verdict, Verdict::worse);
  EXPECT_EQ(contrast(made, {.between = {"feedback.up=y:x"}}).slope_differences[0].contrast.verdict, Verdict::better);
}

// A seed that only one feedback has, or that has no slope there, is left out, and nothing is claimed.
TEST(Contrasts, DifferencesOfSlopesNeedBothGroups) {
  MadeStore made;
  add_feedback(made, "x", "1", {0.3, 0.31, 0.32, 0.33, 0.35});
  add_feedback(made, "y", "1", {0.1, 0.12, 0.11, 0.1});
  const Contrasts contrasts = contrast(made, {.between = {"feedback.up=x:y"}});
  EXPECT_EQ(contrasts.slope_differences[0].contrast.slopes.size(), 4u);
  EXPECT_EQ(contrasts.slope_differences[0].contrast.num_left_out, 1u);
  EXPECT_THAT(contrasts.slope_differences[0].contrast.why, HasSubstr("seed 5 has runs in one of the two groups only"));
  EXPECT_EQ(contrasts.slope_differences[0].contrast.verdict, Verdict::no_claim);
}

// A diverged run counts as the initial model and does not shorten the budget; a finished run beyond f(x_0) - f* counts the same.
TEST(Contrasts, DivergedRunsAreBoundedByTheStart) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3}) add_lines(made, seed, 0, 0.1 * static_cast<double>(seed));
  const std::vector<ResolvedConstant> zeta = {{"zeta_sq_at_optimum", std::exp(2)}};
  made.add({.method = "a", .level = "2", .seed = 3, .status = RunStatus::diverged, .rounds = {{0, 8}, {10, NAN}}, .constants = zeta});
  made.add({.method = "b", .level = "2", .seed = 2, .rounds = held(8, 9), .constants = zeta});
  const Contrasts contrasts = contrast(made);
  for (const PairedRun& one : contrasts.differences) {
    const bool diverged = one.level == 2 && one.seed == 3, beyond = one.level == 2 && one.seed == 2;
    EXPECT_EQ(one.a.is_capped, diverged);
    EXPECT_EQ(one.b.is_capped, beyond);
    if (diverged) {
      EXPECT_DOUBLE_EQ(one.a.value, 8);
    }
    if (beyond) {
      EXPECT_DOUBLE_EQ(one.b.value, 8);
    }
    EXPECT_DOUBLE_EQ(one.budget, 300);
  }
  EXPECT_EQ(contrasts.slopes[0].num_capped, 2u);
  EXPECT_EQ(contrasts.slopes[0].slopes.size(), 3u);
}

// client_accuracy_p50 of a made run is 1 / (1 + value): 1/9 at the start. With four classes chance is 0.25; runs without the number of
// classes count as their initial model, and the option goes before both.
TEST(Contrasts, AccuraciesOfDivergedRunsAreChance) {
  const auto bound = [](const std::vector<ResolvedConstant>& more, const ContrastOptions& options) {
    MadeStore made;
    for (const std::string level : {"0", "1"})
      for (const std::string method : {"a", "b"}) {
        std::vector<ResolvedConstant> constants = {{"zeta_sq_at_optimum", level == "0" ? 1.0 : 2.0}};
        constants.insert(constants.end(), more.begin(), more.end());
        const bool diverges = method == "a" && level == "1";
        made.add({.method = method,
                  .level = level,
                  .status = diverges ? RunStatus::diverged : RunStatus::done,
                  .rounds = held(8, method == "a" && level == "0" ? 99 : 0.25),  // accuracies 0.01 and 0.8
                  .measures_clients = true,
                  .constants = constants});
      }
    const Study study = read_study(made.store(), {.measures = {"client_accuracy_p50"}});
    const Contrasts contrasts = contrast_methods(study, 0, Against::bits_up, options);
    EXPECT_EQ(contrasts.differences.size(), 2u);
    for (const PairedRun& one : contrasts.differences) EXPECT_TRUE(one.a.is_capped && !one.b.is_capped);
    EXPECT_EQ(contrasts.differences[0].a.value, contrasts.differences[1].a.value);  // a worse run counts as a diverged one
    return contrasts.differences[1].a.value;
  };
  EXPECT_DOUBLE_EQ(bound({{"num_classes", 4}}, {.contrasts = {"a:b"}}), 0.25);
  EXPECT_DOUBLE_EQ(bound({}, {.contrasts = {"a:b"}}), 1.0 / 9);
  EXPECT_DOUBLE_EQ(bound({{"num_classes", 4}}, {.contrasts = {"a:b"}, .chance = 0.5}), 0.5);
}

TEST(Contrasts, SeedsWithoutAllLevelsAndFailedRunsCarryNoClaim) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2, 3, 4}) add_lines(made, seed, 0, 0.1 + 0.01 * static_cast<double>(seed));
  made.add({.method = "a", .level = "0", .seed = 5, .rounds = held(8, 0.1), .constants = {{"zeta_sq_at_optimum", 1}}});
  made.add({.method = "b", .level = "0", .seed = 5, .rounds = held(8, 0.1), .constants = {{"zeta_sq_at_optimum", 1}}});
  const Contrasts missing = contrast(made);
  EXPECT_EQ(missing.slopes[0].slopes.size(), 4u);
  EXPECT_EQ(missing.slopes[0].num_left_out, 1u);
  EXPECT_THAT(missing.slopes[0].why, HasSubstr("seed 5 does not have all levels"));
  EXPECT_EQ(missing.slopes[0].verdict, Verdict::no_claim);
  made.add({.method = "a", .level = "1", .seed = 4, .status = RunStatus::failed});
  EXPECT_THAT(contrast(made).slopes[0].why, HasSubstr("a run failed"));
}

TEST(Contrasts, ProblemsNameTheOption) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2}) add_lines(made, seed, 0, 0.1);
  const auto message = [&](const ContrastOptions& options) {
    try {
      (void)contrast(made, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({.contrasts = {"a:c"}}), HasSubstr("--contrast: 'a:c' must be two different methods as A:B; there are 'a', 'b'"));
  EXPECT_THAT(message({.contrasts = {"a:a"}}), HasSubstr("two different methods"));
  EXPECT_THAT(message({.margins = {*read_margin("1pt")}}), HasSubstr("--margin: '1pt' fits no measure"));
  EXPECT_THAT(message({.between = {"feedback.up=x:y"}}), HasSubstr("--between: 'feedback.up=x:y' must be an axis with two of its labels"));
  EXPECT_THAT(message({.between = {"compressor.up=a:b"}}), HasSubstr("besides method and level there is no axis"));
  EXPECT_THAT(message({.levels = {"0", "7"}}), HasSubstr("no run has the level '7'"));
  EXPECT_EQ(message({.levels = {"2", "0"}}), "");
  EXPECT_EQ(contrast(made, {.heterogeneity = Heterogeneity::at_start}).slopes[0].slopes.size(), 0u);
  EXPECT_THAT(contrast(made, {.heterogeneity = Heterogeneity::at_start}).slopes[0].why, HasSubstr("zeta^2 at x_0 is not known"));
}

}  // namespace
}  // namespace fl
