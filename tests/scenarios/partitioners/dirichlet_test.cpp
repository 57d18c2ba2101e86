// Tests known values of Dirichlet splits, by Monte Carlo on the draws and on whole splits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/partitioners/draws.hpp"
#include "scenarios/partitioners/skew.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

double sum_sq(const std::vector<double>& q) {
  double sum = 0;
  for (const double x : q) sum += x * x;
  return sum;
}

struct Known {
  double alpha, per_class, total;  // E sum q^2 over 10 even classes
};
constexpr Known kKnown[] = {{0.1, 0.55, 0.91818}, {0.5, 0.25, 0.7}, {1, 0.18182, 0.55}, {100, 0.10090, 0.10891}};

// Mean of sum q^2 over draws of Dir(a) with 10 components, less the known value, in standard errors.
double standard_errors(double a, double known, RandomSequence& random) {
  constexpr int kDraws = 40000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = sum_sq(draw_dirichlet(std::vector<double>(10, a), random));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return (mean - known) / std::sqrt((squares / kDraws - mean * mean) / kDraws);
}

TEST(DrawDirichlet, HasTheKnownSecondMoment) {
  FL_ONLY_ARITHMETIC();
  RandomSequence random(1, Purpose::partition);
  for (const Known& known : kKnown) {
    const double alpha = known.alpha;
    EXPECT_NEAR(known.per_class, (alpha + 1) / (10 * alpha + 1), 1e-5);
    EXPECT_NEAR(known.total, (alpha + 10) / (10 * (alpha + 1)), 1e-5);
    EXPECT_LT(std::abs(standard_errors(alpha, (alpha + 1) / (10 * alpha + 1), random)), 4) << alpha;
    EXPECT_LT(std::abs(standard_errors(alpha / 10, (alpha + 10) / (10 * (alpha + 1)), random)), 4) << alpha;
  }
}

TEST(DrawDirichlet, StaysFiniteWhereGammaDrawsUnderflow) {
  RandomSequence random(2, Purpose::partition);
  for (const double a : {1e-3, 1e-5, 1e-9}) {
    for (int i = 0; i < 100; ++i) {
      const auto q = draw_dirichlet(std::vector<double>(10, a), random);
      double sum = 0;
      for (const double x : q) {
        ASSERT_TRUE(std::isfinite(x));
        sum += x;
      }
      EXPECT_NEAR(sum, 1, 1e-12);
      EXPECT_GT(sum_sq(q), 0.5);
    }
  }
}

TEST(DrawDirichlet, GivesNothingToAConcentrationOfZero) {
  RandomSequence random(3, Purpose::partition);
  const std::vector<double> a = {1, 0, 2};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(draw_dirichlet(a, random)[1], 0);
  EXPECT_EQ(draw_dirichlet(std::vector<double>(3, 0.0), random), (std::vector<double>(3, 0.0)));
}

// concentration "" = the default.
std::unique_ptr<Partitioner> dirichlet_client(double alpha, const std::string& concentration) {
  Options options = Registry::instance().default_options("partitioner", "dirichlet_client");
  Schema schema = options.schema();
  EXPECT_FALSE(schema.find("alpha")->assign(Value{alpha}).has_value());
  if (!concentration.empty()) {
    EXPECT_FALSE(schema.find("concentration")->assign(Value{concentration}).has_value());
  }
  return make_part<Partitioner>("partitioner", "dirichlet_client", options, Device::cpu, Precision::float64);
}

// Clients that have few rows each of a large supply show their priors: E sum q^2 of their frequencies is known, with 1/r from sampling r
// rows.
TEST(DirichletClient, ShowsItsConcentration) {
  constexpr std::size_t kRows = 200000, kClients = 1000;
  std::vector<std::int32_t> label;
  for (std::size_t row = 0; row < kRows; ++row) label.push_back(static_cast<std::int32_t>(row % 10));
  const PartitionRequest request{kRows, 10, label, {}, kClients, 1};
  for (const Known& known : kKnown) {
    for (const char* concentration : {"per_class", "total"}) {
      const auto shards = dirichlet_client(known.alpha, concentration)->split(request);
      double mean = 0;
      for (const Shard& shard : shards) {
        ASSERT_EQ(shard.size(), 200u);
        std::vector<double> q(10, 0.0);
        for (const std::uint32_t row : shard) q[static_cast<std::size_t>(label[row])] += 1.0 / 200;
        mean += sum_sq(q) / kClients;
      }
      const double prior = concentration[0] == 'p' ? known.per_class : known.total;
      const double expected = prior + (1 - prior) / 200;
      EXPECT_NEAR(mean, expected, 0.1 * expected) << concentration << " " << known.alpha;  // classes that run out pull towards even
    }
  }
}

// 24% of the rows are of class 1, as in a9a, and 20 clients.
PartitionRequest uneven_classes(std::vector<std::int32_t>& label, std::uint64_t seed) {
  label.clear();
  for (std::size_t row = 0; row < 20000; ++row) label.push_back(row % 25 < 6 ? 1 : 0);
  return {.num_rows = label.size(), .num_classes = 2, .label = label, .natural_begin = {}, .num_clients = 20, .seed = seed, .group = {}};
}
// The largest share of class 1 in a client's rows.
double largest_share(const std::vector<Shard>& shards, const std::vector<std::int32_t>& label) {
  double largest = 0;
  for (const Shard& shard : shards) {
    double rows = 0;
    for (const std::uint32_t row : shard) rows += label[row];
    largest = std::max(largest, rows / static_cast<double>(shard.size()));
  }
  return largest;
}

// The priors of "per_class" 0.3 and of "total" 0.6 are equally sharp; the first asks for twice as many rows of class 1 as there are.
TEST(DirichletClient, CapsARareClassOnlyIfAlphaIsThatOfEachClass) {
  FL_ONLY_ARITHMETIC();
  std::vector<std::int32_t> label;
  double mean_per_class = 0, mean_total = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const PartitionRequest request = uneven_classes(label, seed);
    const auto per_class = dirichlet_client(0.3, "per_class");
    const double found = largest_share(per_class->split(request), label);
    mean_per_class += found / 20;
    mean_total += largest_share(dirichlet_client(0.6, "total")->split(request), label) / 20;
    const std::string note = per_class->note(request);
    ASSERT_NE(note.find("the rarest class has 24% of the rows"), std::string::npos) << note;
    const std::size_t at = note.find("at most about ");
    ASSERT_NE(at, std::string::npos) << note;
    EXPECT_NEAR(std::stod(note.substr(at + 14)) / 100, found, 0.05) << "seed " << seed;
  }
  EXPECT_NEAR(mean_per_class, 0.48, 0.06) << "C p_c = 2 * 0.24";
  EXPECT_GT(mean_total, 0.8);
}

TEST(DirichletClient, TakesThePublishedFormUnlessToldOtherwise) {
  std::vector<std::int32_t> label;
  const PartitionRequest request = uneven_classes(label, 3);
  EXPECT_EQ(dirichlet_client(0.5, "")->split(request), dirichlet_client(0.5, "total")->split(request));
  EXPECT_NE(dirichlet_client(0.5, "")->split(request), dirichlet_client(0.5, "per_class")->split(request));
}

// E sum q^2 of the drawn priors is known. Taking turns deals less than that at a small alpha, which plan --split shows beside it.
TEST(DirichletClient, SaysHowUnequalItsPriorsAre) {
  std::vector<std::int32_t> label;
  double drawn = 0, dealt = 0, p_squares = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const PartitionRequest request = uneven_classes(label, seed);
    const auto partitioner = dirichlet_client(0.05, "total");
    const std::string note = partitioner->note(request), words = "mean sum of squares of ";
    ASSERT_NE(note.find(words), std::string::npos) << note;
    drawn += std::stod(note.substr(note.find(words) + words.size())) / 20;
    const auto shards = partitioner->split(request);
    for (const ClientSkew& client : measure_clients(shards, label, 2))
      for (const std::uint32_t rows : client.of_class)
        dealt += std::pow(static_cast<double>(rows) / static_cast<double>(client.num_rows), 2) / (20 * static_cast<double>(shards.size()));
  }
  const double p = static_cast<double>(std::ranges::count(label, 1)) / static_cast<double>(label.size());
  p_squares = p * p + (1 - p) * (1 - p);
  EXPECT_NEAR(drawn, (0.05 * p_squares + 1) / 1.05, 0.02);
  EXPECT_LT(dealt, drawn);
}

TEST(DirichletClient, SaysNothingOfACapForEvenClassesAndForThePublishedForm) {
  std::vector<std::int32_t> label;
  EXPECT_EQ(dirichlet_client(0.5, "total")->note(uneven_classes(label, 1)).find("runs out"), std::string::npos);
  for (std::size_t row = 0; row < label.size(); ++row) label[row] = static_cast<std::int32_t>(row % 2);
  const PartitionRequest even{
      .num_rows = label.size(), .num_classes = 2, .label = label, .natural_begin = {}, .num_clients = 20, .seed = 1, .group = {}};
  EXPECT_EQ(dirichlet_client(0.5, "per_class")->note(even).find("runs out"), std::string::npos);
}

std::vector<std::int32_t> ten_even_classes() {
  std::vector<std::int32_t> label;
  for (int row = 0; row < 1000; ++row) label.push_back(row / 100);
  return label;
}

TEST(Skew, IsKnownForOneTwoAndAllClasses) {
  const auto label = ten_even_classes();
  std::vector<Shard> one(10), two(10), all(10);
  for (std::uint32_t row = 0; row < 1000; ++row) {
    const std::uint32_t c = row / 100;
    one[c].push_back(row);
    two[row % 2 == 0 ? c : (c + 1) % 10].push_back(row);
    all[row % 10].push_back(row);
  }
  const SplitSkew of_one = measure_skew(one, label, 10), of_two = measure_skew(two, label, 10), of_all = measure_skew(all, label, 10);
  EXPECT_NEAR(of_one.mean_emd, 1.8, 1e-12);
  EXPECT_NEAR(of_two.mean_emd, 1.6, 1e-12);
  EXPECT_NEAR(of_all.mean_emd, 0, 1e-12);
  EXPECT_NEAR(of_one.mean_entropy, 0, 1e-12);
  EXPECT_NEAR(of_two.mean_entropy, 1, 1e-12);
  EXPECT_NEAR(of_all.mean_entropy, std::log2(10.0), 1e-12);
}

TEST(Skew, IsKnownForEveryClient) {
  const std::vector<std::int32_t> label = {0, 0, 0, 1, 1, 2, 2, 2};  // p = 3/8, 2/8, 3/8
  const std::vector<Shard> shards = {{0, 1}, {2, 3, 4, 5}, {6, 7}};
  const std::vector<ClientSkew> clients = measure_clients(shards, label, 3);
  ASSERT_EQ(clients.size(), 3u);
  EXPECT_EQ(clients[1].of_class, (std::vector<std::uint32_t>{1, 2, 1}));
  EXPECT_EQ(clients[1].num_rows, 4u);
  EXPECT_NEAR(clients[0].emd, 5.0 / 8 + 2.0 / 8 + 3.0 / 8, 1e-15);
  EXPECT_NEAR(clients[1].emd, 1.0 / 8 + 2.0 / 8 + 1.0 / 8, 1e-15);
  EXPECT_NEAR(clients[0].entropy, 0, 1e-15);
  EXPECT_NEAR(clients[1].entropy, 1.5, 1e-15);
}

TEST(Skew, ReportsSizesAndNeedsNoLabels) {
  const std::vector<Shard> shards = {{0}, {1, 2, 3}};
  const SplitSkew skew = measure_skew(shards, {}, 0);
  EXPECT_EQ(skew.min_rows, 1u);
  EXPECT_EQ(skew.max_rows, 3u);
  EXPECT_EQ(skew.mean_emd, 0);
}

}  // namespace
}  // namespace fl
