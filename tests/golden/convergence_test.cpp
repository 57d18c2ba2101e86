// Tests the limits of methods on a small heterogeneous quadratic: five clients, d = 20, Top-4, a constant step. Plain error feedback stalls
// at a distance that heterogeneity determines; methods that learn or know the clients' gradients at the optimum reach it up to rounding.
#include <gtest/gtest.h>

#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;

constexpr double kReached = 1e-20;  // |grad f|^2, from 1 at the start

struct MethodCase {
  std::string name, feedback, unit = "gradient", local = "", more = "";
};
void PrintTo(const MethodCase& c, std::ostream* out) { *out << c.name; }

ScenarioText top4(const MethodCase& c, const std::string& zeta_sq = "1") {
  ScenarioText s = test::quadratics("clients = 5\nzeta_sq = " + zeta_sq);
  s.local = "kind = 'gradient'\nlearning_rate = 0.1\n" + c.local;
  s.up = "kind = 'top_k'\nk = 4\nunit = '" + c.unit + "'\n" + c.more;
  s.feedback = c.feedback;
  return s;
}

double gradient_norm_sq(OneRun<double>& run) { return run->evaluator().gradient(run->model()).norm_sq; }

class ReachesTheOptimum : public testing::TestWithParam<MethodCase> {};

TEST_P(ReachesTheOptimum, ToRounding) {
  OneRun<double> run(top4(GetParam()).str());
  ASSERT_GT(gradient_norm_sq(run), 0.01);
  run.play(1, 8000);
  EXPECT_LT(gradient_norm_sq(run), kReached);
  EXPECT_LT(test::distance_sq(run.model(), run.problem().optimum({}).x), kReached / 0.01) << "mu = 0.1";
}

INSTANTIATE_TEST_SUITE_P(Methods, ReachesTheOptimum,
                         testing::Values(MethodCase{"EcGdStar", "kind = 'ef14'", "step", "subtract = 'optimum'"},
                                         MethodCase{"Ef21", "kind = 'ef21'"}, MethodCase{"Ef21Dense", "kind = 'ef21'\ninit = 'dense'"},
                                         MethodCase{"Ef21Sgdm", "kind = 'ef21'\nmomentum = 0.5"},
                                         MethodCase{"Ef21Plus", "kind = 'ef21_plus'"}, MethodCase{"Clag", "kind = 'clag'\nzeta = 1"},
                                         MethodCase{"ThreePcV4", "kind = 'three_pc'\nvariant = 'v4'"},
                                         MethodCase{"Clip21", "kind = 'clip21'\ntau = 0.5"},
                                         MethodCase{"EControl", "kind = 'econtrol'\neta = 0.05"},
                                         MethodCase{"EcGdDiana", "kind = 'ec_diana'\nalpha = 0.2", "step", "",
                                                    "[compressor.up.shift]\nkind = 'random_k'\nk = 4\nscaled = true\nunit = 'step'"}),
                         [](const auto& one) { return one.param.name; });

// The memory never empties: with a constant step the iterate circles x* at a distance that no number of rounds removes.
class Stalls : public testing::TestWithParam<MethodCase> {};

TEST_P(Stalls, UnderHeterogeneity) {
  OneRun<double> run(top4(GetParam()).str());
  double least = 1e300;
  run.play(1, 4000);
  for (std::uint32_t r = 4001; r <= 8000; ++r) {
    run.play(r, r);
    if (r % 10 == 0) least = std::min(least, gradient_norm_sq(run));
  }
  EXPECT_GT(least, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Methods, Stalls,
                         testing::Values(MethodCase{"EcGd", "kind = 'ef14'", "step"},
                                         MethodCase{"Cser", "kind = 'cser'\nreset_every = 8", "step"},
                                         MethodCase{"SaPef", "kind = 'sa_pef'", "step"}, MethodCase{"Cafe", "kind = 'cafe'"}),
                         [](const auto& one) { return one.param.name; });

TEST(PlainErrorFeedback, ReachesTheOptimumWithoutHeterogeneity) {
  OneRun<double> run(top4({"EcGd", "kind = 'ef14'", "step"}, "0").str());
  run.play(1, 8000);
  EXPECT_LT(gradient_norm_sq(run), kReached);
}

// |e|^2 is of the order gamma^2 zeta^2 / delta^2: a tenth of the step, a hundredth of the squared gradient.
TEST(PlainErrorFeedback, StallsCloserWithASmallerStep) {
  const auto stalls_at = [](const std::string& step) {
    ScenarioText s = top4({"EcGd", "kind = 'ef14'", "step"});
    s.local = "kind = 'gradient'\nlearning_rate = " + step;
    OneRun<double> run(s.str());
    run.play(1, 10000);
    double mean = 0;
    for (std::uint32_t r = 10001; r <= 12000; ++r) {
      run.play(r, r);
      mean += gradient_norm_sq(run) / 2000;
    }
    return mean;
  };
  const double coarse = stalls_at("0.1"), fine = stalls_at("0.01");
  EXPECT_GT(coarse, 50 * fine);
  EXPECT_LT(coarse, 200 * fine);
}

TEST(NoFeedback, StallsFartherThanErrorFeedback) {
  OneRun<double> none(top4({"None", "kind = 'none'"}).str()), ef14(top4({"EcGd", "kind = 'ef14'", "step"}).str());
  none.play(1, 4000);
  ef14.play(1, 4000);
  EXPECT_GT(gradient_norm_sq(none), 10 * gradient_norm_sq(ef14));
}

// ---- PowerSGD on the weight matrix [C,D] of a multinomial model ----

ScenarioText multinomial(const std::string& up, const std::string& feedback) {
  ScenarioText s;
  s.data = "kind = 'synthetic'\nclients = 4\nfeatures = 9\nclasses = 5";
  s.partition = "kind = 'natural'\nclients = 4";
  s.model = "kind = 'logistic_regression'\nl2 = 'L/20'";
  s.up = up;
  s.feedback = feedback;
  return s;
}

std::string power_sgd(int rank) { return "kind = 'powersgd'\nscope = 'tensor'\nrank = " + std::to_string(rank); }

TEST(PowerSgd, OfFullRankIsGradientDescent) {
  OneRun<double> full(multinomial(power_sgd(5), "kind = 'none'").str());
  OneRun<double> plain(multinomial("kind = 'identity'", "kind = 'none'").str());
  for (std::uint32_t r = 1; r <= 40; ++r) {
    full.play(r, r);
    plain.play(r, r);
    ASSERT_LE(test::relative_distance(full.model(), plain.model()), 1e-12) << "round " << r;
  }
}

TEST(PowerSgd, OfRankOneConvergesWithErrorFeedback) {
  OneRun<double> run(multinomial(power_sgd(1), "kind = 'ef14'").str());
  const double start = gradient_norm_sq(run);
  run.play(1, 3000);
  EXPECT_LT(gradient_norm_sq(run), 1e-10 * start);
}

}  // namespace
}  // namespace fl
