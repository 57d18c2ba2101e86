// Tests the convergence theory of error feedback as inequalities on a run: logistic regression with full gradients (no noise: M = 0, sigma
// = 0) and known L, mu, kappa and delta. Each theorem is tested under its own step-size condition and for its own quantity.
//
// The numbers of theorems and lemmas follow A. N. Sahu, A. Dutta, A. M. Abdelmoniem, T. Banerjee, M. Canini, P. Kalnis, "Rethinking
// gradient sparsification as total error minimization", NeurIPS 2021. e_t is in the unit of a step, kappa in that of a gradient. Each test
// also states the factor within which its bound is met, so that a bound that holds for anything is noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fl_core/random/random.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;

constexpr std::size_t kRounds = 400;

// The quantities of the theorems, at x_t and e_t for t = 0 .. T = kRounds; averages are over t < T.
struct Trace {
  double L = 0, mu = 0, f_star = 0, step = 0;
  std::size_t d = 0;
  double f_at_average = 0;           // f(mean of x_t)
  double f_at_weighted_average = 0;  // with weights (1 - gamma mu / 2)^-(t+1)
  Vector f, grad_norm_sq, zeta_sq, error_norm_sq, mean_error_norm_sq, virtual_distance_sq;

  [[nodiscard]] double mean(const Vector& v) const {
    double sum = 0;
    for (std::size_t t = 0; t < kRounds; ++t) sum += v[t];
    return sum / kRounds;
  }
};

struct ConvexProblem {
  ScenarioText text;
  double mu = 0;  // strong convexity of every f_i
};

// 400 rows of mushrooms sorted by label on n clients, started far away. The losses alone are convex: mu = l2, which trace_of fills in.
ConvexProblem logistic(int clients, const std::string& up) {
  ScenarioText s = test::logistic("name = 'mushrooms'\nrows = 400", clients);
  s.model = "kind = 'logistic_regression'\nbias = false\nl2 = 'L/50'";
  s.start = "kind = 'zero'\nshift = 0.5";
  s.up = up;
  return {s};
}

// Three clients |x - x_i|^2 / 2 started at the optimum: what bounds say of the start is zero, and what is left is compression.
ConvexProblem spheres(const std::string& up) {
  ScenarioText s = test::quadratics("clients = 3\nmu = 1\nL = 1\nzeta_sq = 4");
  s.partition = "kind = 'natural'\nclients = 3";
  s.start = "kind = 'optimum'";
  s.up = up;
  return {s, 1.0};
}

// step_times_L: gamma in units of 1/L, L the smoothness of every f_i, regulariser included.
Trace trace_of(ConvexProblem problem, double step_times_L) {
  ScenarioText& s = problem.text;
  s.local = "kind = 'gradient'\nlearning_rate = '" + std::to_string(step_times_L) + "/(L_max+l2)'";
  s.up += "\nunit = 'step'";
  s.feedback = "kind = 'ef14'";
  OneRun<double> run(s.str());
  Trace t;
  const auto& names = run.problem().resolved();
  const auto& optimum = run.problem().optimum({});
  t.L = names.at("L_max") + names.at("l2");
  t.mu = problem.mu > 0 ? problem.mu : names.at("l2");
  t.f_star = optimum.value;
  t.step = run->step_size();
  t.d = run.problem().P();
  const std::vector<double>& weights = run.problem().weights();
  Vector average(t.d, 0.0), weighted_average = average;
  double weighted = 0;
  for (std::size_t r = 0; r <= kRounds; ++r) {
    if (r > 0) run.play(static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(r));
    const GradientStatistics gradient = run->evaluator().gradient(run->model());
    const Vector mean_error = test::mean_state(run, "error"), virtual_iterate = test::minus(run.model(), mean_error);
    double error = 0;
    for (std::uint32_t i = 0; i < weights.size(); ++i) error += weights[i] * test::norm_sq(test::state_of(run, "error", i));
    t.f.push_back(run->evaluator().train_loss(run->model()));
    t.grad_norm_sq.push_back(gradient.norm_sq);
    t.zeta_sq.push_back(gradient.zeta_sq);
    t.error_norm_sq.push_back(error);
    t.mean_error_norm_sq.push_back(test::norm_sq(mean_error));
    t.virtual_distance_sq.push_back(test::distance_sq(virtual_iterate, optimum.x));
    if (r == kRounds) break;
    const double weight = std::pow(1 - t.step * t.mu / 2, -static_cast<double>(r + 1));
    test::add(1.0 / kRounds, run.model(), average);
    test::add(weight, run.model(), weighted_average);
    weighted += weight;
  }
  for (double& a : weighted_average) a /= weighted;
  t.f_at_average = run->evaluator().train_loss(average);
  t.f_at_weighted_average = run->evaluator().train_loss(weighted_average);
  return t;
}

// The threshold on steps that is lambda on gradients: kappa^2 = d lambda^2.
std::string threshold_rule(double lambda) { return "kind = 'hard_threshold'\nrule = 'lambda'\nthreshold = " + std::to_string(lambda); }

double kappa_sq(const Trace& t, double lambda) { return static_cast<double>(t.d) * lambda * lambda; }

// value <= bound, and not by more than a factor `slack`.
void expect_bound(double value, double bound, double slack, const std::string& what) {
  EXPECT_LE(value, bound) << what;
  EXPECT_GE(value * slack, bound) << what << ": value / bound is " << value / bound;
}

// gamma <= share / L, up to the rounding of the quotient.
void expect_step_at_most(double share, const Trace& t) { ASSERT_LE(t.step * t.L, share * (1 + 1e-12)); }

// Theorem 1, one client: the total error sum_t |e_t|^2 alone says what compression costs.
TEST(NonConvexTheory, Theorem1TotalError) {
  for (const char* up :
       {"kind = 'top_k'\nk = 2", "kind = 'hard_threshold'\nthreshold = 0.01", "kind = 'random_k'\nk = 5\nscaled = false"}) {
    const Trace t = trace_of(logistic(1, up), 0.5);
    expect_step_at_most(0.5, t);
    const double gap = t.f[0] - t.f_star, T = kRounds;
    expect_bound(t.mean(t.grad_norm_sq), 4 * gap / (t.step * T) + 2 * t.L * t.L * t.mean(t.error_norm_sq), 1000, up);
  }
}

// Theorem 6: an absolute compressor, n clients. The distance does not see heterogeneity.
TEST(NonConvexTheory, Theorem6AbsoluteCompressor) {
  const auto check = [](const ConvexProblem& problem, double lambda, double slack) {
    const Trace t = trace_of(problem, 0.5);
    expect_step_at_most(0.5, t);
    const double gap = std::max(0.0, t.f[0] - t.f_star), T = kRounds;
    expect_bound(t.mean(t.grad_norm_sq), 4 * gap / (t.step * T) + 2 * t.step * t.step * t.L * t.L * kappa_sq(t, lambda), slack,
                 "Theorem 6");
  };
  check(logistic(5, threshold_rule(0.02)), 0.02, 30);
  check(spheres(threshold_rule(3)), 3, 100);
}

// The bound on the memory behind it: |e_t^i|^2 <= gamma^2 kappa^2.
TEST(NonConvexTheory, Remark5MemoryOfAnAbsoluteCompressor) {
  const Trace t = trace_of(logistic(5, threshold_rule(0.02)), 0.5);
  const double largest = *std::max_element(t.error_norm_sq.begin(), t.error_norm_sq.end());
  expect_bound(largest, t.step * t.step * kappa_sq(t, 0.02), 10, "Remark 5");
}

// Lemma 13: the memory of a delta-contraction, with (C, zeta^2) = (1, largest zeta^2 on the way). Random-k meets its delta exactly, in
// expectation: its mean over 2,000 messages is far from the bound by its factor of four, not by chance.
TEST(NonConvexTheory, Lemma13MemoryOfAContraction) {
  const auto check = [](const std::string& up, double slack) {
    const Trace t = trace_of(logistic(5, up + "\nk = 11"), 0.5);
    const double delta = 11 / static_cast<double>(t.d), zeta_sq = *std::max_element(t.zeta_sq.begin(), t.zeta_sq.end());
    const double bound = 2 * (1 - delta) * t.step * t.step / delta * (2 / delta * (t.mean(t.grad_norm_sq) + zeta_sq));
    expect_bound(t.mean(t.error_norm_sq), bound, slack, up);
  };
  check("kind = 'random_k'\nscaled = false", 10);
  check("kind = 'top_k'", 1000);
}

// Lemma 15: one step of the virtual iterate, in every round.
TEST(ConvexTheory, Lemma15OneStep) {
  for (const ConvexProblem& problem :
       {logistic(5, "kind = 'top_k'\nk = 11"), logistic(5, threshold_rule(0.02)), spheres(threshold_rule(3))}) {
    const Trace t = trace_of(problem, 0.25);
    expect_step_at_most(0.25, t);
    double tightest = 0;
    for (std::size_t r = 0; r < kRounds; ++r) {
      const double bound = (1 - t.step * t.mu / 2) * t.virtual_distance_sq[r] - t.step / 2 * (t.f[r] - t.f_star) +
                           3 * t.L * t.step * t.mean_error_norm_sq[r];
      ASSERT_LE(t.virtual_distance_sq[r + 1], bound + 1e-28) << problem.text.up << ", round " << r;
      if (bound > 1e-20) tightest = std::max(tightest, t.virtual_distance_sq[r + 1] / bound);
    }
    EXPECT_GT(tightest, 0.1) << problem.text.up;
  }
}

// Theorem 4, mu > 0, absolute compressor; D does not enter, as M = 0. Its mu is that of the clients, l2 for the logistic problem, whose
// sum converges much faster than exp(-gamma mu T / 2).
TEST(ConvexTheory, Theorem4StronglyConvex) {
  const auto check = [](const ConvexProblem& problem, double lambda, double slack) {
    const Trace t = trace_of(problem, 0.25);
    expect_step_at_most(0.25, t);
    const double T = kRounds, far = t.virtual_distance_sq[0] / t.step * std::exp(-t.step * t.mu * T / 2);
    const double bound = 2 * (far + 3 * t.L * kappa_sq(t, lambda) * t.step * t.step);
    expect_bound(t.f_at_weighted_average - t.f_star, bound, slack, "Theorem 4");
  };
  check(logistic(5, threshold_rule(0.02)), 0.02, 10000);
  check(spheres(threshold_rule(3)), 3, 30000);
}

// Theorem 5 asks for convexity only, so that it holds here too; the average is the plain one.
TEST(ConvexTheory, Theorem5Convex) {
  constexpr double kLambda = 0.02, T = kRounds;
  const Trace t = trace_of(logistic(5, threshold_rule(kLambda)), 0.25);
  expect_step_at_most(0.25, t);
  const double far = t.virtual_distance_sq[0] / (t.step * T);
  expect_bound(t.f_at_average - t.f_star, 2 * (far + 2 * t.L * kappa_sq(t, kLambda) * t.step * t.step), 30, "Theorem 5");
}

// Lemma 3: for a fixed sequence a_1 .. a_T and K elements in all, the hard threshold at the K-th largest magnitude of the stacked sequence
// has the least total error; Top-(K/T) in every step has more unless its supports are the same.
class TotalError : public testing::TestWithParam<int> {};

struct Total {
  double error = 0;
  std::size_t elements = 0;
};
Total total_of(Compressor<double>& op, const std::vector<Vector>& sequence) {
  Total total;
  const std::size_t d = sequence[0].size();
  const Scope scope{.kind = ScopeKind::model, .segments = {{.begin = 0, .end = d, .rows = d, .cols = 1}}, .excluded = {}, .P = d};
  for (const Vector& a : sequence) {
    const auto sent = test::compress(op, scope, a);
    total.error += test::norm_sq(sent.state);
    total.elements += sent.message.elements();
  }
  return total;
}

TEST_P(TotalError, HardThresholdIsOptimalForAFixedSequence) {
  constexpr std::size_t kDimension = 64, kSteps = 50, kPerStep = 4, kBudget = kSteps * kPerStep;
  RandomSequence random(static_cast<std::uint64_t>(GetParam()), Purpose::synthetic_data, 0);
  std::vector<Vector> sequence(kSteps, Vector(kDimension));
  std::vector<double> magnitudes;
  for (std::size_t t = 0; t < kSteps; ++t)
    for (double& a : sequence[t]) {
      a = random.normal() * std::exp(-0.05 * static_cast<double>(t));
      magnitudes.push_back(std::fabs(a));
    }
  std::sort(magnitudes.rbegin(), magnitudes.rend());
  double least = 0;
  for (std::size_t j = kBudget; j < magnitudes.size(); ++j) least += magnitudes[j] * magnitudes[j];

  const auto hard = test::make_compressor<double>("hard_threshold", {{"threshold", Value{magnitudes[kBudget - 1]}}});
  const auto top = test::make_compressor<double>("top_k", {{"k", Value{static_cast<std::int64_t>(kPerStep)}}});
  const Total by_threshold = total_of(*hard, sequence), by_top_k = total_of(*top, sequence);
  EXPECT_EQ(by_threshold.elements, kBudget);
  EXPECT_EQ(by_top_k.elements, kBudget);
  EXPECT_NEAR(by_threshold.error / least, 1.0, 1e-12) << "the least error that any choice of K entries has";
  EXPECT_LT(by_threshold.error, by_top_k.error);

  // The same K entries in every step: equal supports, equal errors.
  for (std::size_t t = 0; t < kSteps; ++t) sequence[t] = sequence[0];
  std::sort(sequence[0].begin(), sequence[0].end(), [](double a, double b) { return std::fabs(a) > std::fabs(b); });
  const auto same = test::make_compressor<double>("hard_threshold", {{"threshold", Value{std::fabs(sequence[0][kPerStep - 1])}}});
  EXPECT_DOUBLE_EQ(total_of(*same, sequence).error, total_of(*top, sequence).error);
}

// Returns the inputs of Top-k: p = e + gamma g of every client in every round of a run with error feedback.
std::vector<Vector> inputs_of_top_k(std::int64_t k, std::uint32_t rounds) {
  ScenarioText s = logistic(5, "kind = 'top_k'\nk = " + std::to_string(k)).text;
  s.local = "kind = 'gradient'\nlearning_rate = '0.5/(L_max+l2)'";
  s.up += "\nunit = 'step'";
  s.feedback = "kind = 'ef14'";
  OneRun<double> run(s.str());
  const test::ClientGradients gradient(run);
  std::vector<Vector> inputs;
  for (std::uint32_t r = 1; r <= rounds; ++r) {
    for (std::uint32_t i = 0; i < 5; ++i) {
      Vector p = test::state_of(run, "error", i);
      test::add(run->step_size(), gradient(run.model(), i), p);
      inputs.push_back(std::move(p));
    }
    run.play(r, r);
  }
  return inputs;
}

// The lemma on the sequence of a real run: one threshold for all rounds and clients loses less than Top-k did with as many elements.
TEST(TotalErrorOfARun, OneThresholdLosesLessThanTopKOnItsOwnInputs) {
  constexpr std::int64_t k = 6;
  const std::vector<Vector> sequence = inputs_of_top_k(k, 100);
  const std::size_t budget = sequence.size() * k;
  std::vector<double> magnitudes;
  for (const Vector& p : sequence)
    for (const double entry : p) magnitudes.push_back(std::fabs(entry));
  std::sort(magnitudes.rbegin(), magnitudes.rend());
  double least = 0;
  for (std::size_t j = budget; j < magnitudes.size(); ++j) least += magnitudes[j] * magnitudes[j];

  const auto top = test::make_compressor<double>("top_k", {{"k", Value{k}}});
  const auto hard = test::make_compressor<double>("hard_threshold", {{"threshold", Value{magnitudes[budget - 1]}}});
  const Total by_top_k = total_of(*top, sequence), by_threshold = total_of(*hard, sequence);
  EXPECT_EQ(by_top_k.elements, budget);
  EXPECT_LE(by_threshold.elements, budget + 5) << "magnitudes that are alike";
  EXPECT_GE(by_threshold.elements, budget);
  EXPECT_NEAR(by_threshold.error / least, 1, 1e-6);
  EXPECT_LT(by_threshold.error, 0.9 * by_top_k.error);
  // A threshold on either side sends more, or loses more.
  for (const double factor : {0.9, 1.1}) {
    const auto other = test::make_compressor<double>("hard_threshold", {{"threshold", Value{factor * magnitudes[budget - 1]}}});
    const Total by_other = total_of(*other, sequence);
    EXPECT_EQ(by_other.elements > by_threshold.elements, by_other.error < by_threshold.error) << factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TotalError, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace fl
