// Tests the rules by which messages become one vector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "server/aggregator.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<AggregationRule> rule(const std::string& kind) {
  return make_part<AggregationRule>("aggregation", kind, Registry::instance().default_options("aggregation", kind), Device::cpu,
                                    Precision::float64);
}

std::vector<double> combined(const AggregationRule& rule, const std::vector<std::vector<double>>& rows,
                             const std::vector<double>& weights) {
  ThreadPool pool(1);
  std::vector<double> flat, out(rows.front().size());
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  rule.combine(pool.exec(0), weights, {flat.data(), nullptr, static_cast<std::uint32_t>(rows.size()), out.size(), out.size()}, out);
  return out;
}

// The definition: the middle of the numbers that have half of the weight on either side, themselves included.
double median_by_definition(const std::vector<double>& values, const std::vector<double>& weights) {
  double total = 0, least = INFINITY, most = -INFINITY;
  for (const double weight : weights) total += weight;
  for (const double m : values) {
    double below = 0, above = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] <= m) below += weights[i];
      if (values[i] >= m) above += weights[i];
    }
    if (below < total / 2 || above < total / 2) continue;
    least = std::min(least, m);
    most = std::max(most, m);
  }
  return (least + most) / 2;
}

TEST(CoordinateMedian, OfKnownNumbers) {
  const auto median = rule("coordinate_median");
  EXPECT_FALSE(median->is_sum());
  EXPECT_THAT(combined(*median, {{1, 5}, {3, -1}, {2, 0}}, {1. / 3, 1. / 3, 1. / 3}), ElementsAre(2, 0));
  EXPECT_THAT(combined(*median, {{1}, {3}, {2}, {8}}, {0.25, 0.25, 0.25, 0.25}), ElementsAre(2.5))
      << "the midpoint of the two in the middle";
  EXPECT_THAT(combined(*median, {{1}, {3}, {2}}, {0.5, 0.25, 0.25}), ElementsAre(1.5)) << "1 has half of the weight";
  EXPECT_THAT(combined(*median, {{1}, {3}, {2}}, {0.625, 0.25, 0.125}), ElementsAre(1)) << "1 has more than half of the weight";
  EXPECT_THAT(combined(*median, {{1}, {3}, {2}}, {2, 2, 2}), ElementsAre(12)) << "the scale of the weights stays";
  EXPECT_THAT(combined(*median, {{7}}, {0.5}), ElementsAre(3.5));
  EXPECT_THAT(combined(*median, {{1}, {1e300}, {2}, {-1e300}, {1.5}}, {0.2, 0.2, 0.2, 0.2, 0.2}), ElementsAre(1.5));
}

TEST(CoordinateMedian, IsItsDefinition) {
  const auto median = rule("coordinate_median");
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t M = 1 + random() % 9;
    const bool is_equal = trial % 2 == 0;
    std::vector<std::vector<double>> rows(M);
    std::vector<double> weights(M, 0.125), values;
    for (std::size_t i = 0; i < M; ++i) {
      values.push_back(static_cast<double>(random() % 6));  // with equal numbers
      rows[i] = {values[i]};
      if (!is_equal) weights[i] = static_cast<double>(1 + random() % 8) / 64;  // sums are exact
    }
    double total = 0;
    for (const double weight : weights) total += weight;
    ASSERT_EQ(combined(*median, rows, weights)[0], total * median_by_definition(values, weights)) << testing::PrintToString(values);
  }
}

// Sparse messages, a lost one and a silent one, in pieces for several threads.
TEST(Aggregator, CombinesWhatArrived) {
  const std::size_t L = 40'000;
  const Scope scope{.kind = ScopeKind::model, .segments = {{0, L, L, 1}}, .excluded = {}, .P = L};
  std::vector<Payload<double>> payloads(4);
  std::mt19937 random(3);
  std::vector<std::vector<double>> dense(4, std::vector<double>(L));
  for (std::size_t i = 0; i < 3; ++i) {
    payloads[i].clear(L);
    payloads[i].silent = false;
    payloads[i].value.resize_discard(L);
    for (double& value : payloads[i].value) value = static_cast<double>(random() % 100) - 50;
    write_dense(payloads[i], scope, dense[i].data());
  }
  payloads[3].clear(L);
  payloads[3].silent = true;
  const std::vector<const Payload<double>*> messages = {&payloads[0], nullptr, &payloads[1], &payloads[2], &payloads[3]};
  const std::vector<double> weights = {0.25, 0, 0.25, 0.25, 0.25};
  std::vector<double> once(L), again(L);
  ThreadPool one(1), four(4);
  const auto median = rule("coordinate_median");
  Aggregator<double>(one).combine(*median, messages, weights, scope, once);
  Aggregator<double>(four).combine(*median, messages, weights, scope, again);
  EXPECT_EQ(once, again);
  for (std::size_t j = 0; j < L; j += 37)
    ASSERT_EQ(once[j], median_by_definition({dense[0][j], dense[1][j], dense[2][j], 0}, {1, 1, 1, 1})) << j;
  const std::vector<const Payload<double>*> nothing(5, nullptr);
  Aggregator<double>(one).combine(*median, nothing, weights, scope, once);
  EXPECT_EQ(once, std::vector<double>(L));
}

// ---- scenarios

test::ScenarioText study(const std::string& aggregation) {
  test::ScenarioText text = test::quadratics();
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.up = "kind = 'top_k'\nk = 4";
  text.feedback = "kind = 'ef14'";
  if (!aggregation.empty()) text.more = "[aggregation]\nkind = '" + aggregation + "'\n";
  return text;
}

TEST(AggregationOfScenarios, TheMeanIsNotWritten) {
  const Cell without = parse_cells(study("").str(), "test.toml").at(0), with = parse_cells(study("mean").str(), "test.toml").at(0),
             median = parse_cells(study("coordinate_median").str(), "test.toml").at(0);
  EXPECT_EQ(without.hash, with.hash);
  EXPECT_THAT(without.resolved_toml, testing::Not(HasSubstr("aggregation")));
  EXPECT_THAT(median.resolved_toml, HasSubstr("[aggregation]\nkind = \"coordinate_median\""));
  EXPECT_NE(without.hash, median.hash);
}

TEST(AggregationOfScenarios, AMedianIsAnotherRunOnAnyNumberOfThreads) {
  const std::string text = study("coordinate_median").str();
  const RunResult one = test::run_text(text)[0], four = test::run_text(text, {.threads = 4})[0],
                  bytes = test::run_text(text, {.materialise = true})[0];
  EXPECT_EQ(one.record.status, RunStatus::done) << one.record.message;
  EXPECT_EQ(one.record.checksum, four.record.checksum);
  EXPECT_EQ(one.record.checksum, bytes.record.checksum);
  EXPECT_NE(one.record.checksum, test::run_text(study("").str())[0].record.checksum);
  EXPECT_LT(one.rows.back().f_gap, one.rows.front().f_gap);
}

// The rule has to be all that becomes of a message at the server.
TEST(AggregationOfScenarios, AMedianIsRefusedWhereSumsAreNeeded) {
  const auto refusal = [](const test::ScenarioText& text) -> std::string {
    try {
      (void)test::run_text(text.str());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  test::ScenarioText ef21 = study("coordinate_median"), phases = test::mushrooms(4);
  ef21.feedback = "kind = 'ef21'";
  EXPECT_THAT(refusal(ef21),
              HasSubstr("aggregation.kind: 'coordinate_median' is no sum of messages, which 'ef21' adds to the server's state"));
  phases.model = "kind = 'mlp'\nhidden = [4]";
  phases.local = "kind = 'gradient'\nlearning_rate = 0.1";
  phases.up = "kind = 'powersgd'\nrank = 1\nscope = 'tensor'";
  phases.feedback = "kind = 'ef14'";
  phases.more = "[aggregation]\nkind = 'coordinate_median'\n";
  EXPECT_THAT(refusal(phases), HasSubstr("learn the mean of a first one"));
  EXPECT_THAT(refusal(study("median")), HasSubstr("coordinate_median"));
}

}  // namespace
}  // namespace fl
