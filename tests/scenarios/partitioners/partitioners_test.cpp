// Tests the errors of partitioners and the rules of each; the checks in tests/properties test the common rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "checks/partitioner_cases.hpp"
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/data/partitioner.hpp"

namespace fl {
namespace {

using checks::Rows;
using Settings = checks::PartitionerSettings;

std::unique_ptr<Partitioner> make(const std::string& name, const Settings& settings = {}) {
  return checks::make_partitioner(name, settings);
}

void expect_partition(const std::vector<Shard>& shards, std::size_t num_rows, std::size_t num_clients) {
  ASSERT_EQ(shards.size(), num_clients);
  std::vector<int> seen(num_rows, 0);
  for (const Shard& shard : shards) {
    EXPECT_FALSE(shard.empty());
    EXPECT_TRUE(std::is_sorted(shard.begin(), shard.end()));
    for (const std::uint32_t row : shard) {
      ASSERT_LT(row, num_rows);
      ++seen[row];
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(num_rows));
}

std::string config_error(const std::string& name, const PartitionRequest& request, const Settings& settings = {}) {
  try {
    (void)make(name, settings)->split(request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_words(const std::string& error, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(error.find(word), std::string::npos) << word << " in: " << error;
}

class EveryPartitioner : public ::testing::TestWithParam<std::string> {};

// The checks of tests/properties test the results. A partitioner that cannot give clients the required rows reports an error.
TEST_P(EveryPartitioner, ServesAnyNumberOfClientsAndClasses) {
  for (const auto& [m, C, n] : {std::tuple{1000, 10, 7}, {1000, 2, 1}, {503, 3, 20}, {97, 97, 4}, {64, 1, 8}, {12, 3, 12}}) {
    const Rows rows(static_cast<std::size_t>(m), static_cast<std::size_t>(C), static_cast<std::size_t>(n));
    const checks::PreparedPartitioner partitioner(GetParam(), rows.num_rows, static_cast<std::size_t>(n));
    for (std::uint64_t seed = 1; seed <= 5; ++seed) try {
        EXPECT_EQ((*partitioner).split(rows.request(static_cast<std::size_t>(n), seed)).size(), static_cast<std::size_t>(n))
            << m << " rows";
      } catch (const ConfigError& error) {
        expect_words(error.what(), {GetParam().c_str(), "class"});
      }
  }
}

TEST_P(EveryPartitioner, RefusesNoClientsAndEmptyClients) {
  Rows rows(10, 2, 5);
  if (GetParam() == "natural") {
    expect_words(config_error("natural", rows.request(4)), {"clients = 4", "made of 5"});
    rows.begin = {0, 3, 3, 10};
    expect_words(config_error("natural", rows.request(3)), {"client 1 has no rows"});
    rows.begin = {};
    expect_words(config_error("natural", rows.request(3)), {"no partition of its own"});
  } else if (GetParam() == "file") {
    expect_words(config_error("file", rows.request(5)), {"partition.path", "cannot read"});
  } else {
    expect_words(config_error(GetParam(), rows.request(0)), {GetParam().c_str(), "at least 1"});
    expect_words(config_error(GetParam(), rows.request(11)), {"11 clients", "10 rows"});
  }
}

// A partitioner whose split follows the labels refuses rows without them, and no other one does.
TEST_P(EveryPartitioner, NeedsLabelsOnlyToUseThem) {
  const checks::PreparedPartitioner partitioner(GetParam(), 100, 5);
  Rows rows(100, 2, 5);
  const std::vector<Shard> split = (*partitioner).split(rows.request(5));
  std::rotate(rows.label.begin(), rows.label.begin() + 1, rows.label.end());
  if (const bool uses_labels = (*partitioner).split(rows.request(5)) != split; uses_labels) {
    rows.label.clear();
    rows.num_classes = 0;
    expect_words(config_error(GetParam(), rows.request(5)), {GetParam().c_str(), "no classes"});
  } else {
    rows.label.clear();
    rows.num_classes = 0;
    expect_partition((*partitioner).split(rows.request(5)), 100, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPartitioner, ::testing::ValuesIn(Registry::instance().names("partitioner")),
                         [](const auto& test) { return test.param; });

TEST(Partitioners, AreAllThere) {
  const auto names = Registry::instance().names("partitioner");
  for (const char* name : {"contiguous", "sorted_by_label", "shuffled", "dirichlet_client", "dirichlet_class", "quantity_skew",
                           "similarity", "natural", "n_classes", "power_law", "by_group", "feature_noise", "rotation", "file"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
}

TEST(Contiguous, GivesTheRemainderToTheFirst) {
  const Rows rows(10, 2, 3);
  EXPECT_EQ(make("contiguous")->split(rows.request(3)), (std::vector<Shard>{{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}}));
}

TEST(SortedByLabel, SortsStably) {
  Rows rows(6, 2, 2);
  rows.label = {1, 0, 1, 0, 0, 1};
  EXPECT_EQ(make("sorted_by_label")->split(rows.request(2)), (std::vector<Shard>{{1, 3, 4}, {0, 2, 5}}));
}

TEST(SortedByLabel, DealsPieces) {
  Rows rows(6000, 10, 1);
  for (std::size_t i = 0; i < 6000; ++i) rows.label[i] = static_cast<std::int32_t>(i % 10);
  const auto shards = make("sorted_by_label", {{"pieces_per_client", Value{std::int64_t{2}}}})->split(rows.request(100));
  expect_partition(shards, 6000, 100);
  for (const Shard& shard : shards) {
    EXPECT_EQ(shard.size(), 60u);
    std::set<std::int32_t> classes;
    for (const std::uint32_t row : shard) classes.insert(rows.label[row]);
    EXPECT_LE(classes.size(), 2u);
  }
  expect_words(config_error("sorted_by_label", Rows(10, 2, 1).request(6), {{"pieces_per_client", Value{std::int64_t{2}}}}),
               {"12 rows", "10"});
}

TEST(Similarity, ReachesFromSortedToShuffled) {
  const Rows rows(1000, 4, 8);
  EXPECT_EQ(make("similarity", {{"percent", Value{0.0}}})->split(rows.request(8)), make("sorted_by_label")->split(rows.request(8)));
  EXPECT_EQ(make("similarity", {{"percent", Value{100.0}}})->split(rows.request(8)), make("shuffled")->split(rows.request(8)));
}

TEST(QuantitySkew, KeepsItsMinimum) {
  const Rows rows(1000, 4, 8);
  const auto shards = make("quantity_skew", {{"beta", Value{0.05}}, {"min_rows", Value{std::int64_t{20}}}})->split(rows.request(8));
  expect_partition(shards, 1000, 8);
  std::size_t smallest = 1000, largest = 0;
  for (const Shard& shard : shards) {
    smallest = std::min(smallest, shard.size());
    largest = std::max(largest, shard.size());
  }
  EXPECT_EQ(smallest, 20u);
  EXPECT_GT(largest, 300u);
  expect_words(config_error("quantity_skew", rows.request(8), {{"min_rows", Value{std::int64_t{126}}}}), {"8 clients", "126", "1000"});
  const auto even = make("quantity_skew", {{"beta", Value{1e6}}})->split(rows.request(8));
  for (const Shard& shard : even) EXPECT_NEAR(static_cast<double>(shard.size()), 125, 3);
}

std::set<std::int32_t> classes_of(const Shard& shard, const Rows& rows) {
  std::set<std::int32_t> classes;
  for (const std::uint32_t row : shard) classes.insert(rows.label[row]);
  return classes;
}

TEST(NClasses, GivesExactlySoManyClassesAndSharesEachEvenly) {
  const Rows rows(6000, 10, 1);
  for (const std::int64_t k : {1, 2, 3, 10}) {
    for (const std::size_t n : {10u, 25u, 100u}) {
      const auto shards = make("n_classes", {{"classes", Value{k}}})->split(rows.request(n, 3));
      expect_partition(shards, 6000, n);
      std::vector<std::set<std::size_t>> shares(10);  // of each class: the different numbers of rows that its owners have
      for (const Shard& shard : shards) {
        EXPECT_EQ(classes_of(shard, rows).size(), static_cast<std::size_t>(k));
        std::vector<std::size_t> counts(10, 0);
        for (const std::uint32_t row : shard) ++counts[static_cast<std::size_t>(rows.label[row])];
        for (std::size_t c = 0; c < 10; ++c)
          if (counts[c] > 0) shares[c].insert(counts[c]);
      }
      for (const auto& share : shares) EXPECT_LE(*share.rbegin() - *share.begin(), 1u);
    }
  }
}

TEST(NClasses, CoversEveryClassWithFewClientsOrRefuses) {
  const Rows rows(1000, 10, 1);
  expect_partition(make("n_classes", {{"classes", Value{std::int64_t{5}}}})->split(rows.request(2)), 1000, 2);
  expect_words(config_error("n_classes", rows.request(4)), {"classes = 2", "4 clients", "10 classes", "at least 5 clients"});
  expect_words(config_error("n_classes", rows.request(10), {{"classes", Value{std::int64_t{11}}}}), {"classes = 11", "10 classes"});
  expect_words(config_error("n_classes", Rows(20, 2, 1).request(20)), {"rows to 20 clients"});
}

TEST(PowerLaw, GivesConsecutiveClassesAndUnequalSizes) {
  const Rows rows(60000, 10, 1);
  const auto shards = make("power_law")->split(rows.request(1000));
  expect_partition(shards, 60000, 1000);
  std::vector<std::size_t> sizes;
  for (std::size_t u = 0; u < shards.size(); ++u) {
    const auto first = static_cast<std::int32_t>(u % 10), second = static_cast<std::int32_t>((u + 1) % 10);
    EXPECT_EQ(classes_of(shards[u], rows), (std::set<std::int32_t>{first, second}));
    sizes.push_back(shards[u].size());
  }
  std::ranges::sort(sizes);
  EXPECT_GE(sizes.front(), 10u);
  EXPECT_GT(sizes[999], 10 * sizes[500]);  // the median of exp(2z) is far below its largest value
  expect_words(config_error("power_law", rows.request(4)), {"classes = 2", "at least 5 clients"});
  expect_words(config_error("power_law", Rows(60, 10, 1).request(10)), {"class 0", "min_rows = 5"});
}

// Held-out or dropped rows may leave a class without any; clients then share the classes that there are.
TEST(PowerLaw, LeavesClassesWithoutRowsOut) {
  Rows rows(900, 4, 1);
  for (std::int32_t& label : rows.label) label = label == 1 ? 2 : label;
  const auto shards = make("power_law")->split(rows.request(6));
  expect_partition(shards, 900, 6);
  EXPECT_EQ(classes_of(shards[0], rows), (std::set<std::int32_t>{0, 2}));
  EXPECT_EQ(classes_of(shards[1], rows), (std::set<std::int32_t>{2, 3}));
}

TEST(PowerLaw, KnowsNoClassesWhenItIsToldSo) {
  Rows rows(1000, 4, 1);
  rows.label.clear();
  rows.num_classes = 0;
  const Settings settings = {{"classes", Value{std::int64_t{0}}}};
  expect_partition(make("power_law", settings)->split(rows.request(20)), 1000, 20);
  const auto even = make("power_law", {{"classes", Value{std::int64_t{0}}}, {"sigma", Value{0.0}}})->split(rows.request(20));
  for (const Shard& shard : even) EXPECT_EQ(shard.size(), 50u);
  expect_words(config_error("power_law", rows.request(201), settings), {"201 clients", "min_rows = 5"});
}

TEST(ByGroup, KeepsGroupsWhole) {
  Rows rows(600, 3, 30);
  const auto shards = make("by_group")->split(rows.request(7));
  expect_partition(shards, 600, 7);
  std::vector<std::set<std::size_t>> owners(30);
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const std::uint32_t row : shards[i]) owners[rows.group[row]].insert(i);
  std::vector<int> num_groups(7, 0);
  for (const auto& owner : owners) {
    ASSERT_EQ(owner.size(), 1u);
    ++num_groups[*owner.begin()];
  }
  for (const int count : num_groups) EXPECT_TRUE(count == 4 || count == 5) << count;
  expect_words(config_error("by_group", rows.request(31)), {"31 clients", "30 groups"});
  rows.group.clear();
  expect_words(config_error("by_group", rows.request(3)), {"no groups"});
}

TEST(FeatureNoise, GrowsWithTheNumberOfTheClient) {
  const auto shifts = make("feature_noise", {{"sigma", Value{0.4}}})->feature_shifts(4);
  ASSERT_EQ(shifts.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(shifts[i].noise_variance, 0.1 * static_cast<double>(i + 1));
}

TEST(Rotation, TurnsGroupsByEqualAngles) {
  const auto turns = [](std::int64_t groups) {
    std::vector<unsigned> all;
    for (const FeatureShift& shift : make("rotation", {{"groups", Value{groups}}})->feature_shifts(5)) all.push_back(shift.quarter_turns);
    return all;
  };
  EXPECT_EQ(turns(1), (std::vector<unsigned>{0, 0, 0, 0, 0}));
  EXPECT_EQ(turns(2), (std::vector<unsigned>{0, 2, 0, 2, 0}));
  EXPECT_EQ(turns(4), (std::vector<unsigned>{0, 1, 2, 3, 0}));
}

TEST(PartitionerAliases, NameAPartAndItsOptions) {
  const auto option = [](const std::string& name, const std::string& key) {
    NamedPart named = resolve_name("partitioner", name);
    Schema schema = named.options.schema();
    return named.part + " " + key + " = " + to_string(schema.find(key)->value());
  };
  EXPECT_EQ(resolve_name("partitioner", "homo").part, "shuffled");
  EXPECT_EQ(resolve_name("partitioner", "real").part, "natural");
  EXPECT_EQ(option("noniid-labeldir", "min_rows"), "dirichlet_class min_rows = 10");
  EXPECT_EQ(option("iid-diff-quantity", "min_rows"), "quantity_skew min_rows = 10");
  EXPECT_EQ(option("noniid-#label3", "classes"), "n_classes classes = 3");
  EXPECT_EQ(option("shards", "pieces_per_client"), "sorted_by_label pieces_per_client = 2");
  EXPECT_EQ(resolve_name("partitioner", "similarity").part, "similarity");
  for (const char* name : {"noniid-#label", "noniid-#label0", "noniid-#label2x", "homoo", "nonsense-of-a-name"})
    EXPECT_THROW((void)resolve_name("partitioner", name), ConfigError) << name;
}

TEST(DirichletClass, HoldsItsMinimumAndItsCap) {
  const Rows rows(5000, 10, 10);
  const auto shards = make("dirichlet_class", {{"beta", Value{0.5}}, {"min_rows", Value{std::int64_t{10}}}})->split(rows.request(10));
  expect_partition(shards, 5000, 10);
  std::vector<std::size_t> sizes;
  for (const Shard& shard : shards) {
    EXPECT_GE(shard.size(), 10u);
    EXPECT_LE(shard.size(), 500u + 600u);  // below m/n before its last class, of about 500 rows
    sizes.push_back(shard.size());
  }
  EXPECT_NE(*std::min_element(sizes.begin(), sizes.end()), *std::max_element(sizes.begin(), sizes.end()));
}

TEST(DirichletClass, GivesUp) {
  const Rows rows(100, 2, 10);
  expect_words(config_error("dirichlet_class", rows.request(10), {{"min_rows", Value{std::int64_t{11}}}}), {"10 clients", "11", "100"});
  expect_words(
      config_error("dirichlet_class", rows.request(10), {{"min_rows", Value{std::int64_t{10}}}, {"max_draws", Value{std::int64_t{50}}}}),
      {"50 draws", "beta", "10 clients", "best:"});
  expect_words(config_error("dirichlet_class", rows.request(10), {{"beta", Value{1e-6}}, {"min_rows", Value{std::int64_t{1}}}}),
               {"1000 draws"});
}

}  // namespace
}  // namespace fl
