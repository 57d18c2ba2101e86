// Tests the work of clients' rounds from stated costs: steps, epochs, stragglers, sparse rows, messages, and the table [costs].
#include "scenarios/experiment/stated_work.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "compressors/codec/codec_cost.hpp"
#include "compressors/support/operator_cost.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sweep.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

const std::string kDevices = "[devices]\nkind = 'constant'\nflops = 1e9\nbandwidth = 1e9\n";

// The work of the first cell of a scenario.
struct Built {
  explicit Built(const std::string& text)
      : cell(parse_cells(text, "test.toml").at(0)),
        pool(1),
        problem(cell.scenario, DataCatalog(""), pool),
        method(make_method<double>(cell.scenario, problem.layers(), problem.shards().size(), Device::cpu)),
        work(make_client_work(cell.scenario, problem, method)) {}
  Cell cell;
  ThreadPool pool;
  FederatedProblem<double> problem;
  RunMethod<double> method;
  std::unique_ptr<ClientWork> work;
};

// 1003 dense or sparse rows of the embedded set, by 4 clients.
test::ScenarioText mushrooms(const std::string& local, const std::string& more = "") {
  test::ScenarioText s = test::mushrooms(4);
  s.local = local;
  s.model = "kind = 'logistic_regression'";
  s.more = kDevices + more;
  return s;
}
std::string sgd(const std::string& keys) { return "kind = 'sgd'\nlearning_rate = 0.1\n" + keys; }

std::string refusal_of_work(const std::string& text) {
  try {
    const Built built(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// A step without its gradient: y -= gamma g reads two numbers and writes one. A round: y is copied, and the difference is written.
TEST(StatedWorkTest, StepsAddGradientsAndVectors) {
  const Built one(mushrooms(sgd("steps = 1\nbatch = 8")).str()), five(mushrooms(sgd("steps = 5\nbatch = 8")).str());
  const double P = static_cast<double>(one.problem.P());
  const Work first = one.work->local(0, 1), second = five.work->local(0, 1), round = {P, 5 * 8 * P};
  EXPECT_NEAR(second.operations - round.operations, 5 * (first.operations - round.operations), 1e-6 * second.operations);
  EXPECT_NEAR(second.bytes - round.bytes, 5 * (first.bytes - round.bytes), 1e-6 * second.bytes);
  EXPECT_EQ(one.work->local(0, 1), one.work->local(0, 7)) << "all rounds are alike without stragglers";
}

TEST(StatedWorkTest, SparseRowsCountWhatTheyStore) {
  const Built built(mushrooms("kind = 'gradient'\nlearning_rate = 0.1").str());
  ASSERT_TRUE(built.problem.train().is_sparse);
  const auto& shard = built.problem.shards()[1];
  double stored = 0;
  for (const std::uint32_t row : shard)
    stored +=
        static_cast<double>(built.problem.train().sparse.row_begin.data()[row + 1] - built.problem.train().sparse.row_begin.data()[row]);
  const Work expected = built.problem.model().cost()->gradient(static_cast<double>(shard.size()), stored);
  EXPECT_NEAR(built.work->local(1, 1).operations, expected.operations, 1e-9 * expected.operations);
  EXPECT_NEAR(built.work->local(1, 1).bytes, expected.bytes, 1e-9 * expected.bytes);
}

TEST(StatedWorkTest, EpochsTakeAllRowsAndSplitThemIntoMinibatches) {
  const Built epochs(mushrooms(sgd("epochs = 3\nbatch = 16")).str());
  const auto rows = static_cast<double>(epochs.problem.shards()[0].size());
  const double steps = 3 * std::ceil(rows / 16), P = static_cast<double>(epochs.problem.P());
  const Built full(mushrooms("kind = 'gradient'\nlearning_rate = 0.1").str());
  const double of_rows = 3 * full.work->local(0, 1).operations;  // operations of a linear model have no part per minibatch
  EXPECT_NEAR(epochs.work->local(0, 1).operations, of_rows + steps * 2 * P + P, 1e-9 * of_rows);
}

TEST(StatedWorkTest, StragglersDoWhatIsDrawnForThem) {
  const Built built(mushrooms(sgd("steps = 10\nbatch = 8\nstragglers = 1")).str());
  const StepSettings settings = built.method.local->step_settings();
  const double P = static_cast<double>(built.problem.P());
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const auto steps = static_cast<double>(settings.work->amount(built.cell.scenario.seeds.sampling, 2, round));
    const Built one(mushrooms(sgd("steps = 1\nbatch = 8")).str());
    EXPECT_NEAR(built.work->local(2, round).operations - P, steps * (one.work->local(2, 1).operations - P), 1e-6 * steps * P) << round;
  }
}

TEST(StatedWorkTest, CoinsReplaceTwoSmallGradientsByOneFull) {
  test::ScenarioText s = mushrooms("kind = 'gradient_difference'\nlearning_rate = 0.1\nbatch = 4");
  s.feedback = "kind = 'marina'\np = 0.5";
  s.up = "kind = 'random_k'\nk = 3\nscaled = true";
  const Built built(s.str());
  std::set<double> found;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const bool coin = built.method.feedback->toss(run_settings(built.cell.scenario, built.method, built.problem), round);
    const double full = Built(mushrooms("kind = 'gradient'\nlearning_rate = 0.1").str()).work->local(0, 1).operations;
    if (coin) {
      EXPECT_EQ(built.work->local(0, round).operations, full);
    }
    found.insert(built.work->local(0, round).operations);
  }
  EXPECT_EQ(found.size(), 2u);
}

TEST(StatedWorkTest, MessagesCountFeedbackOperatorAndBits) {
  test::ScenarioText s = mushrooms(sgd("steps = 1\nbatch = 8"));
  s.feedback = "kind = 'ef14'";
  s.up = "kind = 'top_k'\nk = 5";
  const Built built(s.str());
  const auto P = static_cast<double>(built.problem.P());
  const EntryCost top_k = costs::selection(5 / P), memory{3, 5};
  const Work expected = (top_k + memory).of(built.problem.P(), sizeof(double)) + 1000 * codec::kWorkPerBit;
  EXPECT_NEAR(built.work->message(0, 1000).operations, expected.operations, 1e-9 * expected.operations);
  EXPECT_NEAR(built.work->message(0, 1000).bytes, expected.bytes, 1e-9 * expected.bytes);
  EXPECT_EQ(built.work->aggregation(0, 4, 4000).operations, 4000 * codec::kWorkPerBit.operations + 2 * std::min(4 * P, 4000.0));
}

TEST(StatedWorkTest, WrittenCostsTakeTheirPlace) {
  const Built built(mushrooms(sgd("steps = 2\nbatch = 8"),
                              "[costs]\nmodel_flops = 1000\nlocal_flops = 10\ncompressor_operations = 3\ncompressor_passes = 0\n"
                              "feedback_operations = 4\n")
                        .str());
  const auto P = static_cast<double>(built.problem.P());
  EXPECT_EQ(built.work->local(0, 1).operations, 2 * (8 * 1000 + 10) + P);
  EXPECT_EQ(built.work->message(0, 0).operations, 7 * P);
  EXPECT_EQ(built.work->message(0, 0).bytes, P * sizeof(double)) << "the input of feedback \"none\"";
}

TEST(StatedWorkTest, CostsWithoutDevicesAreRefused) {
  test::ScenarioText s = test::mushrooms(4);
  s.more = "[costs]\nmodel_flops = 1000\n";
  try {
    (void)parse_scenario(s.str(), "f.toml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("costs: has no effect without [devices]"));
  }
}

TEST(StatedWorkTest, UnwrittenCostsStayOutOfTheResolvedText) {
  EXPECT_THAT(to_toml(parse_scenario(mushrooms(sgd("steps = 1\nbatch = 8")).str(), "f.toml")), testing::Not(HasSubstr("[costs]")));
  const std::string text = to_toml(parse_scenario(mushrooms(sgd("steps = 1\nbatch = 8"), "[costs]\nmodel_flops = 5\n").str(), "f.toml"));
  EXPECT_THAT(text, HasSubstr("[costs]\nmodel_flops = 5"));
  EXPECT_EQ(to_toml(parse_scenario(text, "f.toml")), text);
}

// An operator without a cost, as a plug-in may be.
template <class T>
class Uncosted final : public Compressor<T> {
 public:
  explicit Uncosted(const NoOptions&)
      : inner_(make_part<Compressor<T>>("compressor", "identity", identity(), Device::cpu, kPrecisionOf<T>)) {}
  [[nodiscard]] Contract contract(const Scope&) const override { return {}; }
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    inner_->compress(exec, context, input, scope, state, messages);
  }

 private:
  static Options identity() { return Registry::instance().default_options("compressor", "identity"); }
  std::unique_ptr<Compressor<T>> inner_;
};

TEST(StatedWorkTest, PartsWithoutACostNameTheirKeys) {
  Registry& registry = Registry::instance();
  registry.describe({"compressor", "uncosted_for_test", "", ""}, Options::of<NoOptions>());
  registry.add("compressor", "uncosted_for_test", Device::cpu, Precision::float64,
               Factory<Compressor<double>>([](const Options& o) -> std::unique_ptr<Compressor<double>> {
                 return std::make_unique<Uncosted<double>>(o.as<NoOptions>());
               }));
  test::ScenarioText s = mushrooms(sgd("steps = 1\nbatch = 8"));
  s.up = "kind = 'uncosted_for_test'";
  const std::string refused = refusal_of_work(s.str());
  EXPECT_THAT(refused, HasSubstr("costs.compressor_passes: compressor \"uncosted_for_test\" does not state its cost"));
  EXPECT_THAT(refused, HasSubstr("costs.compressor_operations"));
  s.more += "[costs]\ncompressor_passes = 2\ncompressor_operations = 1\n";
  EXPECT_EQ(refusal_of_work(s.str()), "");
}

TEST(StatedWorkTest, TiersHaveTheirSeconds) {
  const Built built(mushrooms(sgd("steps = 2\nbatch = 8")).str());
  const std::vector<TierSeconds> tiers = tier_seconds(built.cell.scenario, built.problem, built.method, {.up = 1000, .down = 500});
  ASSERT_EQ(tiers.size(), 1u);
  EXPECT_EQ(tiers[0].clients, 4u);
  double seconds = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Work work = built.work->local(i, 1);
    seconds += std::max(work.operations, work.bytes) / 1e9 / 4;
  }
  EXPECT_NEAR(tiers[0].local_s, seconds, 1e-12);
  EXPECT_EQ(tiers_of_text(text_of_tiers(tiers)).at(0).local_s, tiers[0].local_s);
}

}  // namespace
}  // namespace fl
