// Tests ranges of parameters by kind: shared, averaged and kept tensors side by side, in every order and at both ends of the vector.
#include "fl_core/message/parameter_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {
namespace {

using Kinds = std::vector<ParameterKind>;
constexpr ParameterKind kShared = ParameterKind::shared, kAveraged = ParameterKind::averaged, kKept = ParameterKind::kept;

// Returns tensors of these kinds with 2, 3, 4, ... entries.
LayerTable table_of_kinds(const Kinds& kinds) {
  LayerTable table;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    table.layers.push_back({.name = "t" + std::to_string(i), .begin = table.size(), .rows = i + 2, .kind = kinds[i]});
  return table;
}

// Returns the positions of all tensors of a kind.
std::vector<double> positions_of(const LayerTable& table, ParameterKind kind) {
  std::vector<double> positions;
  for (const Layer& layer : table.layers)
    for (std::size_t j = layer.begin; j < layer.begin + layer.size() && layer.kind == kind; ++j)
      positions.push_back(static_cast<double>(j));
  return positions;
}

std::vector<Kinds> all_orders() {
  std::vector<Kinds> orders = {{kKept}, {kAveraged}, {kKept, kAveraged}, {kShared}, {kKept, kKept, kShared, kAveraged, kKept, kShared}};
  Kinds kinds = {kShared, kAveraged, kKept};
  std::ranges::sort(kinds);
  do {
    orders.push_back(kinds);
    Kinds twice = kinds;  // the first kind at both ends
    twice.push_back(kinds.front());
    orders.push_back(twice);
  } while (std::ranges::next_permutation(kinds).found);
  return orders;
}

TEST(ParameterKindsTest, RangesCoverTheVector) {
  for (const Kinds& order : all_orders()) {
    const LayerTable table = table_of_kinds(order);
    const ParameterKinds kinds = kinds_of(table);
    std::vector<int> seen(table.size());
    for (const ParameterRange& range : kinds.unshared)
      for (std::size_t j = range.begin; j < range.end; ++j) ++seen[j];
    for (const std::size_t cut : {std::size_t{0}, table.size() / 2, table.size()}) {
      const auto count = [&seen](std::size_t begin, std::size_t end) {
        EXPECT_LT(begin, end);
        for (std::size_t j = begin; j < end; ++j) ++seen[j];
      };
      std::vector<int> before = seen;
      for_each_run_outside(kinds.unshared, 0, cut, count);
      for_each_run_outside(kinds.unshared, cut, table.size(), count);
      EXPECT_THAT(seen, testing::Each(1)) << "cut at " << cut;
      seen = before;
    }
    EXPECT_TRUE(std::ranges::is_sorted(kinds.unshared, {}, &ParameterRange::begin));
    EXPECT_EQ(kinds.num_averaged() + kinds.num_kept(), kinds.num_unshared());
    EXPECT_EQ(kinds.num_unshared() + positions_of(table, kShared).size(), table.size());
  }
}

TEST(ParameterKindsTest, OwnValuesAreTheAveragedOnesBeforeTheKeptOnes) {
  for (const Kinds& order : all_orders()) {
    const LayerTable table = table_of_kinds(order);
    const ParameterKinds kinds = kinds_of(table);
    std::vector<double> x(table.size()), own(kinds.num_unshared());
    std::iota(x.begin(), x.end(), 0.0);
    kinds.gather_own(x.data(), own.data());
    std::vector<double> expected = positions_of(table, kAveraged), kept = positions_of(table, kKept);
    expected.insert(expected.end(), kept.begin(), kept.end());
    EXPECT_EQ(own, expected);

    std::vector<double> back(table.size(), -1), cleared = x;
    kinds.scatter_own(own.data(), back.data());
    clear_ranges<double>(kinds.unshared, cleared.data());
    for (std::size_t j = 0; j < x.size(); ++j) {
      const bool is_own = std::ranges::find(own, x[j]) != own.end();
      EXPECT_EQ(back[j], is_own ? x[j] : -1) << j;
      EXPECT_EQ(cleared[j], is_own ? 0 : x[j]) << j;
    }
    kinds.for_each_own_range([&](const ParameterRange& range, std::size_t position) {
      for (std::size_t j = range.begin; j < range.end; ++j) EXPECT_EQ(own[position + j - range.begin], x[j]);
    });
  }
}

// A message holds the entries of shared tensors alone, wherever the others lie.
TEST(ParameterKindsTest, MessagesHaveSharedParametersAlone) {
  for (const Kinds& order : all_orders()) {
    const LayerTable table = table_of_kinds(order);
    const std::vector<double> shared = positions_of(table, kShared);
    if (shared.empty()) continue;
    for (const ScopeKind kind : {ScopeKind::model, ScopeKind::tensor}) {
      const Scope scope = make_scope(table, kind, 0, {});
      EXPECT_EQ(num_shared(scope), shared.size());
      EXPECT_EQ(num_compressed(scope), shared.size());
      Payload<double> message;
      message.clear(table.size());
      message.num_sent = shared.size();
      message.value.resize_discard(shared.size());
      std::ranges::copy(shared, message.value.begin());
      std::vector<double> x(table.size(), -1);
      write_dense(message, scope, x.data());
      for (const double j : shared) EXPECT_EQ(x[static_cast<std::size_t>(j)], j);
      for (const ParameterRange& range : kinds_of(table).unshared)
        EXPECT_TRUE(std::all_of(x.begin() + static_cast<std::ptrdiff_t>(range.begin), x.begin() + static_cast<std::ptrdiff_t>(range.end),
                                [](double value) { return value == -1 || value == 0; }));
    }
  }
}

TEST(ParameterKindsTest, RunningAveragesAreAveragedUnlessTheyAreKept) {
  LayerTable table = table_of_kinds({kShared, kShared, kKept, kAveraged});
  table.layers[1].running_rate = 0.1;
  ParameterKinds kinds = kinds_of(table);
  EXPECT_EQ(kinds.num_averaged(), 3u + 5u);
  EXPECT_EQ(kinds.num_kept(), 4u);
  EXPECT_EQ(kinds.averaged.front().running_rate, 0.1);
  EXPECT_EQ(kinds.averaged.back().running_rate, 0);
  EXPECT_TRUE(kinds.keeps_weights());
  table.layers[1].kind = kKept;
  table.layers[2].kind = kShared;
  kinds = kinds_of(table);
  EXPECT_EQ(kinds.num_kept(), 3u);
  EXPECT_FALSE(kinds.keeps_weights()) << "an average is no weight";
  EXPECT_EQ(num_entries(running_averages_of(table)), 3u);
}

TEST(KeepTensors, TakesPatternsOfNames) {
  LayerTable table;
  for (const std::string name : {"1.dense.weight", "1.dense.bias", "2.bn.scale", "10.head"})
    table.layers.push_back({.name = name, .begin = table.size(), .rows = 1});
  const std::map<std::string, std::string> kept_by = {{"*", "1111"},       {"1.*", "1100"},    {"*.bias", "0100"}, {"?.*", "1110"},
                                                      {"10.head", "0001"}, {"*.*.*e", "0010"}, {"*dense*", "1100"}};
  for (const auto& [pattern, expected] : kept_by) {
    LayerTable with = table;
    keep_tensors(with, {pattern});
    std::string kept;
    for (const Layer& layer : with.layers) kept += layer.kind == kKept ? '1' : '0';
    EXPECT_EQ(kept, expected) << pattern;
  }
  for (const std::string pattern : {"head", "1.dense", "", "?", "3.*"}) {
    LayerTable with = table;
    try {
      keep_tensors(with, {"10.head", pattern});
      ADD_FAILURE() << pattern << " was taken";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("\"" + pattern + "\""), testing::HasSubstr("2.bn.scale, 10.head")));
    }
  }
}

}  // namespace
}  // namespace fl
