// Tests which runs a theorem applies to, and that its bound holds for the bounded quantity.
#include "scenarios/experiment/theory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scenarios/experiment/bounds.hpp"
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
  BoundedAverage average;
};

Outcome run(const test::ScenarioText& text) {
  test::OneRun<double> one(text.str());
  Outcome outcome{.result = one->run({}), .constants = {}, .mean = {}, .average = {}};
  for (const ResolvedConstant& constant : outcome.result.record.constants) outcome.constants[constant.name] = constant.value;
  outcome.mean = bounded_mean(outcome.result.record, outcome.result.rows);
  outcome.average = bounded_average(outcome.result.record, outcome.result.rows);
  return outcome;
}

// The bound holds in every round, and is not so large that it would hold for anything.
void expect_bounded(const Outcome& outcome, double slack) {
  const BoundedMean& mean = outcome.mean;
  ASSERT_EQ(mean.measured.size(), static_cast<std::size_t>(kRounds));
  double sum = 0;
  for (std::size_t T = 1; T <= mean.measured.size(); ++T) {
    sum += outcome.result.rows[T - 1].global_grad_norm_sq;
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

// f at the weighted average of the models, against an average taken here from the models of every round.
void expect_average_bounded(const test::ScenarioText& text, int theorem, double slack) {
  test::OneRun<double> one(text.str());
  std::vector<std::vector<double>> models;
  const RunResult result = one->run([&](const RoundRow&) {
    models.emplace_back(one->model().begin(), one->model().end());
    return true;
  });
  const BoundedAverage average = bounded_average(result.record, result.rows);
  ASSERT_EQ(average.theorem, theorem);
  ASSERT_EQ(average.row.size(), static_cast<std::size_t>(kRounds) / 5);
  std::map<std::string, double> constants;
  for (const ResolvedConstant& constant : result.record.constants) constants[constant.name] = constant.value;
  const double q = 1 - constants.at("gamma") * constants.at("average_mu") / 2;
  for (std::size_t i = 0; i < average.row.size(); ++i) {
    const std::size_t T = average.row[i];
    std::vector<double> mean(models[0].size(), 0.0);
    double total = 0;
    for (std::size_t t = 0; t < T; ++t) total += std::pow(q, -static_cast<double>(t + 1));
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += std::pow(q, -static_cast<double>(t + 1)) / total * models[t][j];
    const double f = one->evaluator().train_loss(mean) - constants.at("f_star");
    EXPECT_NEAR(average.measured[i], f, 1e-12) << "round " << T;
    EXPECT_LE(average.measured[i], average.bound[i]) << "round " << T;
    EXPECT_LE(average.bound[i], slack * average.measured[i]) << "round " << T;
  }
}

TEST_F(TheoryOfRuns, AbsoluteCompressorsHaveABoundAtTheWeightedAverage) {
  test::ScenarioText s = fitting("kind = 'hard_threshold'\nthreshold = 0.02");
  s.evaluate = "every = 5\naverage = true";
  expect_average_bounded(s, 4, 1000);
  s.evaluate += "\noptimum = false";
  EXPECT_THROW(expect_average_bounded(s, 4, 300), ConfigError) << "without f* there is nothing to compare with";
}

// Without a regulariser the clients' losses are convex and no more; 3,000 rows of a9a cannot be separated.
TEST_F(TheoryOfRuns, AbsoluteCompressorsHaveABoundAtThePlainAverage) {
  FL_NEED_DATA(a9a, "libsvm/a9a");
  test::ScenarioText s = fitting("kind = 'hard_threshold'\nthreshold = 0.02");
  s.data = "name = 'a9a'\nrows = 3000\ntest = 'none'";
  s.model = "kind = 'logistic_regression'\nl2 = 0";
  s.start = "kind = 'optimum'\nshift = 0.5";  // which is far from zero
  s.evaluate = "every = 5\naverage = true";
  expect_average_bounded(s, 5, 1000);
}

TEST_F(TheoryOfRuns, NoBoundAtTheAverageForContractionsOrTooLargeSteps) {
  test::ScenarioText s = fitting("kind = 'top_k'\nratio = 0.9");
  s.evaluate = "every = 1\ngradient = 'every'\naverage = true";
  const Outcome top = run(s);
  EXPECT_EQ(top.mean.theorem, 7);
  EXPECT_EQ(top.average.theorem, 0);
  EXPECT_FALSE(std::isnan(top.result.rows.back().average_f_gap)) << "measured nevertheless";
  s.up = "kind = 'hard_threshold'\nthreshold = 0.02";
  s.local = "kind = 'gradient'\nlearning_rate = '1/(2*(L_max+l2))'";
  const Outcome large = run(s);
  EXPECT_EQ(large.mean.theorem, 6);
  EXPECT_EQ(large.average.theorem, 0);
}

// gamma = 0.1, L = 2, kappa = 3, R_0^2 = 5 after ten rounds, worked out by hand.
TEST(BoundedAverage, HasTheConstantsOfTheTheorems) {
  std::vector<RoundRow> rows(2);
  rows[1].round = 10;
  rows[1].average_f_gap = 0.25;
  const auto after_ten = [&](double theorem, double mu) {
    RunRecord record;
    record.constants = {{"gamma", 0.1},         {"average_theorem", theorem}, {"average_L", 2.0},
                        {"average_kappa", 3.0}, {"average_mu", mu},           {"average_R0_sq", 5.0}};
    const BoundedAverage average = bounded_average(record, rows);
    EXPECT_EQ(average.row, std::vector<std::size_t>{1});
    EXPECT_EQ(average.measured, std::vector<double>{0.25});
    return average.bound.at(0);
  };
  EXPECT_DOUBLE_EQ(after_ten(4, 0.4), 2 * (50 * std::exp(-0.2) + 0.54));  // 5 / 0.1 exp(-0.1 0.4 10 / 2) + 3 * 2 * 9 * 0.01
  EXPECT_DOUBLE_EQ(after_ten(5, 0), 2 * (5 + 0.36));                      // 5 / (0.1 * 10) + 2 * 2 * 9 * 0.01
  RunRecord record;
  EXPECT_EQ(bounded_average(record, rows).theorem, 0);
}

// gamma = 0.1, L = 2, f(x_0) - f* = 3: the bounds after two rounds, worked out by hand.
TEST(BoundedMean, HasTheConstantsOfTheTheorems) {
  std::vector<RoundRow> rows(3);
  rows[0].train_loss = 4;
  rows[0].zeta_sq = 5, rows[1].zeta_sq = 7, rows[2].zeta_sq = 100;   // the last is met after the rounds that are bounded
  rows[0].global_grad_norm_sq = 6, rows[1].global_grad_norm_sq = 2;  // at x_0 and x_1; that at x_2 does not matter
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

// The same with noise, M = 3, sigma^2 = 0.5, sum_i w_i^2 sigma_i^2 = 0.1 and the largest weight 0.2, worked out by hand: N = 3 * 0.2 * 7 +
// 0.1.
TEST(BoundedMean, HasTheTermsOfNoise) {
  std::vector<RoundRow> rows(3);
  rows[0].train_loss = 4;
  rows[0].zeta_sq = 5, rows[1].zeta_sq = 7;
  rows[0].global_grad_norm_sq = 6, rows[1].global_grad_norm_sq = 2;
  const auto after_two = [&](double theorem, const char* name, double value) {
    RunRecord record;
    record.f_star = 1;
    record.constants = {{"gamma", 0.1},
                        {"theorem", theorem},
                        {"theorem_L", 2.0},
                        {name, value},
                        {"theorem_M", 3},
                        {"theorem_sigma_sq", 0.5},
                        {"theorem_mean_sigma_sq", 0.1},
                        {"theorem_largest_weight", 0.2},
                        {"theorem_in_expectation", 1}};
    const BoundedMean mean = bounded_mean(record, rows);
    EXPECT_TRUE(mean.in_expectation);
    return mean.bound.at(1);
  };
  EXPECT_DOUBLE_EQ(after_two(8, "unused", 0), 30 + 0.2 * 4.3);
  EXPECT_DOUBLE_EQ(after_two(6, "theorem_kappa", 3), 60 + 0.4 * 4.3 + 0.72);
  EXPECT_DOUBLE_EQ(after_two(7, "theorem_delta", 0.5), 120 + 0.8 * 4.3 + 8 * 0.04 * ((4 + 3) * 7 + 0.5));
}

// N* = 2 * 3 * 0.2 * zeta^2(x*) + 0.1 with zeta^2(x*) = 0.25.
TEST(BoundedAverage, HasTheTermsOfNoise) {
  std::vector<RoundRow> rows(2);
  rows[1].round = 10;
  rows[1].average_f_gap = 0.25;
  RunRecord record;
  record.constants = {{"gamma", 0.1},
                      {"average_theorem", 5},
                      {"average_L", 2.0},
                      {"average_kappa", 3.0},
                      {"average_mu", 0},
                      {"average_R0_sq", 5.0},
                      {"theorem_M", 3},
                      {"theorem_sigma_sq", 0.5},
                      {"theorem_mean_sigma_sq", 0.1},
                      {"theorem_largest_weight", 0.2},
                      {"zeta_sq_at_optimum", 0.25}};
  EXPECT_DOUBLE_EQ(bounded_average(record, rows).bound.at(0), 2 * (5 + 0.1 * 0.4 + 0.36));
}

// Quadratics of one matrix: the variance of a row's gradient is the dial's value everywhere, 4 here, and that of a minibatch follows.
TEST(GradientNoise, OfQuadraticsIsExact) {
  const test::ScenarioText s = test::quadratics("clients = 5\nzeta_sq = 1\nrows_per_client = 6\nnoise = 4");
  test::OneRun<double> run(s.str());
  const auto noise_of = [&](bool replacement) {
    SamplingOptions sampling;
    sampling.batch = 2;
    sampling.replacement = replacement;
    return gradient_noise(run.problem(), sampling).value();
  };
  EXPECT_NEAR(noise_of(true).mean, 4.0 / 2, 1e-12);
  EXPECT_NEAR(noise_of(true).of_mean, 4.0 / 2 / 5, 1e-12);
  EXPECT_NEAR(noise_of(false).mean, 4.0 * (6 - 2) / (2 * (6 - 1)), 1e-12);
}

// The formulas for pairs of rows equal the average over all pairs, at any x: exactly for the share that drawing without replacement leaves,
// and as a bound for the variance of a row.
TEST_F(TheoryOfRuns, NoiseOfLogisticRegressionBoundsThatOfAllPairsOfRows) {
  test::ScenarioText s = fitting("kind = 'identity'");
  s.data = "name = 'mushrooms'\nrows = 24\ntest = 'none'";
  s.partition = "kind = 'shuffled'\nclients = 2";
  test::OneRun<double> run(s.str());
  const auto& problem = run.problem();
  const std::size_t P = problem.P();
  ThreadPool pool(1);
  std::vector<double> x(P);
  for (std::size_t j = 0; j < P; ++j) x[j] = 0.3 * std::sin(static_cast<double>(j));
  const auto gradient_of = [&](const std::vector<std::uint32_t>& rows) {
    std::vector<double> g(P);
    const std::span<const std::uint32_t> view(rows);
    problem.model().gradient(pool.exec(0), shared_view<const double>(x.data(), 1, P), {&view, 1}, {g.data(), nullptr, 1, P, P}, nullptr);
    return g;
  };
  for (const bool replacement : {true, false}) {
    SamplingOptions sampling;
    sampling.batch = 2;
    sampling.replacement = replacement;
    double measured = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const Shard& rows = problem.shards()[i];
      const std::vector<double> mean = gradient_of(rows);
      double sum = 0, pairs = 0;
      for (const std::uint32_t a : rows)
        for (const std::uint32_t b : rows) {
          if (a == b && !replacement) continue;
          const std::vector<double> g = gradient_of({a, b});
          for (std::size_t j = 0; j < P; ++j) sum += (g[j] - mean[j]) * (g[j] - mean[j]);
          ++pairs;
        }
      measured += problem.weights()[i] * sum / pairs;
    }
    const GradientNoise noise = gradient_noise(problem, sampling).value();
    EXPECT_LE(measured, noise.mean) << replacement;
    EXPECT_GE(measured * 20, noise.mean) << "not so large that it would hold for anything";
  }
}

// Theorems 6, 7 and 8 with minibatches of 5, and with an unbiased operator without feedback: the mean over twelve seeds stays below.
TEST_F(TheoryOfRuns, MinibatchesAreBoundedInExpectation) {
  const auto check = [](test::ScenarioText s, const std::string& seed_less, int theorem) {
    constexpr int kSeeds = 12;
    std::vector<double> measured(kRounds), bound(kRounds);
    for (int seed = 1; seed <= kSeeds; ++seed) {
      s.more = "[seeds]\nsampling = " + std::to_string(seed) + "\ncompressor = " + std::to_string(seed) + "\n";
      const Outcome outcome = run(s);
      ASSERT_EQ(outcome.mean.theorem, theorem) << seed_less;
      EXPECT_TRUE(outcome.mean.in_expectation);
      for (int T = 0; T < kRounds; ++T) {
        measured[T] += outcome.mean.measured[T] / kSeeds;
        bound[T] += outcome.mean.bound[T] / kSeeds;
      }
    }
    for (int T = 0; T < kRounds; ++T) EXPECT_LE(measured[T], bound[T]) << seed_less << ", round " << T + 1;
    EXPECT_LE(bound.back(), 3000 * measured.back()) << seed_less;
  };
  const std::string minibatches = "\nbatch = 5";
  test::ScenarioText s = fitting("kind = 'hard_threshold'\nthreshold = 0.02");
  s.local += minibatches;
  check(s, "absolute", 6);
  s = fitting("kind = 'top_k'\nratio = 0.9");
  s.local += minibatches + "\nreplacement = false";
  check(s, "contraction", 7);
  s = fitting("kind = 'identity'");
  s.local += minibatches;
  check(s, "exact", 8);
  s = fitting("kind = 'random_k'\nratio = 0.5\nscaled = true");
  s.feedback = "kind = 'none'";
  check(s, "unbiased", 8);
  s.local += minibatches;
  check(s, "unbiased with minibatches", 8);
}

// Theorems 4 with minibatches, and what the record says of them.
TEST_F(TheoryOfRuns, TheAverageHasTheNoiseOfTheClientsMean) {
  test::ScenarioText s = fitting("kind = 'hard_threshold'\nthreshold = 0.02");
  s.local += "\nbatch = 5";
  s.evaluate = "every = 5\naverage = true";
  const Outcome outcome = run(s);
  ASSERT_EQ(outcome.average.theorem, 4);
  EXPECT_TRUE(outcome.average.in_expectation);
  EXPECT_EQ(outcome.constants.at("theorem_M"), 0);
  EXPECT_NEAR(outcome.constants.at("theorem_mean_sigma_sq"), outcome.constants.at("theorem_sigma_sq") / 5, 1e-3);
  for (std::size_t i = 0; i < outcome.average.bound.size(); ++i) EXPECT_LE(outcome.average.measured[i], outcome.average.bound[i]);
}

// A random contraction keeps its promise in expectation alone, and so does the bound, without any noise of gradients.
TEST_F(TheoryOfRuns, RandomOperatorsAreBoundedInExpectation) {
  const Outcome outcome = run(fitting("kind = 'random_k'\nratio = 0.9"));
  EXPECT_EQ(outcome.mean.theorem, 7);
  EXPECT_TRUE(outcome.mean.in_expectation);
  EXPECT_EQ(outcome.constants.count("theorem_M"), 0u);
  EXPECT_EQ(run(fitting("kind = 'top_k'\nratio = 0.9")).constants.count("theorem_in_expectation"), 0u);
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
  s.model = "kind = 'linear_regression'\nl2 = 'L/100'";
  s.data += "\nlabels = 'target'";
  s.partition = "kind = 'contiguous'\nclients = 5";
  s.start = "kind = 'zero'";
  none(s, "minibatches whose variance grows with x");
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
