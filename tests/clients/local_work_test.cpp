// Tests the amount of a client's work in a round: stragglers, as FedProx and FedNova simulate them.
#include "clients/learning/local_work.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

TEST(LocalWork, StragglersDoUniformlyLessInTheirShareOfRounds) {
  const LocalWork work{.epochs = 5, .stragglers = 0.6, .least = 2};
  std::map<std::int64_t, int> count;
  constexpr int kDraws = 40000;
  for (std::uint32_t client = 0; client < 100; ++client)
    for (std::uint32_t round = 1; round <= kDraws / 100; ++round) ++count[work.amount(7, client, round)];
  ASSERT_EQ(count.size(), 4u);
  EXPECT_EQ(count.begin()->first, 2);
  const auto near = [&](std::int64_t amount, double p) {  // five standard deviations
    return std::fabs(count[amount] - kDraws * p) <= 5 * std::sqrt(kDraws * p * (1 - p));
  };
  for (const std::int64_t amount : {2, 3, 4}) EXPECT_TRUE(near(amount, 0.15)) << amount << ": " << count[amount];
  EXPECT_TRUE(near(5, 0.4 + 0.15)) << count[5];
}

TEST(LocalWork, IsDrawnAnewInEveryRoundOrOnceForEachClient) {
  const auto amounts = [](LocalWork::Redraw redraw, std::uint32_t client) {
    const LocalWork work{.steps = 50, .stragglers = 1, .least = 1, .redraw = redraw};
    std::set<std::int64_t> seen;
    for (std::uint32_t round = 1; round <= 40; ++round) seen.insert(work.amount(1, client, round));
    return seen;
  };
  EXPECT_GT(amounts(LocalWork::Redraw::round, 3).size(), 10u);
  EXPECT_EQ(amounts(LocalWork::Redraw::client, 3).size(), 1u);
  EXPECT_NE(amounts(LocalWork::Redraw::client, 3), amounts(LocalWork::Redraw::client, 4));
}

TEST(LocalWork, WithoutStragglersEveryoneDoesEverything) {
  EXPECT_EQ((LocalWork{.steps = 9}.amount(1, 2, 3)), 9);
  EXPECT_EQ((LocalWork{.steps = 9, .epochs = 4}.amount(1, 2, 3)), 4);
}

// Epochs are counted instead of steps, so steps beside them would be read and ignored.
TEST(LocalWork, StepsBesideEpochsAreRefused) {
  test::ScenarioText s = test::quadratics();
  const auto refusal = [&s](const std::string& amount) -> std::string {
    s.local = "kind = 'sgd'\nlearning_rate = 0.01\n" + amount;
    try {
      test::OneRun<double> run(s.str());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("epochs = 2\nsteps = 5"), testing::HasSubstr("local.steps: has no effect beside epochs = 2"));
  EXPECT_EQ(refusal("epochs = 2"), "");
  EXPECT_EQ(refusal("epochs = 0\nsteps = 5"), "");
}

// FedNova divides by what a straggler really did: with one row of data each and nothing stochastic, x moves along the mean gradient.
TEST(LocalWork, NormalisedAverageKnowsWhatStragglersDid) {
  test::ScenarioText s = test::quadratics();
  s.local = "kind = 'sgd'\nlearning_rate = 0.01\nsteps = 8\nstragglers = 1\nredraw = 'client'";
  s.server = "kind = 'sgd'\naverage = 'normalised'";
  s.start = "kind = 'optimum'";
  const auto drift = [&s] {
    test::OneRun<double> run(s.str());
    const std::vector<double> before = run.model();
    run.play(1, 1);
    double sum = 0;
    for (std::size_t j = 0; j < before.size(); ++j) sum += std::pow(run.model()[j] - before[j], 2);
    return std::sqrt(sum);
  };
  const double normalised = drift();
  s.server = "kind = 'sgd'";
  EXPECT_LT(5 * normalised, drift()) << "plain averaging leaves the optimum towards the clients that do more";
}

TEST(LocalWork, MoreAtLeastThanAtMostIsRefused) {
  test::ScenarioText s = test::quadratics();
  s.local = "kind = 'sgd'\nsteps = 3\nstragglers = 0.5\nleast = 4";
  EXPECT_THROW(test::OneRun<double>(s.str()), ConfigError);
}

// ---- batches larger than a client's rows ----

TEST(LargeBatches, OfAnEpochAreAllRowsAtOnce) {
  test::ScenarioText s = test::uneven_quadratics();  // clients of 3, 3, 3 and 2 rows
  s.local = "kind = 'sgd'\nlearning_rate = 0.1\nepochs = 2\nbatch = 50";
  test::OneRun<double> large(s.str());
  s.local = "kind = 'sgd'\nlearning_rate = 0.1\nsteps = 2";
  test::OneRun<double> full(s.str());
  large.play(1, 3);
  full.play(1, 3);
  for (std::size_t j = 0; j < full.model().size(); ++j) EXPECT_NEAR(large.model()[j], full.model()[j], 1e-14);
}

TEST(LargeBatches, WithoutReplacementAreRefusedWithTheClientsName) {
  test::ScenarioText s = test::uneven_quadratics();
  s.local = "kind = 'sgd'\nsteps = 2\nbatch = 3\nreplacement = false";
  try {
    test::OneRun<double> run(s.str());
    ADD_FAILURE() << "was not refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("3 rows without replacement, but client 3 has 2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fl
