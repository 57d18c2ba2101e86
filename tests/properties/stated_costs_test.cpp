// Tests that every part of the tree states its cost, and that the costs of operators have the order of measured times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "checks/model_cases.hpp"
#include "clients/learning/local_update.hpp"
#include "clients/nn/layer_text.hpp"
#include "compressors/compressor.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

template <class Interface>
std::unique_ptr<Interface> default_of(const std::string& role, const std::string& name) {
  return make_part<Interface>(role, name, Registry::instance().default_options(role, name), Device::cpu, Precision::float32);
}
std::vector<std::string> names_of(const std::string& role) { return Registry::instance().names(role); }

// One matrix of 256 x 256, as in bench/operator_bench.cpp.
Scope matrix_scope() {
  Scope scope = make_scope({{{"w", 0, 256, 256}}}, ScopeKind::model, 0, {});
  scope.clients = 4;
  return scope;
}

EntryCost cost_of_operator(const std::string& name) {
  const auto compressor = default_of<Compressor<float>>("compressor", name);
  const std::optional<EntryCost> cost = compressor->contract(compressor->adapt(matrix_scope())).cost;
  if (!cost) ADD_FAILURE() << name << " states no cost";
  return cost.value_or(EntryCost{});
}

TEST(StatedCostsTest, EveryOperatorStatesItsOwn) {
  for (const std::string& name : names_of("compressor")) {
    const EntryCost cost = cost_of_operator(name);
    EXPECT_GT(cost.passes, 0) << name;
    if (name != "identity") {
      EXPECT_GT(cost.operations, 0) << name;
    }
    EXPECT_LT(cost.passes, 1000) << name;
  }
}

TEST(StatedCostsTest, EveryFeedbackStatesItsOwn) {
  for (const std::string& name : names_of("feedback")) {
    const FeedbackPlan plan = default_of<Feedback<float>>("feedback", name)->plan();
    ASSERT_TRUE(plan.cost.has_value()) << name;
    EXPECT_GE(plan.cost->inputs, 1) << name;
    EXPECT_GE(plan.cost->server, 2) << name;
    EXPECT_GE(plan.cost->moved, static_cast<double>(plan.moves.size())) << name;
    if (!plan.error_slot.empty()) {
      EXPECT_GE(plan.cost->written + plan.cost->other.passes, 1) << name << " writes its memory";
    }
  }
}

TEST(StatedCostsTest, EveryPostprocessorStatesItsOwn) {
  for (const std::string& name : names_of("postprocessor")) {
    const PostprocessorPlan plan = default_of<Postprocessor<float>>("postprocessor", name)->plan();
    ASSERT_TRUE(plan.client_cost && plan.server_cost) << name;
    EXPECT_EQ(plan.client_cost->passes > 0, plan.changes_vectors) << name;
    EXPECT_EQ(plan.server_cost->passes > 0, plan.changes_estimate) << name;
  }
}

TEST(StatedCostsTest, EveryLocalUpdateAndOptimizerStatesItsOwn) {
  for (const std::string& name : names_of("local_update")) {
    const auto update = default_of<LocalUpdate<float>>("local_update", name);
    const std::optional<LocalCost> cost = update->traits().cost;
    ASSERT_TRUE(cost.has_value()) << name;
    EXPECT_GE(cost->gradients, 1) << name;
    if (update->step_settings().work != nullptr) {
      EXPECT_GE(cost->round.passes, 3) << name << " sends a difference of models";
    }
  }
  for (const std::string& name : names_of("local_optimizer")) {
    const auto rule = default_of<LocalOptimizer<float>>("local_optimizer", name);
    ASSERT_TRUE(rule->cost().has_value()) << name;
    EXPECT_GE(rule->cost()->passes, 3 + 2 * static_cast<double>(rule->num_states())) << name;
    EXPECT_GE(rule->cost()->operations, 2) << name;
  }
}

// Every layer once, with an input that it takes.
struct LayerSample {
  std::string text;
  nn::Shape input;
};
const std::map<std::string, LayerSample>& layer_samples() {
  static const std::map<std::string, LayerSample> samples = {
      {"batch_norm", {"batch_norm", {{3, 4, 4}}}},
      {"concat", {"concat([dense(3)], [dense(2), relu])", {{5}}}},
      {"conv2d", {"conv2d(4, 3)", {{3, 8, 8}}}},
      {"dense", {"dense(4)", {{5}}}},
      {"dropout", {"dropout(0.5)", {{5}}}},
      {"embedding", {"embedding(7, 3)", {{5}}}},
      {"flatten", {"flatten", {{3, 4, 4}}}},
      {"gelu", {"gelu", {{5}}}},
      {"group_norm", {"group_norm(1)", {{3, 4, 4}}}},
      {"lstm", {"lstm(4)", {{5, 3}}}},
      {"max_pool", {"max_pool(2)", {{3, 4, 4}}}},
      {"mean_pool", {"mean_pool(2)", {{3, 4, 4}}}},
      {"product", {"product", {{2, 5}}}},
      {"relu", {"relu", {{5}}}},
      {"residual", {"residual([dense(5)])", {{5}}}},
      {"tanh", {"tanh", {{5}}}},
  };
  return samples;
}

TEST(StatedCostsTest, EveryLayerStatesItsOwn) {
  for (const std::string& name : names_of("layer")) {
    const auto sample = layer_samples().find(name);
    ASSERT_NE(sample, layer_samples().end()) << name << " has no sample here";
    const auto layer = nn::make_layer<float>(sample->second.text, {});
    layer->bind(sample->second.input);
    const std::optional<nn::LayerCost> cost = layer->cost();
    ASSERT_TRUE(cost.has_value()) << name;
    EXPECT_GT(cost->forward.row.bytes, 0) << name;
    EXPECT_GT(cost->by_weights.row.bytes + cost->by_input.row.bytes, 0) << name;
    if (layer->tensors().empty()) continue;
    EXPECT_GT(cost->by_weights.row.operations, 0) << name;
    EXPECT_GT(cost->by_weights.minibatch.bytes, 0) << name << " writes a gradient";
  }
}

// The options without which a model cannot be made.
std::vector<std::pair<std::string, Value>> options_of(const std::string& model) {
  if (model != "neural_network") return {};
  return {{"layers", Value{std::vector<Value>{Value{std::string("flatten")}, Value{std::string("dense(classes)")}}}}};
}

TEST(StatedCostsTest, EveryModelStatesItsOwn) {
  using namespace checks;
  const std::vector<Dataset<float>> sets = [] {
    std::vector<Dataset<float>> made;
    made.push_back(make_dataset<float>(random_rows(20, 12, 2, 0.5, 1), RowStorage::dense));
    made.push_back(make_dataset<float>(quadratic_rows(5, 3), RowStorage::dense));
    made.push_back(image_rows<float>(12, 3, 1));
    made.push_back(token_rows<float>(12, 1));
    made.push_back(rating_rows<float>(12, 1));
    return made;
  }();
  for (const std::string& name : names_of("model")) {
    std::size_t bound = 0;
    for (const Dataset<float>& data : sets) {
      std::unique_ptr<Model<float>> model;
      try {
        model = make_model<float>(name, options_of(name), data);
      } catch (const ConfigError&) {
        continue;
      }
      ++bound;
      ASSERT_TRUE(model->cost().has_value()) << name;
      EXPECT_GT(model->cost()->gradient(1).operations, 0) << name;
      EXPECT_GT(model->cost()->gradient(1).bytes, 0) << name;
    }
    EXPECT_GT(bound, 0u) << name << " takes none of the data";
  }
}

// ---- the order of operators

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [value](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2);
  }
  return ranks;
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

// The table has, for each operator with its defaults, the time of an in-place add over its own. Stated costs are no times, but an operator
// that states a tenth of the work of another one and takes ten times as long would be found here.
TEST(StatedCostsTest, OperatorsAreInTheOrderOfTheMeasuredTable) {
  std::ifstream table(std::string(FL_SOURCE_DIR) + "/bench/operator_bounds.tsv");
  ASSERT_TRUE(table.is_open());
  std::vector<double> stated, measured;
  for (std::string line; std::getline(table, line);) {
    const std::size_t tab = line.find('\t');
    if (line.starts_with("#") || tab == std::string::npos || !line.substr(tab + 1).starts_with("default ")) continue;
    const EntryCost cost = cost_of_operator(line.substr(tab + 9));
    stated.push_back(cost.passes + cost.operations);
    measured.push_back(1 / std::stod(line.substr(0, tab)));
  }
  ASSERT_GE(stated.size(), 40u);
  EXPECT_GT(correlation(ranks_of(stated), ranks_of(measured)), 0.6);
}

}  // namespace
}  // namespace fl
