// Compares methods with plain loops that follow their published form, line by line: model and memory after every round.
#include <gtest/gtest.h>

#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::add;
using test::ClientGradients;
using test::holds_entries_of;
using test::kClients;
using test::kDimension;
using test::kKept;
using test::kStep;
using test::kTolerance;
using test::message_of;
using test::minus;
using test::OneRun;
using test::problem;
using test::relative_distance;
using test::ScenarioText;
using test::top_k;
using test::Vector;
using test::zeros;

// v where nothing was sent, 0 where something was.
Vector masked(const Vector& v, const Vector& sent) {
  Vector left = v;
  for (std::size_t j = 0; j < v.size(); ++j)
    if (sent[j] != 0) left[j] = 0;
  return left;
}

// ---- momentum before compression (Algorithm 3; deep gradient compression) ----

class MomentumCorrection : public testing::TestWithParam<bool> {};

TEST_P(MomentumCorrection, FollowsThePlainLoop) {
  constexpr double kMomentum = 0.9;
  const bool has_masking = GetParam();
  OneRun<double> run(
      problem("kind = 'momentum_correction'\nmomentum = 0.9\nmasking = " + std::string(has_masking ? "true" : "false")).str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  Vector x = run.model();
  std::vector<Vector> u = zeros(), v = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(at, i, {.round = r});
      for (std::size_t j = 0; j < kDimension; ++j) {
        u[i][j] = kMomentum * u[i][j] + g[j];
        v[i][j] += u[i][j];
      }
      const Vector sent = top_k(v[i], kKept);
      if (has_masking) u[i] = masked(u[i], sent);
      v[i] = has_masking ? masked(v[i], sent) : minus(v[i], sent);
      add(-kStep * weights[i], sent, x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      ASSERT_LE(relative_distance(test::state_of(run, "momentum", i), u[i]), kTolerance) << "u of client " << i << ", round " << r;
      ASSERT_LE(relative_distance(test::state_of(run, "accumulated", i), v[i]), kTolerance) << "v of client " << i << ", round " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masking, MomentumCorrection, testing::Bool());

// ---- compression of gradients, momentum and weight decay after the mean (Algorithm 2) ----

class GradientCompression : public testing::TestWithParam<std::string> {};

TEST_P(GradientCompression, FollowsThePlainLoop) {
  constexpr double kMomentum = 0.8, kDecay = 0.05, kServerStep = 0.5;
  const std::string& nesterov = GetParam();
  ScenarioText s = problem("kind = 'ef14'");
  s.up += "\nunit = 'gradient'";
  s.server = "kind = 'sgd'\nmomentum = 0.8\nweight_decay = 0.05\nlearning_rate = 0.5\nnesterov = '" + nesterov + "'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), m(kDimension, 0.0);
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    Vector mean(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      add(1, gradient(x, i, {.round = r}), e[i]);
      const Vector sent = top_k(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(run.problem().weights()[i], sent, mean);
    }
    for (std::size_t j = 0; j < kDimension; ++j) {
      const double d = mean[j] + kDecay * x[j];
      m[j] = kMomentum * m[j] + d;
      const double step = nesterov == "none" ? m[j] : nesterov == "textbook" ? d + kMomentum * m[j] : d + m[j];
      x[j] -= kStep * kServerStep * step;
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "error", i), e[i]), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Nesterov, GradientCompression, testing::Values("none", "textbook", "code"),
                         [](const auto& one) { return one.param; });

// With no momentum the published code's look-ahead d + m doubles the step.
TEST(GradientCompression, TheCodesNesterovDoublesTheStepWithoutMomentum) {
  ScenarioText once = problem("kind = 'ef14'"), twice = once;
  once.server = "kind = 'sgd'\nlearning_rate = 1";
  twice.server = "kind = 'sgd'\nlearning_rate = 0.5\nnesterov = 'code'";
  OneRun<double> left(once.str()), right(twice.str());
  left.play(1, 20);
  right.play(1, 20);
  EXPECT_LE(relative_distance(left.model(), right.model()), kTolerance);
}

// ---- signs of momenta and the majority's vote ----

TEST(Signum, FollowsThePublishedForm) {
  ScenarioText s = problem("kind = 'signum'\nmomentum = 0.8");
  s.up = "kind = 'sign'";
  s.server = "kind = 'sign_sgd'\nlearning_rate = 0.5";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> m = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    Vector votes(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(x, i, {.round = r});
      for (std::size_t j = 0; j < kDimension; ++j) {
        m[i][j] = 0.8 * m[i][j] + 0.2 * g[j];
        votes[j] += run.problem().weights()[i] * (m[i][j] >= 0 ? 1 : -1);
      }
    }
    for (std::size_t j = 0; j < kDimension; ++j) x[j] -= kStep * 0.5 * (votes[j] >= 0 ? 1 : -1);
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "momentum", i), m[i]), kTolerance);
  }
}

TEST(Signum, SignsAreNotForErrorMemories) {
  ScenarioText s = problem("kind = 'ef14'");
  s.up = "kind = 'sign'";
  try {
    OneRun<double> run(s.str());
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("use \"ef_sign\" with this feedback"), std::string::npos) << error.what();
  }
}

// ---- shifts: EF21-SGDM and EControl ----

TEST(Ef21Sgdm, FollowsThePlainLoop) {
  constexpr double kEta = 0.3;
  OneRun<double> run(problem("kind = 'ef21'\nmomentum = 0.3").str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> v = zeros(), h = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(at, i, {.round = r});
      for (std::size_t j = 0; j < kDimension; ++j) v[i][j] = r == 1 ? g[j] : (1 - kEta) * v[i][j] + kEta * g[j];
      add(1, top_k(minus(v[i], h[i]), kKept), h[i]);
      add(-kStep * run.problem().weights()[i], h[i], x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
  }
}

class EControl : public testing::TestWithParam<std::string> {};

TEST_P(EControl, FollowsThePlainLoop) {
  constexpr double kEta = 0.3;
  OneRun<double> run(problem("kind = 'econtrol'\neta = 0.3\ninit = '" + GetParam() + "'").str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> e = zeros(), h = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(at, i, {.round = r});
      if (r == 1 && GetParam() != "zero") {
        h[i] = GetParam() == "dense" ? g : top_k(g, kKept);
        add(-kStep * run.problem().weights()[i], h[i], x);
        continue;
      }
      const Vector ahead = minus(g, h[i]);
      Vector input = ahead;
      add(kEta, e[i], input);
      const Vector sent = top_k(input, kKept);
      add(1, minus(ahead, sent), e[i]);
      add(1, sent, h[i]);
      add(-kStep * run.problem().weights()[i], h[i], x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "error", i), e[i]), kTolerance);
    const std::uint64_t elements = run->round().ledger().round_up().elements;
    ASSERT_EQ(elements, kClients * (r == 1 && GetParam() == "dense" ? kDimension : kKept)) << "a dense first message is paid for";
  }
}

INSTANTIATE_TEST_SUITE_P(Starts, EControl, testing::Values("zero", "dense", "message"), [](const auto& one) { return one.param; });

// A client that comes later has its first message then.
TEST(EControlOfCohorts, StartsEachClientWithItsOwnFirstMessage) {
  constexpr double kEta = 0.3;
  ScenarioText s = problem("kind = 'econtrol'\neta = 0.3\ninit = 'message'");
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  std::vector<Vector> e = zeros(), h = zeros();
  std::vector<bool> is_known(kClients, false);
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const Vector at = run.model();
    run.play(r, r);
    for (const std::uint32_t i : run->round().plan().cohort) {
      const Vector ahead = minus(gradient(at, i, {.round = r}), h[i]);
      Vector input = ahead;
      add(kEta, e[i], input);
      const Vector sent = top_k(input, kKept);
      if (is_known[i]) add(1, minus(ahead, sent), e[i]);
      add(1, sent, h[i]);
      is_known[i] = true;
    }
    for (std::uint32_t i = 0; i < kClients; ++i) {
      ASSERT_LE(relative_distance(test::state_of(run, "error", i), e[i]), kTolerance) << "client " << i << ", round " << r;
      ASSERT_LE(relative_distance(test::state_of(run, "shift", i), h[i]), kTolerance) << "client " << i << ", round " << r;
    }
  }
}

TEST(EControlOfCohorts, RefusesADenseStart) {
  ScenarioText s = problem("kind = 'econtrol'\ninit = 'dense'");
  s.participation = "kind = 'uniform'\nclients = 2";
  try {
    OneRun<double> run(s.str());
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("feedback.up.init: \"dense\" needs every client in the first round"), std::string::npos)
        << error.what();
  }
}

// ---- error feedback with learned shifts: Q's message is taken from the run, everything else is the loop's ----

TEST(EcDiana, FollowsThePlainLoop) {
  constexpr double kAlpha = 0.2;
  ScenarioText s = problem("kind = 'ec_diana'\nalpha = 0.2");
  s.up += "\nunit = 'step'\n[compressor.up.shift]\nkind = 'random_k'\nk = 4\nscaled = true\nunit = 'step'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  Vector x = run.model(), mean_shift(kDimension, 0.0);
  std::vector<Vector> e = zeros(), h = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    run.play(r, r);
    const Vector at = x, shared = mean_shift;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(at, i, {.round = r}), ahead = minus(g, h[i]), quantised = message_of(run, i, 0);
      ASSERT_TRUE(holds_entries_of(ahead, 5, quantised)) << "Q sees the old shift, scaled by d/k";
      add(kStep, ahead, e[i]);
      add(kStep, shared, e[i]);
      const Vector sent = top_k(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(kAlpha, quantised, h[i]);
      add(kAlpha * weights[i], quantised, mean_shift);
      add(-weights[i], sent, x);
    }
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "shift", i), h[i]), kTolerance);
    ASSERT_LE(relative_distance(test::copy(run->shared().slot("shift_mean")), mean_shift), kTolerance);
  }
}

// ---- error reset, as published: a model x_i and an error e_i for every client, PSync(v, C) = mean C(v) + (v_i - C(v_i)) ----

TEST(Cser, FollowsThePublishedForm) {
  constexpr std::uint32_t kReset = 3;
  ScenarioText s = problem("kind = 'cser'\nreset_every = 3");
  s.up += "\nunit = 'step'\n[compressor.up.reset]\nkind = 'top_k'\nk = 7\nunit = 'step'";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  std::vector<Vector> x(kClients, run.model()), e = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    Vector mean(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vector g = gradient(x[i], i, {.round = r}), sent = top_k(g, kKept), residual = minus(g, sent);
      add(weights[i], sent, mean);
      add(-kStep, residual, x[i]);
      add(-kStep, residual, e[i]);
    }
    for (Vector& own : x) add(-kStep, mean, own);
    if (r % kReset == 0) {
      mean.assign(kDimension, 0.0);
      std::vector<Vector> sent;
      for (std::uint32_t i = 0; i < kClients; ++i) {
        sent.push_back(top_k(e[i], 7));
        add(weights[i], sent[i], mean);
      }
      for (std::uint32_t i = 0; i < kClients; ++i) {  // x_i += e'_i - e_i = mean C(e) - C(e_i)
        add(1, mean, x[i]);
        add(-1, sent[i], x[i]);
        e[i] = minus(e[i], sent[i]);
      }
    }
    run.play(r, r);
    EXPECT_EQ(run->runner().payload(1, 0) != nullptr, r % kReset == 0) << "a channel that is not used costs nothing";
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector kept = test::state_of(run, "error", i);
      for (double& m : kept) m = -m;
      ASSERT_LE(relative_distance(run.model(), minus(x[i], e[i])), kTolerance) << "x_i - e_i of client " << i << ", round " << r;
      ASSERT_LE(relative_distance(kept, e[i]), kTolerance) << "client " << i << ", round " << r;
    }
  }
}

// C2 sends nothing and C1 everything: local SGD of H steps, one of its rounds for H of ours.
TEST(Cser, IsLocalSgdWhenOnlyResetsSpeak) {
  ScenarioText reset = problem("kind = 'cser'\nreset_every = 5"), local = problem("kind = 'none'");
  reset.local = "kind = 'gradient'\nlearning_rate = 0.2";
  reset.up = "kind = 'hard_threshold'\nthreshold = 1e30\nunit = 'step'\n[compressor.up.reset]\nkind = 'identity'\nunit = 'step'";
  local.local = "kind = 'sgd'\nlearning_rate = 0.2\nsteps = 5";
  local.up = "kind = 'identity'";
  OneRun<double> left(reset.str()), right(local.str());
  for (std::uint32_t r = 1; r <= 4; ++r) {
    left.play(5 * r - 4, 5 * r);
    right.play(r, r);
    ASSERT_LE(relative_distance(left.model(), right.model()), kTolerance) << "round " << r;
  }
}

// ---- MARINA: the coin is read off the messages, Q's choice too ----

TEST(Marina, FollowsThePlainLoop) {
  constexpr std::uint32_t kRounds = 200;
  ScenarioText s = problem("kind = 'marina'\np = 0.25");
  s.local = "kind = 'gradient_difference'\nlearning_rate = 0.05\nbatch = 2";
  s.up = "kind = 'random_k'\nk = 4\nscaled = true";
  s.rounds = kRounds;
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  Vector x = run.model(), previous, estimator(kDimension, 0.0);
  std::uint32_t full_rounds = 0;
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    const bool is_full = run->runner().payload(0, 0)->elements() == kDimension;
    full_rounds += is_full ? 1 : 0;
    ASSERT_TRUE(is_full || r > 1) << "the first round sends everything";
    if (is_full) estimator.assign(kDimension, 0.0);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      ASSERT_EQ(run->runner().payload(0, i)->elements(), is_full ? kDimension : kKept) << "one coin for all clients";
      const Vector sent = message_of(run, i);
      const Vector expected = is_full ? gradient(x, i) : minus(gradient(x, i, {.round = r}), gradient(previous, i, {.round = r}));
      ASSERT_TRUE(holds_entries_of(expected, is_full ? 1 : 5, sent)) << "client " << i << " in round " << r;
      add(weights[i], sent, estimator);
    }
    previous = x;
    add(-0.05, estimator, x);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
  }
  EXPECT_NEAR(full_rounds, 50, 25) << "four standard deviations around p = 1/4";
}

// ---- local steps ----

class LocalSteps : public testing::TestWithParam<double> {};

TEST_P(LocalSteps, FedAvgAndFedProxFollowThePlainLoop) {
  const double mu = GetParam();
  ScenarioText s = problem("kind = 'ef14'");
  s.local = "kind = 'sgd'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3\nproximal_mu = " + std::to_string(mu);
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model();
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const Vector w = x;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) {
        const Vector g = gradient(y, i, {.round = r, .step = step}), pull = minus(y, w);
        add(-kStep, g, y);
        add(-kStep * mu, pull, y);
      }
      add(1, minus(w, y), e[i]);
      const Vector sent = top_k(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(-run.problem().weights()[i], sent, x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(ProximalMu, LocalSteps, testing::Values(0.0, 0.7));

// Sampled clients: the model moves by the cohort's weighted mean, c by population weights, |S|/N of it. Option I and option II.
class Scaffold : public testing::TestWithParam<std::string> {};

TEST_P(Scaffold, FollowsThePlainLoopUnderPartialParticipation) {
  constexpr double kServerStep = 0.9;
  constexpr std::uint32_t kSteps = 3;
  ScenarioText s = problem("kind = 'scaffold'");
  s.local = "kind = 'scaffold'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3\ncontrol = '" + GetParam() + "'";
  s.up = "kind = 'identity'";
  s.participation = "kind = 'uniform'\nclients = 2";
  s.server = "kind = 'sgd'\nlearning_rate = 0.9";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  const std::vector<double>& weights = run.problem().weights();
  Vector x = run.model(), c(kDimension, 0.0);
  std::vector<Vector> c_i = zeros();
  for (std::uint32_t r = 1; r <= 5; ++r) {
    run.play(r, r);
    const std::vector<std::uint32_t>& cohort = run->round().plan().cohort;
    ASSERT_EQ(cohort.size(), 2u);
    const double cohort_weight = weights[cohort[0]] + weights[cohort[1]];
    const Vector w = x, c_old = c;
    for (const std::uint32_t i : cohort) {
      Vector y = w;
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        Vector direction = gradient(y, i, {.round = r, .step = step});
        add(-1, c_i[i], direction);
        add(1, c_old, direction);
        add(-kStep, direction, y);
      }
      Vector change(kDimension, 0.0);
      if (GetParam() == "path") {
        add(1 / (kSteps * kStep), minus(w, y), change);
        add(-1, c_old, change);
      } else {
        change = minus(gradient(w, i), c_i[i]);
      }
      add(1, change, c_i[i]);
      add(weights[i], change, c);
      add(-kServerStep * weights[i] / cohort_weight, minus(w, y), x);
    }
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    ASSERT_LE(relative_distance(test::copy(run->shared().slot("control_mean")), c), kTolerance);
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "control", i), c_i[i]), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Controls, Scaffold, testing::Values("path", "gradient"), [](const auto& which) { return which.param; });

// h_i = alpha s_i and h = alpha s as published; the model is the mean of the cohort's less h / alpha.
TEST(FedDyn, FollowsThePlainLoopUnderPartialParticipation) {
  constexpr double kAlpha = 0.3;
  ScenarioText s = problem("kind = 'feddyn'");
  s.local = "kind = 'feddyn'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3\nalpha = 0.3";
  s.up = "kind = 'identity'";
  s.model += "\nweights = 'uniform'";
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), h(kDimension, 0.0);
  std::vector<Vector> h_i = zeros();
  for (std::uint32_t r = 1; r <= 8; ++r) {
    run.play(r, r);
    const Vector w = x;
    Vector mean(kDimension, 0.0);
    for (const std::uint32_t i : run->round().plan().cohort) {
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) {
        Vector direction = gradient(y, i, {.round = r, .step = step});
        add(-1, h_i[i], direction);
        add(kAlpha, minus(y, w), direction);
        add(-kStep, direction, y);
      }
      add(-kAlpha, minus(y, w), h_i[i]);
      add(-kAlpha / kClients, minus(y, w), h);
      add(0.5, y, mean);
    }
    x = mean;
    add(-1 / kAlpha, h, x);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector moved = h_i[i];
      for (double& entry : moved) entry /= kAlpha;
      ASSERT_LE(relative_distance(test::state_of(run, "moved", i), moved), kTolerance);
    }
  }
}

// Momentum of full gradients at the server's model, which rests while clients step.
TEST(MimeLite, FollowsThePlainLoopUnderPartialParticipation) {
  constexpr double kMomentum = 0.8;
  ScenarioText s = problem("kind = 'mime_lite'");
  s.local = "kind = 'mime_lite'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3\nmomentum = 0.8\nweight_decay = 0.1";
  s.up = "kind = 'identity'";
  s.model += "\nweights = 'uniform'";
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), m(kDimension, 0.0);
  for (std::uint32_t r = 1; r <= 8; ++r) {
    run.play(r, r);
    const Vector w = x, m_old = m;
    for (double& entry : m) entry *= kMomentum;
    for (const std::uint32_t i : run->round().plan().cohort) {
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) {
        Vector direction(kDimension, 0.0);
        add(1 - kMomentum, gradient(y, i, {.round = r, .step = step}), direction);
        add((1 - kMomentum) * 0.1, y, direction);
        add(kMomentum, m_old, direction);
        add(-kStep, direction, y);
      }
      add(0.5, minus(y, w), x);
      add(0.5 * (1 - kMomentum), gradient(w, i), m);
    }
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
    ASSERT_LE(relative_distance(test::copy(run->shared().slot("momentum")), m), kTolerance) << "round " << r;
  }
}

// Rounds 1 and 2 warm up; then gamma is halved every 2 rounds, or falls along a cosine.
TEST(Schedules, ScaleEveryRoundsStep) {
  const auto follow = [](const std::string& keys, const std::vector<double>& factors) {
    ScenarioText s = problem("kind = 'ef14'");
    s.rounds = static_cast<int>(factors.size());
    s.local += "\nwarmup_rounds = 2\n" + keys;
    s.up = "kind = 'top_k'\nk = 4\nunit = 'step'";
    OneRun<double> run(s.str());
    const ClientGradients gradient(run, 2);
    Vector x = run.model();
    std::vector<Vector> e = zeros();
    for (std::uint32_t r = 1; r <= factors.size(); ++r) {
      const Vector w = x;
      for (std::uint32_t i = 0; i < kClients; ++i) {
        add(kStep * factors[r - 1], gradient(w, i, {.round = r}), e[i]);
        const Vector sent = top_k(e[i], kKept);
        e[i] = minus(e[i], sent);
        add(-run.problem().weights()[i], sent, x);
      }
      run.play(r, r);
      ASSERT_LE(relative_distance(run.model(), x), kTolerance) << keys << ", round " << r;
    }
  };
  follow("schedule = 'step'\ndecay_rounds = 2\ndecay_factor = 0.5", {0.5, 1, 1, 1, 0.5, 0.5, 0.25});
  follow("schedule = 'cosine'\nfinal_factor = 0.2", {0.5, 1, 1, 0.2 + 0.4 * (1 + std::sqrt(0.5)), 0.6, 0.2 + 0.4 * (1 - std::sqrt(0.5))});
  follow("", {0.5, 1, 1, 1});
}

// ---- a compressed downlink: clients compute at w, which moves by what they were sent of x - w ----

TEST(Downlink, ClientsComputeAtTheReferenceThatMessagesMove) {
  ScenarioText s = problem("kind = 'ef14'");
  s.more = "[compressor.down]\nkind = 'top_k'\nk = 6\n";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector x = run.model(), w = x;
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    if (r > 1) add(1, top_k(minus(x, w), 6), w);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      add(1, gradient(w, i, {.round = r}), e[i]);
      const Vector sent = top_k(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(-kStep * run.problem().weights()[i], sent, x);
    }
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), x), kTolerance) << "round " << r;
  }
  EXPECT_GT(test::distance_sq(x, w), 1e-4) << "the reference should lag behind";
}

// Sparse ternary compression as published: the server keeps a residual A of its own and sends STC(A + mean) down; with x = W - A that is
// the common reference W moving by what is sent of x - W.
Vector ternary(const Vector& v, std::size_t k) {
  Vector kept = top_k(v, k);
  double magnitude = 0;
  for (const double c : kept) magnitude += std::fabs(c) / static_cast<double>(k);
  for (double& c : kept) c = c > 0 ? magnitude : c < 0 ? -magnitude : 0;
  return kept;
}

TEST(SparseTernaryCompression, FollowsThePublishedFormInBothDirections) {
  ScenarioText s = problem("kind = 'ef14'");
  s.local = "kind = 'sgd'\nlearning_rate = 0.2\nbatch = 2\nsteps = 3";
  s.up = "kind = 'stc'\nk = 4";
  s.more = "[compressor.down]\nkind = 'stc'\nk = 6\n";
  OneRun<double> run(s.str());
  const ClientGradients gradient(run, 2);
  Vector w = run.model(), residual(kDimension, 0.0);
  std::vector<Vector> e = zeros();
  for (std::uint32_t r = 1; r <= 20; ++r) {
    Vector ahead = residual;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Vector y = w;
      for (std::uint32_t step = 0; step < 3; ++step) add(-kStep, gradient(y, i, {.round = r, .step = step}), y);
      add(1, minus(w, y), e[i]);
      const Vector sent = ternary(e[i], kKept);
      e[i] = minus(e[i], sent);
      add(run.problem().weights()[i], sent, ahead);
    }
    const Vector sent = ternary(ahead, 6);
    residual = minus(ahead, sent);
    add(-1, sent, w);
    run.play(r, r);
    ASSERT_LE(relative_distance(run.model(), minus(w, residual)), kTolerance) << "round " << r;
    for (std::uint32_t i = 0; i < kClients; ++i) ASSERT_LE(relative_distance(test::state_of(run, "error", i), e[i]), kTolerance);
  }
}

}  // namespace
}  // namespace fl
