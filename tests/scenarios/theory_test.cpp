// Which runs a theorem speaks of, and that its bound holds beside what it bounds.
#include "scenarios/theory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scenarios/analysis/bounded_mean.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

constexpr int kRounds = 60;

// 400 rows of mushrooms on five clients, gamma = 1 / (4 L) with L that of every client.
test::ScenarioText fitting(const std::string& up) {
  test::ScenarioText s = test::logistic("name = 'mushrooms'\nrows = 400", 5);
  s.rounds = kRounds;
  s.start = "kind = 'zero'\nshift = 0.5";
  s.local = "kind = 'gradient'\nlearning_rate = '1/(4*(L_max+l2))'";
  s.up = up;
  s.feedback = "kind = 'ef14'";
  s.evaluate = "every = 1\ngradient = 'every'";
  return s;
}

struct Outcome {
  RunResult result;
  std::map<std::string, double> constants;
  BoundedMean mean;
};

Outcome run(const test::ScenarioText& text) {
  test::OneRun<double> one(text.str());
  Outcome outcome{.result = one->run({}), .constants = {}, .mean = {}};
  for (const ResolvedConstant& constant : outcome.result.record.constants) outcome.constants[constant.name] = constant.value;
  outcome.mean = bounded_mean(outcome.result.record, outcome.result.rows);
  return outcome;
}

// The bound holds in every round, and is not so large that it would hold for anything.
void expect_bounded(const Outcome& outcome, double slack) {
  const BoundedMean& mean = outcome.mean;
  ASSERT_EQ(mean.measured.size(), static_cast<std::size_t>(kRounds));
  double sum = 0;
  for (std::size_t T = 1; T <= mean.measured.size(); ++T) {
    sum += outcome.result.rows[T].global_grad_norm_sq;
    EXPECT_DOUBLE_EQ(mean.measured[T - 1], sum / static_cast<double>(T));
    EXPECT_LE(mean.measured[T - 1], mean.bound[T - 1]) << "round " << T;
    EXPECT_LE(mean.bound[T - 1], slack * mean.measured[T - 1]) << "round " << T;
  }
}

class TheoryOfRuns : public ::testing::Test {
 protected:
  void SetUp() override { FL_NEED_DATA(mushrooms, "libsvm/mushrooms"); }
};

TEST_F(TheoryOfRuns, AbsoluteCompressorsOfGradientsAndOfStepsHaveTheSameKappa) {
  const Outcome gradients = run(fitting("kind = 'hard_threshold'\nthreshold = 0.02"));
  EXPECT_EQ(gradients.mean.theorem, 6);
  EXPECT_NEAR(gradients.constants.at("theorem_kappa"), 0.02 * std::sqrt(112.0), 0.02) << "sqrt(d) lambda";
  expect_bounded(gradients, 300);
  const Outcome steps = run(fitting("kind = 'hard_threshold'\nrule = 'lambda'\nthreshold = 0.02\nunit = 'step'"));
  EXPECT_NEAR(steps.constants.at("theorem_kappa"), gradients.constants.at("theorem_kappa"), 1e-12);
  expect_bounded(steps, 300);
}

TEST_F(TheoryOfRuns, ContractionsHaveTheirDelta) {
  const Outcome top = run(fitting("kind = 'top_k'\nratio = 0.9"));
  EXPECT_EQ(top.mean.theorem, 7);
  EXPECT_NEAR(top.constants.at("theorem_delta"), 0.9, 0.01);
  expect_bounded(top, 1000);
}

TEST_F(TheoryOfRuns, WhatLosesNothingHasTheBoundOfGradientDescent) {
  test::ScenarioText s = fitting("kind = 'identity'");
  s.feedback = "kind = 'none'";
  const Outcome exact = run(s);
  EXPECT_EQ(exact.mean.theorem, 8);
  expect_bounded(exact, 300);
}

// gamma = 0.1, L = 2, f(x_0) - f* = 3: the bounds after two rounds, worked out by hand.
TEST(BoundedMean, HasTheConstantsOfTheTheorems) {
  std::vector<RoundRow> rows(3);
  rows[0].train_loss = 4;
  rows[0].zeta_sq = 5, rows[1].zeta_sq = 7, rows[2].zeta_sq = 100;  // the last is met after the rounds that are bounded
  rows[1].global_grad_norm_sq = 6, rows[2].global_grad_norm_sq = 2;
  const auto after_two = [&](double theorem, const char* name, double value) {
    RunRecord record;
    record.f_star = 1;
    record.constants = {{"gamma", 0.1}, {"theorem", theorem}, {"theorem_L", 2.0}, {name, value}};
    const BoundedMean mean = bounded_mean(record, rows);
    EXPECT_EQ(mean.measured, (std::vector<double>{6, 4}));
    return mean.bound.at(1);
  };
  EXPECT_DOUBLE_EQ(after_two(8, "unused", 0), 30);                                         // 2 * 3 / (0.1 * 2)
  EXPECT_DOUBLE_EQ(after_two(6, "theorem_kappa", 3), 60 + 0.72);                           // 4 * 3 / 0.2 + 2 * 0.01 * 4 * 9
  EXPECT_DOUBLE_EQ(after_two(7, "theorem_delta", 0.5), 120 + 16 * 0.04 * 7 * 0.5 / 0.25);  // 8 * 3 / 0.2 + ...
  rows[1].global_grad_norm_sq = kNotMeasured;
  RunRecord record;
  record.constants = {{"gamma", 0.1}, {"theorem", 8.0}, {"theorem_L", 2.0}};
  EXPECT_TRUE(bounded_mean(record, rows).bound.empty()) << "a round that was not measured";
}

TEST_F(TheoryOfRuns, NothingIsSaidWhereAnAssumptionFails) {
  const auto none = [](const test::ScenarioText& s, const char* why) {
    const Outcome outcome = run(s);
    EXPECT_EQ(outcome.mean.theorem, 0) << why;
    EXPECT_EQ(outcome.constants.count("theorem"), 0u) << why;
  };
  const test::ScenarioText good = fitting("kind = 'hard_threshold'\nthreshold = 0.02");
  test::ScenarioText s = good;
  s.local = "kind = 'gradient'\nlearning_rate = '1/(L_max+l2)'";
  none(s, "too large a step size");
  s = good;
  s.local += "\nbatch = 5";
  none(s, "gradients of minibatches");
  s = good;
  s.local += "\nschedule = 'cosine'";
  none(s, "a step size that changes");
  s = good;
  s.participation = "kind = 'uniform'\nclients = 3";
  none(s, "clients that are absent");
  s = good;
  s.server = "kind = 'sgd'\nmomentum = 0.5";
  none(s, "momentum");
  s = good;
  s.feedback = "kind = 'none'";
  none(s, "no feedback");
  s = good;
  s.evaluate = "every = 2\ngradient = 'every'";
  none(s, "rounds that were not measured");
  s = fitting("kind = 'top_k'\nk = 2");
  none(s, "a step size that is too large for this delta");
  s = fitting("kind = 'hard_threshold'\nthreshold = 0.25\nvalue_format = 'fp16'");
  none(s, "a promise that holds in a domain only");
}

}  // namespace
}  // namespace fl
