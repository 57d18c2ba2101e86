// Compares feedback methods with plain loops in the notation of their publications: model and state after every round, on the traced
// problem.
#include <gtest/gtest.h>

#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::add;
using test::ClientGradients;
using test::distance_sq;
using test::holds_entries_of;
using test::kClients;
using test::kDimension;
using test::kKept;
using test::kStep;
using test::kTolerance;
using test::message_of;
using test::minus;
using test::norm_sq;
using test::OneRun;
using test::problem;
using test::relative_distance;
using test::ScenarioText;
using test::state_of;
using test::top_k;
using test::Vector;
using test::zeros;

constexpr std::uint32_t kRounds = 20;
const std::string kUnbiased = "kind = 'random_k'\nk = 4\nscaled = true";
constexpr double kScale = 5;  // d/k of random_k above

Vector scaled(double factor, Vector v) {
  for (double& entry : v) entry *= factor;
  return v;
}
Vector sum(Vector a, const Vector& b) {
  add(1, b, a);
  return a;
}
void expect_states(OneRun<double>& run, const std::string& slot, const std::vector<Vector>& expected, std::uint32_t round) {
  for (std::uint32_t i = 0; i < kClients; ++i)
    ASSERT_LE(relative_distance(state_of(run, slot, i), expected[i]), kTolerance) << slot << " of client " << i << ", round " << round;
}

// ---- EF21's kin: the server steps along the mean of the clients' g_i ----

TEST(Ef21Plus, FollowsThePublishedForm) {
  OneRun<double> run(problem("kind = 'ef21_plus'").str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> g = zeros();
  int restarts = 0, differences = 0;
  for (std::uint32_t r = 1; r <= 200; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector fresh = gradient(at, i, {.round = r});
      const Vector b = top_k(fresh, kKept), m = sum(g[i], top_k(minus(fresh, g[i]), kKept));
      const bool is_restart = distance_sq(b, fresh) <= distance_sq(m, fresh);
      g[i] = is_restart ? b : m;
      (is_restart ? restarts : differences)++;
      add(-kStep * run.problem().weights()[i], g[i], x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), 1e-11) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      ASSERT_LE(relative_distance(state_of(run, "shift", i), g[i]), 1e-11);
      ASSERT_NE(run->runner().payload(0, i)->silent, run->runner().payload(1, i)->silent) << "one of the two is sent";
    }
  }
  EXPECT_GT(restarts, 20);
  EXPECT_GT(differences, 20);
}

TEST(Ef21Normalised, StepsAsFarAsTheStepSizeSays) {
  OneRun<double> run(problem("kind = 'ef21_normalised'\nmomentum = 0.3").str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> v = zeros(), g = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    const Vector at = x;
    Vector mean(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector fresh = gradient(at, i, {.round = r});
      v[i] = r == 1 ? fresh : sum(scaled(0.7, v[i]), scaled(0.3, fresh));
      add(1, top_k(minus(v[i], g[i]), kKept), g[i]);
      add(run.problem().weights()[i], g[i], mean);
    }
    add(-kStep / std::sqrt(norm_sq(mean)), mean, x);
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    ASSERT_NEAR(distance_sq(run.model(), at), kStep * kStep, 1e-12);
  }
}

TEST(Clip21, FollowsThePublishedForm) {
  constexpr double kTau = 0.2;
  ScenarioText s = problem("kind = 'clip21'\ntau = 0.2");
  s.up = "kind = 'identity'";
  s.local = "kind = 'gradient'\nlearning_rate = 0.2";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run);
  Vector x = run.model();
  std::vector<Vector> v = zeros();
  int clipped = 0, whole = 0;
  for (std::uint32_t r = 1; r <= 60; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector d = minus(gradient(at, i), v[i]);
      const double norm = std::sqrt(norm_sq(d));
      (norm > kTau ? clipped : whole)++;
      add(std::min(1.0, kTau / norm), d, v[i]);
      add(-kStep * run.problem().weights()[i], v[i], x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), 1e-11) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(std::sqrt(norm_sq(message_of(run, i))), kTau * (1 + 1e-12));
  }
  EXPECT_GT(clipped, 20);
  EXPECT_GT(whole, 20);
}

// ---- stateless clients ----

TEST(Cafe, FollowsThePublishedFormUnderPartialParticipation) {
  ScenarioText s = problem("kind = 'cafe'");
  s.participation = "kind = 'uniform'\nclients = 2";
  s.model += "\nweights = 'uniform'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), last(kDimension, 0.0);
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    Vector aggregate(kDimension, 0.0);
    for (const std::uint32_t i : run->round().plan().cohort)
      add(0.5, sum(last, top_k(minus(gradient(x, i, {.round = r}), last), kKept)), aggregate);
    last = aggregate;
    add(-kStep, aggregate, x);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
  }
}

// ---- error memories ----

TEST(SaPef, FollowsThePublishedForm) {
  constexpr double kAlpha = 0.3;
  ScenarioText s = problem("kind = 'sa_pef'\nalpha = 0.3");
  s.local = "kind = 'sgd'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    const Vector w = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector y = w;
      add(-kAlpha, e[i], y);
      for (std::uint32_t step = 0; step < 3; ++step) add(-kStep, gradient(y, i, {.round = r, .step = step}), y);
      const Vector p = sum(scaled(1 - kAlpha, e[i]), minus(w, y)), sent = top_k(p, kKept);
      e[i] = minus(p, sent);
      add(-run.problem().weights()[i], sent, x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    expect_states(run, "error", e, r);
  }
}

// Top-k of what Top-k dropped, three times over, is Top-3k.
TEST(PowerEf, OfTopKIsErrorFeedbackOfALargerTopK) {
  ScenarioText power = problem("kind = 'power_ef'\nsteps = 3"), plain = problem("kind = 'ef14'");
  power.up = "kind = 'top_k'\nk = 3\nunit = 'step'";
  plain.up = "kind = 'top_k'\nk = 9\nunit = 'step'";
  OneRun<double> left(power.str()), right(plain.str());
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    left.play(r, r);
    right.play(r, r);
    ASSERT_LE(relative_distance(left.model(), right.model()), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i)
      ASSERT_LE(relative_distance(state_of(left, "error", i), state_of(right, "error", i)), kTolerance);
  }
}

TEST(PowerEf, OperatorsOfItsStepsMayDiffer) {
  ScenarioText s = problem("kind = 'power_ef'\nsteps = 2");
  s.up += "\n[compressor.up.power2]\nkind = 'ef_sign'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector p = sum(e[i], gradient(at, i, {.round = r})), first = top_k(p, kKept), rest = minus(p, first);
      double magnitude = 0;
      for (const double entry : rest) magnitude += std::fabs(entry) / kDimension;
      Vector second = rest;
      for (double& entry : second) entry = entry < 0 ? -magnitude : magnitude;
      e[i] = minus(rest, second);
      add(-kStep * run.problem().weights()[i], sum(first, second), x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), 1e-11) << "round " << r;
  }
}

// Without compression the model moves by the exact gradient and a noise that is new in each round, and the same for every client.
TEST(PowerEf, PerturbsEveryClientAlike) {
  constexpr double kRadius = 0.5;
  ScenarioText s = problem("kind = 'power_ef'\nsteps = 1\nperturbation = 0.5");
  s.up = "kind = 'identity'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector before(kDimension, 0.0);
  double squares = 0;
  for (std::uint32_t r = 1; r <= 50; ++r) {
    const Vector at = run.model();
    run.play(r, r);
    const Vector noise = minus(message_of(run, 0), gradient(at, 0, {.round = r}));
    for (std::uint32_t i = 1; i < kClients; ++i)
      ASSERT_LE(distance_sq(minus(message_of(run, i), gradient(at, i, {.round = r})), noise), 1e-24);
    ASSERT_GT(distance_sq(noise, before), 1e-3);
    squares += norm_sq(noise) / 50;
    before = noise;
  }
  EXPECT_NEAR(squares, kRadius * kRadius, 0.25 * kRadius * kRadius) << "of 1,000 normal numbers: five standard deviations";
}

// The reference point is what the run holds: it is the model of the last round in which its coin fell, and the gradient follows from it.
TEST(EcLsvrg, FollowsThePublishedForm) {
  constexpr double kProbability = 0.25;
  ScenarioText s = problem("kind = 'ec_lsvrg'");
  s.rounds = 200;
  s.local = "kind = 'lsvrg'\nlearning_rate = 0.2\nbatch = 1\np = 0.25";
  s.up += "\nunit = 'step'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 1);
  Vector x = run.model();
  std::vector<Vector> e = zeros(), point(kClients, x);
  int renewed = 0;
  for (std::uint32_t r = 1; r <= 200; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector g = minus(gradient(at, i, {.round = r}), gradient(point[i], i, {.round = r}));
      add(1, gradient(point[i], i), g);
      add(kStep, g, e[i]);
      const Vector sent = top_k(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(-run.problem().weights()[i], sent, x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), 1e-10) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector held = state_of(run, "reference_point", i);
      const bool is_new = r > 1 && relative_distance(held, at) < 1e-9;
      ASSERT_TRUE(is_new || held == point[i]) << "neither the old point nor the model of round " << r;
      point[i] = held;
      renewed += is_new ? 1 : 0;
    }
  }
  EXPECT_NEAR(renewed, 200 * kClients * kProbability, 5 * std::sqrt(200 * kClients * kProbability * (1 - kProbability)));
}

// ---- unbiased operators: Q's message is taken from the run, which entries it holds is checked, everything else is the loop's ----

TEST(Ef21P, ComputesAtTheCompressedModelAndLearnsShifts) {
  constexpr double kAlpha = 0.2;
  ScenarioText s = problem("kind = 'ef21_p'\nalpha = 0.2");
  s.up = kUnbiased;
  s.more = "[compressor.down]\nkind = 'top_k'\nk = 6\n";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), w = x;
  std::vector<Vector> h = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    if (r > 1) add(1, top_k(minus(x, w), 6), w);
    run.play(r, r);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector sent = message_of(run, i);
      ASSERT_TRUE(holds_entries_of(minus(gradient(w, i, {.round = r}), h[i]), kScale, sent));
      add(-kStep * run.problem().weights()[i], sum(h[i], sent), x);
      add(kAlpha, sent, h[i]);
    }
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    expect_states(run, "shift", h, r);
  }
}

class Dasha : public testing::TestWithParam<std::tuple<std::string, bool>> {};

// DASHA-MVR with b = 0.4 on minibatches, and DASHA on full gradients.
TEST_P(Dasha, FollowsThePublishedForm) {
  constexpr double kA = 0.1, kB = 0.4;
  const auto& [init, has_mvr] = GetParam();
  ScenarioText s = problem("kind = 'dasha'\na = 0.1\ninit = '" + init + "'");
  s.up = kUnbiased;
  s.local = has_mvr ? "kind = 'mvr'\nlearning_rate = 0.05\nbatch = 2\nmomentum = 0.4" : "kind = 'gradient'\nlearning_rate = 0.05";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), previous = x;
  std::vector<Vector> h = zeros(), g = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    Vector step(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector h_new = gradient(x, i);
      if (has_mvr && r > 1) {
        h_new = gradient(x, i, {.round = r});
        add(1 - kB, minus(h[i], gradient(previous, i, {.round = r})), h_new);
      }
      Vector input = minus(h_new, h[i]);
      add(-kA, minus(g[i], h[i]), input);
      const Vector m = message_of(run, i);
      ASSERT_TRUE(holds_entries_of(input, init == "dense" && r == 1 ? 1 : kScale, m)) << "client " << i << ", round " << r;
      h[i] = h_new;
      add(1, m, g[i]);
      add(run.problem().weights()[i], g[i], step);
    }
    previous = x;
    add(-0.05, step, x);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    expect_states(run, "tracker", h, r);
    expect_states(run, "shift", g, r);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Dasha, testing::Combine(testing::Values("compressed", "dense"), testing::Bool()),
                         [](const auto& one) { return std::get<0>(one.param) + (std::get<1>(one.param) ? "Mvr" : "Full"); });

// In the source's letters: c_i, c are means over the local steps, eta_l = 0.2, K = 3 steps, eta_g = 0.9.
class ControlledAveraging : public testing::TestWithParam<std::string> {};

TEST_P(ControlledAveraging, FollowsThePublishedFormUnderPartialParticipation) {
  constexpr double kAlpha = 0.2, kBeta = 0.3, kServerStep = 0.9, kSteps = 3;
  const bool is_scallion = GetParam() != "scafcom", is_unbiased = GetParam() == "scallion_unbiased";
  ScenarioText s = problem(is_scallion ? "kind = 'scallion'\nalpha = 0.2" : "kind = 'scafcom'\nmomentum = 0.3");
  if (is_unbiased) s.feedback += "\nestimate = 'unbiased'";
  s.local = "kind = 'scallion'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3";
  s.up = is_scallion ? kUnbiased : "kind = 'top_k'\nk = 4";
  s.model += "\nweights = 'uniform'";
  s.participation = "kind = 'uniform'\nclients = 2";
  s.server = "kind = 'sgd'\nlearning_rate = 0.9";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), c(kDimension, 0.0);
  std::vector<Vector> c_i = zeros(), v = zeros();
  std::vector<bool> is_known(kClients, false);
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    const std::vector<std::uint32_t>& cohort = run->round().plan().cohort;
    const Vector w = x, c_old = c;
    for (std::uint32_t position = 0; position < cohort.size(); ++position) {
      const std::uint32_t i = cohort[position];
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) add(-kStep, sum(minus(gradient(y, i, {.round = r, .step = step}), c_i[i]), c_old), y);
      const Vector mean = sum(minus(scaled(1 / (kSteps * kStep), minus(w, y)), c_old), c_i[i]);  // of the gradients on the way
      Vector delta;
      if (is_scallion) {
        delta = scaled(1 / kSteps, message_of(run, position));
        ASSERT_TRUE(holds_entries_of(scaled(kAlpha, minus(mean, c_i[i])), kScale, delta)) << "client " << i << ", round " << r;
      } else {
        v[i] = is_known[i] ? sum(scaled(1 - kBeta, v[i]), scaled(kBeta, mean)) : mean;
        delta = top_k(minus(v[i], c_i[i]), kKept);
      }
      is_known[i] = true;
      add(1, delta, c_i[i]);
      add(1.0 / kClients, delta, c);
      add(-kServerStep * kStep * kSteps / 2, sum(scaled(is_unbiased ? 1 / kAlpha : 1, delta), c_old), x);
    }
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i)
      ASSERT_LE(relative_distance(scaled(1 / kSteps, state_of(run, "control", i)), c_i[i]), kTolerance);
    ASSERT_LE(relative_distance(scaled(1 / kSteps, test::copy(run->shared().slot("control_mean"))), c), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, ControlledAveraging, testing::Values("scallion", "scallion_unbiased", "scafcom"),
                         [](const auto& one) { return one.param; });

// Without compression, and if all take part, the server steps along (1 - alpha) c + alpha mean G; "unbiased" along mean G.
TEST(Scallion, AveragesItsEstimatesOverRounds) {
  constexpr double kAlpha = 0.3;
  for (const bool is_unbiased : {false, true}) {
    ScenarioText s = problem("kind = 'scallion'\nalpha = 0.3" + std::string(is_unbiased ? "\nestimate = 'unbiased'" : ""));
    s.local = "kind = 'scallion'\nlearning_rate = 0.05\nsteps = 3";
    s.up = "kind = 'identity'";
    OneRun<double> run(s.str());
    const ClientGradients gradient(run);
    std::vector<Vector> c_i = zeros();
    for (std::uint32_t r = 1; r <= kRounds; ++r) {
      const Vector w = run.model(), c = test::copy(run->shared().slot("control_mean"));
      Vector mean(kDimension, 0.0);
      for (std::uint32_t i = 0; i < kClients; ++i) {
        Vector y = w, G(kDimension, 0.0);
        for (int step = 0; step < 3; ++step) {
          const Vector g = gradient(y, i);
          add(1, g, G);
          add(-0.05, sum(g, scaled(1.0 / 3, minus(c, c_i[i]))), y);
        }
        add(run.problem().weights()[i], G, mean);
        c_i[i] = sum(scaled(1 - kAlpha, c_i[i]), scaled(kAlpha, G));
      }
      run.play(r, r);
      const Vector closed = is_unbiased ? mean : sum(scaled(1 - kAlpha, c), scaled(kAlpha, mean));
      ASSERT_LE(relative_distance(test::copy(run->round().estimate()), closed), 1e-11) << "round " << r;
      for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(state_of(run, "control", i), c_i[i]), 1e-11);
    }
  }
}

// In the source's letters: delta_i is a mean over tau = 3 local steps.
TEST(FedComGate, FollowsThePublishedForm) {
  constexpr double kServerStep = 0.9, kSteps = 3;
  ScenarioText s = problem("kind = 'fedcomgate'");
  s.local = "kind = 'fedcomgate'\nlearning_rate = 0.05\nbatch = 2\nsteps = 3";
  s.up = "kind = 'random_k'\nk = 10\nscaled = true";
  s.server = "kind = 'sgd'\nlearning_rate = 0.9";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  Vector w = run.model();
  std::vector<Vector> delta = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    Vector mean(kDimension, 0.0);
    std::vector<Vector> quantised;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) add(-0.05, minus(gradient(y, i, {.round = r, .step = step}), delta[i]), y);
      quantised.push_back(message_of(run, i));
      ASSERT_TRUE(holds_entries_of(scaled(1 / 0.05, minus(w, y)), 2, quantised.back())) << "client " << i << ", round " << r;
      add(weights[i], quantised.back(), mean);
    }
    for (std::uint32_t i = 0; i < kClients; ++i) add(1 / kSteps, minus(quantised[i], mean), delta[i]);
    add(-kServerStep * 0.05, mean, w);
    ASSERT_LE(relative_distance(run.model(), w), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i)
      ASSERT_LE(relative_distance(scaled(1 / kSteps, state_of(run, "tracker", i)), delta[i]), 1e-11);
  }
}

// ---- three point compressors: g^{t+1} = C_{g^t, grad(x^t)}(grad(x^{t+1})), the server steps along the mean of the g_i ----

struct ThreePoint {
  std::string name, feedback, more = "";
  double zeta = 0;
};
void PrintTo(const ThreePoint& p, std::ostream* out) { *out << p.name; }
class ThreePointCompressors : public testing::TestWithParam<ThreePoint> {
 protected:
  // C_{h,y}(x) of client i, in words of its message where that is random.
  Vector compress(OneRun<double>& run, std::uint32_t i, std::uint32_t round, const Vector& h, const Vector& y, const Vector& x) {
    const std::string& name = GetParam().name;
    const auto top = [](const Vector& v, std::size_t k = kKept) { return top_k(v, k); };
    const bool is_lazy = round > 1 && distance_sq(x, h) <= GetParam().zeta * distance_sq(x, y);
    if (name == "ef21") return sum(h, top(minus(x, h)));
    if (name == "lag") return count(is_lazy, is_lazy ? h : x);
    if (name == "clag") return count(is_lazy, is_lazy ? h : sum(h, top(minus(x, h))));
    if (name == "v2") {
      const Vector drift = message_of(run, i, 0);
      EXPECT_TRUE(holds_entries_of(minus(x, y), kScale, drift)) << "round " << round;
      const Vector b = sum(h, drift);
      return sum(b, top(minus(x, b)));
    }
    if (name == "v4") {
      const Vector b = sum(h, top(minus(x, h), 2));
      return sum(b, top(minus(x, b)));
    }
    if (name == "v5") {
      const bool is_full = run->runner().payload(0, i)->elements() == kDimension;
      EXPECT_TRUE(is_full || round > 1);
      return count(is_full, is_full ? x : sum(h, top(minus(x, y))));
    }
    if (is_lazy) return count(true, h);
    for (const std::size_t k : {2, 5}) {
      const Vector coarse = sum(h, top(minus(x, h), k));
      if (distance_sq(coarse, x) <= GetParam().zeta * distance_sq(x, y)) {
        ++coarse_;
        return coarse;
      }
    }
    return count(false, sum(h, top(minus(x, h))));
  }
  Vector count(bool is_special, Vector v) {
    (is_special ? special_ : ordinary_)++;
    return v;
  }
  int special_ = 0, ordinary_ = 0, coarse_ = 0;
};

// At zeta = 1 the round after a sent one is a tie, in which the client is silent: h and the last gradient are the same vector, which the
// reference holds once. h - g + g differs from it in the last bits, which must not decide.
TEST(ThreePointTies, RoundingDoesNotDecideThem) {
  ScenarioText s = problem("kind = 'three_pc'\nvariant = 'lag'\nzeta = 1");
  s.rounds = 1000;
  s.up = "kind = 'identity'";
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  for (const std::string up : {"kind = 'identity'", "kind = 'top_k'\nratio = 1.0"}) {
    s.up = up;
    if (up != "kind = 'identity'") s.feedback = "kind = 'three_pc'\nvariant = 'clag'\nzeta = 1";
    OneRun<double> run(s.str());
    const ClientGradients gradient(run);
    std::vector<Vector> h = zeros(), y = zeros();
    int sent = 0, ties = 0;
    for (std::uint32_t r = 1; r <= 30; ++r) {
      const Vector at = run.model();
      run.play(r, r);
      for (std::uint32_t i = 0; i < kClients; ++i) {
        const Vector fresh = gradient(at, i);
        const double change = distance_sq(fresh, h[i]), moved = distance_sq(fresh, y[i]);
        const bool is_lazy = r > 1 && change <= moved;
        ties += r > 1 && change == moved ? 1 : 0;
        EXPECT_EQ(run->runner().payload(0, i)->silent, is_lazy) << up << ", client " << i << ", round " << r;
        if (!is_lazy) h[i] = fresh, ++sent;
        y[i] = fresh;
      }
    }
    EXPECT_GE(ties, static_cast<int>(10 * kClients)) << "every round after a sent one";
    EXPECT_GT(sent, static_cast<int>(5 * kClients));
    run.play(31, 1000);
    for (std::uint32_t i = 0; i < kClients; ++i)
      EXPECT_LE(relative_distance(state_of(run, "shift", i), gradient(run.model(), i)), 1e-6) << "h follows what was sent";
  }
}

TEST_P(ThreePointCompressors, FollowThePublishedForm) {
  constexpr double kSmallStep = 0.1;
  ScenarioText s = problem("kind = 'three_pc'\n" + GetParam().feedback);
  s.rounds = 100;
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  s.up = (GetParam().name == "lag" ? "kind = 'identity'" : s.up) + GetParam().more;
  OneRun<double> run(s.str());
  const ClientGradients gradient(run);
  Vector x = run.model();
  std::vector<Vector> h = zeros(), y = zeros();
  for (std::uint32_t r = 1; r <= 100; ++r) {
    run.play(r, r);
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector fresh = gradient(at, i);
      h[i] = compress(run, i, r, h[i], y[i], fresh);
      y[i] = fresh;
      add(-kSmallStep * run.problem().weights()[i], h[i], x);
    }
    ASSERT_LE(relative_distance(run.model(), x), 1e-10) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(state_of(run, "shift", i), h[i]), 1e-10);
  }
  if (special_ + ordinary_ == 0) return;
  EXPECT_GT(special_, 10) << "silent, or uncompressed";
  EXPECT_GT(ordinary_, 10);
  EXPECT_EQ(coarse_ > 10, GetParam().name == "adacgd");
}

// Two of four clients a round. In the source all take part, and both estimates are its mean of the g_i.
class ThreePointEstimates : public testing::TestWithParam<std::string> {};

TEST_P(ThreePointEstimates, AreWhatTheyAreCalledUnderPartialParticipation) {
  ScenarioText s = problem("kind = 'three_pc'\nvariant = 'ef21'\nestimate = '" + GetParam() + "'");
  s.local = "kind = 'gradient'\nlearning_rate = 0.2";
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run);
  const std::vector<double>& weights = run.problem().weights();
  Vector x = run.model();
  std::vector<Vector> h = zeros();
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    Vector before(kDimension, 0.0), after(kDimension, 0.0), change(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) add(weights[i], h[i], before);
    double present = 0;
    for (const std::uint32_t i : run->round().plan().cohort) present += weights[i];
    for (const std::uint32_t i : run->round().plan().cohort) {
      const Vector c = top_k(minus(gradient(x, i), h[i]), kKept);
      add(1, c, h[i]);
      add(weights[i] / present, c, change);
    }
    for (std::uint32_t i = 0; i < kClients; ++i) add(weights[i], h[i], after);
    add(-kStep, GetParam() == "shifts" ? after : sum(before, change), x);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    expect_states(run, "shift", h, r);
  }
}

INSTANTIATE_TEST_SUITE_P(Estimates, ThreePointEstimates, testing::Values("cohort", "shifts"), [](const auto& one) { return one.param; });

TEST(ThreePointEstimatesOfAll, AreTheSameBytes) {
  for (const std::string variant : {"ef21", "clag", "v2", "v5", "adacgd"}) {
    ScenarioText s = problem("kind = 'three_pc'\nvariant = '" + variant + "'");
    s.local = "kind = 'gradient'\nlearning_rate = 0.1";
    if (variant == "v2") s.up += "\n[compressor.up.drift]\n" + kUnbiased;
    OneRun<double> cohort(s.str());
    s.feedback += "\nestimate = 'shifts'";
    OneRun<double> shifts(s.str());
    cohort.play(1, kRounds);
    shifts.play(1, kRounds);
    EXPECT_EQ(cohort.model(), shifts.model()) << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, ThreePointCompressors,
    testing::Values(ThreePoint{"ef21", "variant = 'ef21'"}, ThreePoint{"lag", "variant = 'lag'\nzeta = 7", "", 7},
                    ThreePoint{"clag", "variant = 'clag'\nzeta = 50", "", 50},
                    ThreePoint{"v2", "variant = 'v2'", "\n[compressor.up.drift]\n" + kUnbiased},
                    ThreePoint{"v4", "variant = 'v4'", "\n[compressor.up.first]\nkind = 'top_k'\nk = 2"},
                    ThreePoint{"v5", "variant = 'v5'\np = 0.25"},
                    ThreePoint{"adacgd", "variant = 'adacgd'\nzeta = 30\nlevels = 3",
                               "\n[compressor.up.level1]\nkind = 'top_k'\nk = 2\n[compressor.up.level2]\nkind = 'top_k'\nk = 5", 30}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace fl
