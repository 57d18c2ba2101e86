// Tests local optimizers: their steps against numbers made without this library, and their place in a scenario.
#include "clients/learning/local_optimizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "clients/learning/optimizer_state.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Settings = std::vector<std::pair<std::string, Value>>;

template <class T>
std::unique_ptr<LocalOptimizer<T>> optimizer(const std::string& kind, const Settings& settings) {
  Options options = Registry::instance().default_options("local_optimizer", kind);
  Schema schema = options.schema();
  for (const auto& [key, value] : settings) EXPECT_EQ(schema.find(key)->assign(value), std::nullopt) << key;
  return make_part<LocalOptimizer<T>>("local_optimizer", kind, options, Device::cpu, kPrecisionOf<T>);
}

// One client's steps.
template <class T>
class Walk {
 public:
  Walk(std::unique_ptr<LocalOptimizer<T>> rule, std::vector<T> y, LayerTable layers = {})
      : rule_(std::move(rule)),
        w_(y),
        y_(std::move(y)),
        layers_(std::move(layers)),
        states_(rule_->num_states(), std::vector<T>(y_.size())) {
    if (layers_.layers.empty()) layers_ = {{{"all", 0, y_.size()}}};
  }
  const std::vector<T>& step(double gamma, std::vector<T> g) {
    ++count_;
    const std::size_t P = y_.size();
    std::vector<BatchView<T>> states;
    for (std::vector<T>& state : states_) states.push_back({state.data(), nullptr, 1, P, P});
    rule_->step({.workspace = &workspace_}, {.count = std::span(&count_, 1),
                                             .gamma = gamma,
                                             .layers = layers_,
                                             .w = {w_.data(), nullptr, 1, P, P},
                                             .g = {g.data(), nullptr, 1, P, P},
                                             .y = {y_.data(), nullptr, 1, P, P},
                                             .states = states});
    return y_;
  }

 private:
  std::unique_ptr<LocalOptimizer<T>> rule_;
  std::vector<T> w_, y_;
  LayerTable layers_;
  std::vector<std::vector<T>> states_;
  std::uint64_t count_ = 0;
  Workspace workspace_;
};

std::vector<double> numbers_of(std::istream& line) {
  std::vector<double> numbers;
  for (std::string word; line >> word;) numbers.push_back(std::stod(word));
  return numbers;
}

// tests/golden/adamw.py follows the publication and writes the file.
TEST(AdamW, IsThePublishedOne) {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/tests/golden/adamw.txt");
  ASSERT_TRUE(file.is_open());
  std::optional<Walk<double>> walk;
  double gamma = 0;
  std::vector<double> g;
  int steps = 0, cases = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    const std::vector<double> numbers = numbers_of(line);
    if (word == "case") {
      std::vector<double> start;
      for (int j = 0; j < 7; ++j) start.push_back(0.5 * (j % 2 == 0 ? 1 : -1) * (j + 1));
      walk.emplace(optimizer<double>("adamw", {{"beta1", Value{numbers[0]}},
                                               {"beta2", Value{numbers[1]}},
                                               {"epsilon", Value{numbers[2]}},
                                               {"weight_decay", Value{numbers[3]}}}),
                   start);
      gamma = numbers[4];
      ++cases;
    } else if (word == "g") {
      g = numbers;
    } else {
      const std::vector<double>& y = walk->step(gamma, g);
      for (std::size_t j = 0; j < y.size(); ++j)
        ASSERT_NEAR(y[j], numbers[j], 1e-12 * std::max(1.0, std::abs(numbers[j])))
            << "case " << cases << ", step " << steps << ", entry " << j;
      ++steps;
    }
  }
  EXPECT_EQ(cases, 4);
  EXPECT_EQ(steps, 100);
}

TEST(AdamW, FirstStepHasTheLengthOfTheStepSize) {
  Walk<double> plain(optimizer<double>("adamw", {{"weight_decay", Value{0.0}}}), {1, 1, 1, 1});
  const std::vector<double> y = plain.step(0.25, {3, -0.002, 1e9, 0});
  EXPECT_NEAR(y[0], 0.75, 1e-8);
  EXPECT_NEAR(y[1], 1.25, 1e-5);  // epsilon is 5e-6 of the gradient
  EXPECT_NEAR(y[2], 0.75, 1e-12);
  EXPECT_EQ(y[3], 1);
  Walk<double> decaying(optimizer<double>("adamw", {{"weight_decay", Value{0.5}}}), {1, 1});
  EXPECT_NEAR(decaying.step(0.25, {3, 0})[0], 1 - 0.125 - 0.25, 1e-8);
  EXPECT_NEAR(decaying.step(0.25, {3, 0})[1], 0.875 * 0.875, 1e-15) << "the decay is no part of the gradient";
}

TEST(AdamW, DecayLeavesOutLayersByName) {
  const LayerTable layers{{{"a", 0, 2}, {"b", 2, 1}, {"c", 3, 2}, {"d", 5, 1}}};
  const Value names{Value::List{Value{std::string("b")}, Value{std::string("d")}}};
  auto rule = optimizer<double>("adamw", {{"weight_decay", Value{0.5}}, {"no_decay", names}});
  EXPECT_NO_THROW(rule->check(layers));
  Walk<double> walk(std::move(rule), std::vector<double>(6, 1), layers);
  EXPECT_THAT(walk.step(0.5, std::vector<double>(6, 0)), testing::ElementsAre(0.75, 0.75, 1, 0.75, 0.75, 1));
  EXPECT_THROW(optimizer<double>("adamw", {{"no_decay", Value{Value::List{Value{std::string("e")}}}}})->check(layers), ConfigError);
}

TEST(StepCounts, AreExactInFloat) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65535}, std::uint64_t{65536}, std::uint64_t{16777217},
                                    std::uint64_t{1} << 38 | 12345}) {
    float row[kStepCountLength];
    write_step_count(count, row);
    EXPECT_EQ(read_step_count(row), count);
  }
}

// ---- scenarios

test::ScenarioText study(const std::string& optimizer, const std::string& more_local = "") {
  test::ScenarioText text = test::mushrooms(4);
  text.rounds = 12;
  text.model = "kind = 'logistic_regression'\nl2 = 0.01";
  text.local = "kind = 'sgd'\nbatch = 20\nsteps = 3\nlearning_rate = 0.05\n" + more_local;
  text.up = "kind = 'top_k'\nk = 20";
  text.feedback = "kind = 'ef14'";
  text.evaluate = "every = 4";
  if (!optimizer.empty()) text.more = "[local_optimizer]\n" + optimizer + "\n";
  return text;
}
RunResult run(const test::ScenarioText& text, const MachineOptions& machine = {}) {
  RunResult result = test::run_text(text.str(), machine).at(0);
  EXPECT_EQ(result.record.status, RunStatus::done) << result.record.message;
  return result;
}
std::string refusal(const test::ScenarioText& text) {
  try {
    (void)test::run_text(text.str());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OptimizerOfScenarios, PlainStepsAreNotWritten) {
  const auto cell = [](const test::ScenarioText& text) { return parse_cells(text.str(), "test.toml").at(0); };
  const Cell without = cell(study("")), with = cell(study("kind = 'sgd'")), adamw = cell(study("kind = 'adamw'")),
             momentum = cell(study("kind = 'sgd'\nmomentum = 0.5"));
  EXPECT_EQ(without.hash, with.hash);
  EXPECT_THAT(without.resolved_toml, Not(HasSubstr("local_optimizer")));
  EXPECT_THAT(momentum.resolved_toml, HasSubstr("[local_optimizer]\nkind = \"sgd\"\nmomentum = 0.5"));
  EXPECT_THAT(adamw.resolved_toml, HasSubstr("[local_optimizer]\nkind = \"adamw\"\nbeta1 = 0.9"));
  for (const Cell& one : {momentum, adamw}) {
    EXPECT_NE(without.hash, one.hash);
    EXPECT_EQ(parse_cells(one.resolved_toml, "again.toml").at(0).hash, one.hash);
  }
}

TEST(OptimizerOfScenarios, MomentumIsTheSameInBothPlaces) {
  for (const std::string more : {"", "proximal_mu = 0.3\nweight_decay = 0.01\n"}) {
    const RunResult local = run(study("", more + "momentum = 0.8")), optimizer = run(study("kind = 'sgd'\nmomentum = 0.8", more));
    EXPECT_EQ(local.record.checksum, optimizer.record.checksum);
    EXPECT_NE(local.record.checksum, run(study("", more)).record.checksum);
  }
  test::ScenarioText normalised = study("kind = 'sgd'\nmomentum = 0.8"), as_before = study("", "momentum = 0.8");
  normalised.server = as_before.server = "kind = 'sgd'\naverage = 'normalised'";
  EXPECT_EQ(run(normalised).record.checksum, run(as_before).record.checksum);
}

TEST(OptimizerOfScenarios, BlocksAndThreadsDoNotMatter) {
  for (const std::string state : {"round", "client"}) {
    test::ScenarioText text = study("kind = 'adamw'\nstate = '" + state + "'", "proximal_mu = 0.1");
    text.participation = "kind = 'uniform'\nclients = 3";
    const RunResult one = run(text);
    EXPECT_EQ(one.record.checksum, run(text, {.threads = 4}).record.checksum);
    EXPECT_EQ(one.record.checksum, run(text, {.block = 2}).record.checksum);
    EXPECT_EQ(one.record.checksum, run(text, {.materialise = true}).record.checksum);
    EXPECT_LT(one.rows.back().train_loss, one.rows.front().train_loss);
  }
}

// One client that sends everything: R rounds of one step are R steps of a round, if the vectors stay with the client.
TEST(OptimizerOfScenarios, VectorsLastForARoundOrStayWithTheClient) {
  const auto loss_after = [](int rounds, int steps, const std::string& optimizer) {
    test::ScenarioText text = test::quadratics("clients = 1\nzeta_sq = 0");
    text.start = "kind = 'zero'\nshift = 1.0";
    text.partition = "kind = 'natural'\nclients = 1";
    text.rounds = rounds;
    text.local = "kind = 'sgd'\nsteps = " + std::to_string(steps) + "\nlearning_rate = 0.03";
    text.more = "[local_optimizer]\n" + optimizer;
    return run(text).rows.back().train_loss;
  };
  for (const std::string kind : {"kind = 'adamw'\n", "kind = 'sgd'\nmomentum = 0.9\n"}) {
    const double at_once = loss_after(1, 24, kind), kept = loss_after(24, 1, kind + "state = 'client'"),
                 in_threes = loss_after(8, 3, kind + "state = 'client'"), anew = loss_after(24, 1, kind);
    EXPECT_NEAR(kept, at_once, 1e-12 * std::abs(at_once)) << kind;
    EXPECT_NEAR(in_threes, at_once, 1e-12 * std::abs(at_once)) << kind;
    EXPECT_GT(std::abs(anew - at_once), 1e-6 * std::abs(at_once)) << kind;
  }
}

// Statistics of batch normalisation move at their own rate, whatever decays.
TEST(OptimizerOfScenarios, StatisticsDoNotPassThroughTheOptimizer) {
  test::ScenarioText text = study("kind = 'adamw'\nweight_decay = 0.5", "");
  text.model = "kind = 'neural_network'\nlayers = ['dense(4)', 'batch_norm', 'relu', 'dense(classes)']";
  text.start = "kind = 'auto'";
  text.up = "kind = 'identity'";
  const RunResult with = run(text);
  EXPECT_TRUE(std::isfinite(with.rows.back().train_loss));
  EXPECT_LT(with.rows.back().train_loss, with.rows.front().train_loss);
}

TEST(OptimizerOfScenarios, FedDynTakesAnyOptimizer) {
  test::ScenarioText text = study("kind = 'adamw'");
  text.local = "kind = 'feddyn'\nbatch = 20\nsteps = 3\nlearning_rate = 0.02\nalpha = 0.1";
  text.feedback = "kind = 'feddyn'";
  text.up = "kind = 'identity'";
  const RunResult adamw = run(text);
  EXPECT_LT(adamw.rows.back().train_loss, adamw.rows.front().train_loss);
}

TEST(OptimizerOfScenarios, WrongInputNamesTheKey) {
  EXPECT_THAT(refusal(study("kind = 'adamw'\nbeta1 = 1")), HasSubstr("local_optimizer.beta1: must be >= 0, < 1, is 1"));
  EXPECT_THAT(refusal(study("kind = 'adamw'\nbeta2 = -0.1")), HasSubstr("local_optimizer.beta2"));
  EXPECT_THAT(refusal(study("kind = 'adamw'\nepsilon = -1e-8")), HasSubstr("local_optimizer.epsilon"));
  EXPECT_THAT(refusal(study("kind = 'adamw'\nepsilon = 0")), HasSubstr("local_optimizer.epsilon"));
  EXPECT_THAT(refusal(study("kind = 'adamw'\nweight_decay = nan")), HasSubstr("local_optimizer.weight_decay"));
  EXPECT_THAT(refusal(study("kind = 'adamw'\nno_decay = ['biases']")), AllOf(HasSubstr("no_decay"), HasSubstr("no layer \"biases\"")));
  EXPECT_THAT(refusal(study("kind = 'sgd'\nmomentum = 1")), HasSubstr("local_optimizer.momentum"));
  EXPECT_THAT(refusal(study("kind = 'sgd'\nstate = 'client'")), HasSubstr("give momentum, or drop state"));
  EXPECT_THAT(refusal(study("kind = 'adam'")), HasSubstr("adamw"));
}

TEST(OptimizerOfScenarios, MomentumInTwoPlacesIsRefused) {
  EXPECT_THAT(refusal(study("kind = 'sgd'\nmomentum = 0.5", "momentum = 0.9")),
              HasSubstr("local.momentum: local_optimizer.momentum gives the momentum too: remove local.momentum"));
  EXPECT_THAT(refusal(study("kind = 'sgd'\nmomentum = 0", "momentum = 0.9")), HasSubstr("remove local.momentum"));
  EXPECT_THAT(refusal(study("kind = 'adamw'", "momentum = 0.9")), HasSubstr("remove local.momentum"));
}

TEST(OptimizerOfScenarios, IsRefusedWhereItsStepsDoNotFit) {
  test::ScenarioText gradient = study("kind = 'adamw'"), scaffold = gradient, momentum = study("kind = 'sgd'\nmomentum = 0.5"),
                     plain = study("kind = 'sgd'");
  gradient.local = momentum.local = plain.local = "kind = 'gradient'\nlearning_rate = 0.1";
  scaffold.local = "kind = 'scaffold'\nsteps = 3\nlearning_rate = 0.1";
  scaffold.feedback = "kind = 'scaffold'";
  scaffold.up = "kind = 'identity'";
  EXPECT_THAT(refusal(gradient), HasSubstr("'adamw' does not suit local kind 'gradient', which takes no local steps"));
  EXPECT_THAT(refusal(momentum), HasSubstr("'sgd' with options does not suit local kind 'gradient'"));
  EXPECT_THAT(refusal(scaffold), HasSubstr("'adamw' does not suit local kind 'scaffold', whose theory takes the steps y <- y - gamma d"));
  EXPECT_EQ(refusal(plain), "");
  test::ScenarioText nova = study("kind = 'adamw'");
  nova.server = "kind = 'sgd'\naverage = 'normalised'";
  EXPECT_THAT(refusal(nova), AllOf(HasSubstr("server.average"), HasSubstr("local_optimizer.kind = \"adamw\"")));
  test::ScenarioText theory = study("kind = 'adamw'", "");
  theory.local = "kind = 'sgd'\nsteps = 1\nlearning_rate = 'theory'";
  theory.feedback = "kind = 'ef21'";
  EXPECT_THAT(refusal(theory), HasSubstr("\"sgd\" with local_optimizer.kind = \"adamw\" sends something else"));
}

TEST(OptimizerOfScenarios, AdamWLearnsFashionMnist) {
  FL_NEED_DATA(images, "fashion-mnist");
  test::ScenarioText text = study("kind = 'adamw'");
  text.precision = "float32";
  text.rounds = 6;
  text.data = "name = 'fashion-mnist'\nrows = 3000";
  text.partition = "kind = 'shuffled'\nclients = 6";
  text.model = "kind = 'mlp'\nhidden = [64]";
  text.start = "kind = 'auto'";
  text.local = "kind = 'sgd'\nbatch = 50\nepochs = 2\nlearning_rate = 0.003";
  text.up = "kind = 'identity'";
  text.feedback = "kind = 'none'";
  text.evaluate = "every = 6\noptimum = false";
  const RunResult result = run(text);
  EXPECT_GT(result.rows.back().test_accuracy, 0.75);
}

}  // namespace
}  // namespace fl
