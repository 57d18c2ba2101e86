// Tests invariants of every round of a run, for any data: the virtual iterate, bounds on the memory, the server's copy of the clients'
// state, and silent clients.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::add;
using test::ClientGradients;
using test::OneRun;
using test::ScenarioText;
using test::Vector;

constexpr std::size_t kDimension = 20, kKept = 4;
constexpr double kThreshold = 0.02;

struct Named {
  std::string name, text;
};
void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }

const Named kTopK{"TopK", "kind = 'top_k'\nk = 4"}, kHardThreshold{"HardThreshold", "kind = 'hard_threshold'\nthreshold = 0.02"},
    kRandomK{"RandomK", "kind = 'random_k'\nk = 4\nscaled = false"}, kSign{"EfSign", "kind = 'ef_sign'"},
    kQsgd{"QsgdScaled", "kind = 'qsgd'\nlevels = 4\nscaled = true"};

ScenarioText error_feedback(const std::string& up, int batch) {
  ScenarioText s = test::uneven_quadratics();
  s.start = "kind = 'zero'\nshift = 1";
  s.local = "kind = 'gradient'\nlearning_rate = 0.2\nbatch = " + std::to_string(batch);
  s.up = up + "\nunit = 'step'";
  s.feedback = "kind = 'ef14'";
  return s;
}

// ---- x_t - sum_i w_i e_t^i follows exact SGD ----

class VirtualIterate : public testing::TestWithParam<std::tuple<Named, int>> {};

TEST_P(VirtualIterate, FollowsExactSgd) {
  constexpr double kStep = 0.2;
  const auto& [compressor, batch] = GetParam();
  OneRun<double> run(error_feedback(compressor.text, batch).str());
  const ClientGradients gradient(run, batch);
  const std::vector<double>& weights = run.problem().weights();

  Vector exact = run.model();
  double largest_memory = 0;
  for (std::uint32_t r = 1; r <= 200; ++r) {
    const Vector x = run.model();
    for (std::uint32_t i = 0; i < weights.size(); ++i) add(-kStep * weights[i], gradient(x, i, {.full = batch == 0, .round = r}), exact);
    run.play(r, r);
    const Vector mean_error = test::mean_state(run, "error");
    largest_memory = std::max(largest_memory, test::norm_sq(mean_error));
    Vector virtual_iterate = run.model();
    add(-1, mean_error, virtual_iterate);
    ASSERT_LE(test::relative_distance(virtual_iterate, exact), 1e-12) << "round " << r;
  }
  EXPECT_GT(largest_memory, 1e-4) << "the operator dropped too little for the test to say anything";
}

INSTANTIATE_TEST_SUITE_P(Operators, VirtualIterate,
                         testing::Combine(testing::Values(kTopK, kHardThreshold, kRandomK, kSign, kQsgd), testing::Values(0, 2)),
                         [](const auto& one) {
                           return std::get<0>(one.param).name + (std::get<1>(one.param) == 0 ? "Full" : "Minibatch");
                         });

// ---- bounds on the memory ----

TEST(ErrorMemory, OfAHardThresholdStaysBelowItInEveryCoordinate) {
  OneRun<double> run(error_feedback(kHardThreshold.text, 2).str());
  double largest = 0;
  for (std::uint32_t r = 1; r <= 200; ++r) {
    run.play(r, r);
    for (std::uint32_t i = 0; i < run.problem().shards().size(); ++i)
      for (const double e : test::state_of(run, "error", i)) {
        ASSERT_LT(std::fabs(e), kThreshold) << "round " << r << ", client " << i;
        largest = std::max(largest, std::fabs(e));
      }
  }
  EXPECT_GT(largest, 0.9 * kThreshold);
}

TEST(ErrorMemory, OfTopKIsAContractionOfWhatWasCompensated) {
  constexpr double kStep = 0.2, kFactor = 1 - static_cast<double>(kKept) / kDimension;
  OneRun<double> run(error_feedback(kTopK.text, 2).str());
  const ClientGradients gradient(run, 2);
  double largest = 0;
  for (std::uint32_t r = 1; r <= 200; ++r) {
    const Vector x = run.model();
    std::vector<Vector> compensated;
    for (std::uint32_t i = 0; i < run.problem().shards().size(); ++i) {
      compensated.push_back(test::state_of(run, "error", i));
      add(kStep, gradient(x, i, {.round = r}), compensated.back());
    }
    run.play(r, r);
    for (std::uint32_t i = 0; i < compensated.size(); ++i) {
      const double ratio = test::norm_sq(test::state_of(run, "error", i)) / test::norm_sq(compensated[i]);
      ASSERT_LE(ratio, kFactor) << "round " << r << ", client " << i;
      largest = std::max(largest, ratio);
    }
  }
  EXPECT_GT(largest, 0.5 * kFactor);
}

TEST(ErrorMemory, OfIdentityIsExactlyZero) {
  for (const char* feedback : {"kind = 'ef14'", "kind = 'momentum_correction'\nmasking = false"}) {
    ScenarioText s = error_feedback("kind = 'identity'", 2);
    s.feedback = feedback;
    OneRun<double> run(s.str());
    const std::string slot = s.feedback == "kind = 'ef14'" ? "error" : "accumulated";
    for (std::uint32_t r = 1; r <= 50; ++r) {
      run.play(r, r);
      for (std::uint32_t i = 0; i < run.problem().shards().size(); ++i)
        for (const double e : test::state_of(run, slot, i)) ASSERT_EQ(e, 0.0) << feedback << ", round " << r << ", client " << i;
    }
  }
}

// ---- the server's shift is the population mean of the clients' shifts, however few take part ----

class ServerShift : public testing::TestWithParam<Named> {};

TEST_P(ServerShift, IsThePopulationMeanUnderPartialParticipation) {
  ScenarioText s = test::uneven_quadratics();
  s.local = "kind = 'gradient'\nlearning_rate = 0.02\nbatch = 2";
  s.participation = "kind = 'uniform'\nclients = 2";
  s.up = "kind = 'natural'";
  s.feedback = GetParam().text;
  OneRun<double> run(s.str());
  std::vector<bool> took_part(4, false);
  for (std::uint32_t r = 1; r <= 60; ++r) {
    std::vector<Vector> before;
    for (std::uint32_t i = 0; i < 4; ++i) before.push_back(test::state_of(run, "shift", i));
    run.play(r, r);
    const std::vector<std::uint32_t>& cohort = run->round().plan().cohort;
    ASSERT_EQ(cohort.size(), 2u);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const bool is_present = std::find(cohort.begin(), cohort.end(), i) != cohort.end();
      took_part[i] = took_part[i] || is_present;
      ASSERT_EQ(test::state_of(run, "shift", i) != before[i], is_present) << "client " << i << " in round " << r;
    }
    ASSERT_LE(test::relative_distance(test::copy(run->state().slot("shift_mean")), test::mean_state(run, "shift")), 1e-13) << "round " << r;
  }
  EXPECT_EQ(std::count(took_part.begin(), took_part.end(), true), 4);
}

INSTANTIATE_TEST_SUITE_P(Feedbacks, ServerShift,
                         testing::Values(Named{"Ef21", "kind = 'ef21'"}, Named{"Ef21Sgdm", "kind = 'ef21'\nmomentum = 0.3"},
                                         Named{"Diana", "kind = 'diana'\nalpha = 0.5"}, Named{"EfBv", "kind = 'ef_bv'\nlambda = 0.7"},
                                         Named{"EControl", "kind = 'econtrol'\neta = 0.1"}),
                         [](const auto& one) { return one.param.name; });

// ---- LAG's silence ----

ScenarioText lazy(const std::string& xi) {
  ScenarioText s = test::quadratics();
  s.local = "kind = 'gradient'\nlearning_rate = 0.3";
  s.feedback = "kind = 'lag'\nmemory = 3\nxi = " + xi;
  return s;
}

// The first round has no history, so all clients send; from the second round on all clients are silent while the last three steps count at
// all.
TEST(Lag, SilenceIsAHeaderAndMovesNothing) {
  constexpr std::uint64_t kSilenceBits = 8;
  OneRun<double> run(lazy("1e9").str());
  run.play(1, 1);
  EXPECT_GT(run->round().ledger().round_up().bits, 5 * kSilenceBits);
  const Vector sum = test::copy(run->state().slot("gradient_sum"));
  std::vector<Vector> last_sent;
  for (std::uint32_t i = 0; i < 5; ++i) last_sent.push_back(test::state_of(run, "last_sent", i));

  for (std::uint32_t r = 2; r <= 6; ++r) {
    const Vector before = run.model();
    run.play(r, r);
    EXPECT_EQ(run->round().ledger().round_up().bits, 5 * kSilenceBits);
    EXPECT_EQ(run->round().ledger().round_up().elements, 0u);
    EXPECT_EQ(test::copy(run->state().slot("gradient_sum")), sum);
    for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(test::state_of(run, "last_sent", i), last_sent[i]);
    Vector expected = before;
    add(-0.3, sum, expected);
    EXPECT_LE(test::relative_distance(run.model(), expected), 1e-15) << "the server goes on along the last gradients";
  }
}

TEST(Lag, SpeaksWhenTheRuleOfTheWorkerSaysSo) {
  constexpr double kXi = 0.5, kStep = 0.3, kClients = 5;
  OneRun<double> run(lazy("0.5").str());
  const ClientGradients gradient(run);
  std::vector<Vector> models, last_sent(5, Vector(kDimension, 0.0));
  int num_sent = 0, num_silent = 0;
  for (std::uint32_t r = 1; r <= 60; ++r) {
    models.push_back(run.model());
    double moved = 0;
    for (std::size_t t = models.size(); t-- > 1 && models.size() - t <= 3;) moved += test::distance_sq(models[t], models[t - 1]);
    const double bound = kXi * moved / (kStep * kStep * kClients * kClients);
    run.play(r, r);
    for (std::uint32_t i = 0; i < 5; ++i) {
      const Vector g = gradient(models.back(), i);
      const bool sends = test::distance_sq(g, last_sent[i]) / (kClients * kClients) > bound;  // of w_i f_i, w_i = 1/5
      if (sends) last_sent[i] = g;
      (sends ? num_sent : num_silent)++;
      ASSERT_EQ(run->runner().payload(0, i)->silent, !sends) << "client " << i << " in round " << r;
      ASSERT_LE(test::relative_distance(test::state_of(run, "last_sent", i), last_sent[i]), 1e-14);
    }
  }
  EXPECT_GT(num_sent, 30);
  EXPECT_GT(num_silent, 30);
}

}  // namespace
}  // namespace fl
