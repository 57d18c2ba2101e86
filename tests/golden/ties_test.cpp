// Tests that entries of a gradient that are equal by definition have the same bits, so that `ties` decides between them and rounding does
// not.
//
// At x = 0 every slope of a logistic loss is -y/2: an entry of a client's gradient is a whole number, the positive rows less the negative
// ones that have the feature, divided by -2 n. Many features of mushrooms have equal numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <set>

#include "fl_core/message/payload_ops.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;

struct Split {
  std::size_t k;
  int rows, clients;
};
void PrintTo(const Split& split, std::ostream* out) {
  *out << "top-" << split.k << " of " << split.rows << " rows at " << split.clients << " clients";
}

ScenarioText mushrooms(const Split& split) {
  ScenarioText s;
  s.data = "name = 'mushrooms'\ntest = 'none'\nrows = " + std::to_string(split.rows);
  s.partition = "kind = 'contiguous'\nclients = " + std::to_string(split.clients);
  s.model = "kind = 'logistic_regression'\nbias = false\nl2 = 0.001";
  s.local = "kind = 'gradient'\nlearning_rate = 1";
  s.up = "kind = 'top_k'\nties = 'lowest_index'\nk = " + std::to_string(split.k);
  s.feedback = "kind = 'ef14'";
  return s;
}

// A client's data as plain numbers: rows as features, labels as +-1.
struct PlainRows {
  std::vector<std::vector<std::uint32_t>> features;
  std::vector<int> y;
};
PlainRows rows_of(OneRun<double>& run, std::uint32_t client) {
  const Dataset<double>& data = run.problem().train();
  PlainRows rows;
  std::vector<double> dense(data.num_features);
  for (const std::uint32_t row : run.problem().shards()[client]) {
    rows.y.push_back(2 * data.label[row] - 1);
    rows.features.emplace_back();
    for (std::uint64_t i = data.sparse.row_begin[row]; i < data.sparse.row_begin[row + 1]; ++i)
      rows.features.back().push_back(data.sparse.column[i]);
  }
  return rows;
}

// The gradient of a plain recursion: rows that have the same margin and label have the same slope, so each entry adds up how many rows of
// each slope have its feature, whole numbers, and multiplies once per slope.
Vector gradient_of(const PlainRows& rows, const Vector& x, double l2) {
  std::map<std::pair<double, int>, std::vector<std::int64_t>> counts;
  for (std::size_t r = 0; r < rows.y.size(); ++r) {
    double margin = 0;
    for (const std::uint32_t j : rows.features[r]) margin += x[j];
    auto& of = counts[{margin, rows.y[r]}];
    of.resize(x.size(), 0);
    for (const std::uint32_t j : rows.features[r]) ++of[j];
  }
  Vector g(x.size(), 0.0);
  for (const auto& [slope, of] : counts)
    for (std::size_t j = 0; j < x.size(); ++j)
      g[j] += -slope.second / (1 + std::exp(slope.second * slope.first)) * static_cast<double>(of[j]);
  for (std::size_t j = 0; j < x.size(); ++j) g[j] = g[j] / static_cast<double>(rows.y.size()) + l2 * x[j];
  return g;
}

std::set<std::size_t> entries_of(const Vector& v) {
  std::set<std::size_t> entries;
  for (std::size_t j = 0; j < v.size(); ++j)
    if (v[j] != 0) entries.insert(j);
  return entries;
}

class Ties : public testing::TestWithParam<Split> {};

TEST_P(Ties, AreDecidedByIndexAndNotByRounding) {
  constexpr std::uint32_t kRounds = 6;
  const std::size_t k = GetParam().k;
  OneRun<double> run(mushrooms(GetParam()).str());
  const std::vector<double>& weights = run.problem().weights();
  std::vector<PlainRows> rows;
  for (std::uint32_t i = 0; i < weights.size(); ++i) rows.push_back(rows_of(run, i));
  Vector x(run.problem().P(), 0.0);
  std::vector<Vector> e(weights.size(), x);
  std::size_t ties = 0;
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    run.play(r, r);
    const Vector at = x;
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
      test::add(1, gradient_of(rows[i], at, 0.001), e[i]);
      const Vector sent = test::top_k(e[i], k);
      Vector message(x.size(), 0.0);
      write_dense(*run->runner().payload(0, i), run->exchange().channels[0].scope, message.data());
      ASSERT_EQ(entries_of(message), entries_of(sent)) << "client " << i << " in round " << r;
      e[i] = test::minus(e[i], sent);
      test::add(-weights[i], sent, x);
      double least = std::numeric_limits<double>::infinity();
      for (const double s : sent) least = s != 0 ? std::min(least, std::fabs(s)) : least;
      for (const double left : e[i]) ties += std::fabs(left) == least ? 1 : 0;
    }
  }
  EXPECT_GT(ties, 0u) << "the test should meet equal entries, some sent and some not";
}

// 81 or 82 rows a client, 162 or 163, and 256: a power of two, by which slopes are divided first.
INSTANTIATE_TEST_SUITE_P(Mushrooms, Ties,
                         testing::Values(Split{1, 8124, 100}, Split{5, 8124, 100}, Split{7, 8124, 100}, Split{51, 8124, 100},
                                         Split{21, 8124, 50}, Split{5, 2048, 8}, Split{21, 2048, 8}));

}  // namespace
}  // namespace fl
