// Compares neural clients with published behaviour, in short: the scenarios of scenarios/library with fewer rounds or rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using test::ScenarioText;

// MNIST, evaluated on its test set alone.
ScenarioText mnist(const std::string& partition, const std::string& local) {
  ScenarioText s;
  s.precision = "float32";
  s.data = "name = 'mnist'";
  s.start = "kind = 'auto'";
  s.partition = partition;
  s.local = local;
  s.evaluate = "every = 1\ntrain_loss = false\ngradient = 'never'\noptimum = false";
  return s;
}

std::vector<double> test_accuracy(const ScenarioText& s) {
  std::vector<double> accuracy;
  for (const RoundRow& row : test::run_text(s.str(), {.threads = 2}).front().rows) accuracy.push_back(row.test_accuracy);
  return accuracy;
}

std::size_t rounds_to(double target, const std::vector<double>& accuracy) {
  return static_cast<std::size_t>(std::find_if(accuracy.begin(), accuracy.end(), [&](double a) { return a >= target; }) - accuracy.begin());
}

// A loop in PyTorch with these settings, standardised pixels among them, has 0.960 to 0.961 after 20 rounds.
TEST(McMahan2nn, LearnsAsFastAsAPlainLoop) {
  FL_NEED_DATA(data, "mnist");
  (void)data;
  ScenarioText s = mnist("kind = 'shuffled'\nclients = 100", "kind = 'sgd'\nepochs = 1\nbatch = 10\nlearning_rate = 0.1");
  s.rounds = 20;
  s.data += "\nnormalise = 'standard'";
  s.model = "kind = '2nn_mcmahan'";
  s.participation = "kind = 'uniform'\nclients = 10";
  const double iid = test_accuracy(s).back();
  EXPECT_GT(iid, 0.953);
  EXPECT_LT(iid, 0.968);
  s.partition = "kind = 'shards'\nclients = 100";
  EXPECT_LT(test_accuracy(s).back(), iid - 0.04) << "two digits per client are harder";
}

// Clients with one class each: SCAFFOLD, table 3 of Karimireddy et al., with softmax regression.
class NothingInCommon : public testing::Test {
 protected:
  static std::vector<double> with(const std::string& method, int epochs) {
    ScenarioText s = mnist("kind = 'similarity'\npercent = 0\nclients = 100",
                           "kind = '" + method + "'\nbatch = 24\nlearning_rate = 0.3\nepochs = " + std::to_string(epochs));
    s.rounds = 70;
    s.data += "\nrows = 12000";
    s.model = "kind = 'mlp'\nhidden = []";
    s.participation = "kind = 'uniform'\nclients = 20";
    s.feedback = method == "scaffold" ? "kind = 'scaffold'" : "kind = 'none'";
    return test_accuracy(s);
  }
  static double late_mean(const std::vector<double>& accuracy) { return std::accumulate(accuracy.end() - 20, accuracy.end(), 0.0) / 20; }
};

TEST_F(NothingInCommon, ScaffoldNeedsFewerRoundsThanFedAvgAtFiveEpochs) {
  FL_NEED_DATA(data, "mnist");
  (void)data;
  const std::size_t scaffold = rounds_to(0.87, with("scaffold", 5)), fedavg = rounds_to(0.87, with("sgd", 5));
  EXPECT_LT(2 * scaffold, fedavg) << "of 70 rounds";
}

TEST_F(NothingInCommon, FedAvgGetsWorseWithMoreLocalEpochs) {
  FL_NEED_DATA(data, "mnist");
  (void)data;
  const double one = late_mean(with("sgd", 1)), five = late_mean(with("sgd", 5)), twenty = late_mean(with("sgd", 20));
  EXPECT_GT(one, five);
  EXPECT_GT(five, twenty);
}

}  // namespace
}  // namespace fl
