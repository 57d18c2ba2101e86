// Tests whole runs with independently known numbers: worked examples of papers, and constants of a published problem.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/plain_loop.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;

// Three quadratics on which Top-1 without memory runs away along (1,1,1); x* = 0.
// A. Beznosikov, S. Horvath, P. Richtarik, M. Safaryan, "On biased compression for distributed learning", 2020.
ScenarioText counterexample(const std::string& step, const std::string& feedback, const std::string& unit = "gradient") {
  ScenarioText s;
  s.data = "kind = 'beznosikov'";
  s.partition = "kind = 'natural'\nclients = 3";
  s.model = "kind = 'quadratic'";
  s.start = "kind = 'optimum'\nshift = 1";
  s.local = "kind = 'gradient'\nlearning_rate = " + step;
  s.up = "kind = 'top_k'\nk = 1\nunit = '" + unit + "'";
  s.feedback = feedback;
  return s;
}

double squared_norm_after(const ScenarioText& scenario, std::uint32_t rounds) {
  OneRun<double> run(scenario.str());
  run.play(1, rounds);
  return test::norm_sq(run.model());
}

// A printed value of seven digits.
void expect_printed(double value, double printed) { EXPECT_NEAR(value / printed, 1.0, 4e-7) << value << " against " << printed; }

TEST(Beznosikov, TopOneWithoutFeedbackGrowsByTheKnownFactor) {
  constexpr double kStep = 0.1;
  OneRun<double> run(counterexample("0.1", "kind = 'none'").str());
  for (std::uint32_t r = 1; r <= 10; ++r) {
    run.play(r, r);
    for (const double x : run.model()) EXPECT_NEAR(x / std::pow(1 + 11 * kStep / 6, r), 1.0, 1e-13) << "round " << r;
  }
  for (const double x : run.model()) EXPECT_NEAR(x, 5.38357767326, 5e-12);
}

TEST(Beznosikov, Ef14Converges) {
  expect_printed(squared_norm_after(counterexample("0.01", "kind = 'ef14'", "step"), 1000), 1.614732e-10);
  expect_printed(squared_norm_after(counterexample("0.01", "kind = 'ef14'", "gradient"), 1000), 1.614732e-10);
}

// Here a round sends C(g - h) and then steps along the h that results. The other order, step along h and then send, started from
// h = C(g_0) or from h = g_0, makes the same steps one for one; started from h = 0 its first step goes nowhere, so that its iterate
// after k rounds is ours after k - 1.
TEST(Beznosikov, Ef21FromEachStart) {
  const ScenarioText compressed = counterexample("0.01", "kind = 'ef21'");
  expect_printed(squared_norm_after(compressed, 1000), 1.595253e-10);
  expect_printed(squared_norm_after(compressed, 999), 1.634031e-10);
  expect_printed(squared_norm_after(counterexample("0.01", "kind = 'ef21'\ninit = 'dense'"), 1000), 1.478044e-10);
}

// P. Richtarik, I. Sokolov, I. Fatkhullin, "EF21", NeurIPS 2021: f_i = |x - a_i|^2 / 2 with a = (4,0), (0,3).
TEST(Ef21Example, FirstIterates) {
  ScenarioText s;
  s.data = "kind = 'ef21_example'";
  s.partition = "kind = 'natural'\nclients = 2";
  s.model = "kind = 'quadratic'";
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  s.up = "kind = 'top_k'\nk = 1";
  s.feedback = "kind = 'ef21'";
  OneRun<double> run(s.str());
  const Vector iterates[] = {{0.2, 0.15}, {0.38, 0.30}, {0.56, 0.42}};
  for (std::uint32_t r = 1; r <= 3; ++r) {
    run.play(r, r);
    EXPECT_LT(test::relative_distance(run.model(), iterates[r - 1]), 1e-14) << "x" << r;
  }
}

// The first 32,000 rows of a9a with l2 = L/1e4: L = sigma_max(A)^2 / (4m), the minimum, and f at x* + 1.
TEST(A9a, ConstantsOfTheLogisticProblem) {
  FL_NEED_DATA(a9a, "libsvm/a9a");
  ScenarioText s;
  s.rounds = 1;
  s.data = "name = 'libsvm/a9a'\nrows = 32000\ntest = 'none'";
  s.partition = "kind = 'contiguous'\nclients = 20";
  s.model = "kind = 'logistic_regression'\nbias = false\nl2 = 'L/1e4'";
  s.start = "kind = 'optimum'\nshift = 1";
  const RunResult result = test::run_text(s.str()).at(0);
  const auto constant = [&result](const std::string& name) {
    for (const ResolvedConstant& c : result.record.constants)
      if (c.name == name) return c.value;
    return kNotMeasured;
  };
  constexpr double kL = 1.5722182430111165, kMinimum = 0.32495668469063, kStart = 8.14775889635117;
  EXPECT_NEAR(constant("L") / kL, 1.0, 1e-13);
  EXPECT_NEAR(constant("f_star"), kMinimum, 1e-13);
  EXPECT_NEAR(constant("gamma"), 1 / (kL * (1 + 1e-4)), 1e-13);
  EXPECT_NEAR(result.rows.front().train_loss, kStart, 1e-12);
  EXPECT_NEAR(result.rows.front().f_gap, kStart - kMinimum, 1e-12);
}

}  // namespace
}  // namespace fl
