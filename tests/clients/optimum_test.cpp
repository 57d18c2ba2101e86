#include "clients/learning/optimum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "clients/learning/constants.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/clients/problem_data.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/test_data.hpp"

namespace fl::test {
namespace {

struct Scratch {
  Scratch() { exec.workspace = &workspace; }
  Workspace workspace;
  Exec exec;
};

const std::vector<std::pair<std::string, Value>> kNoBias = {{"bias", Value{false}}};

std::vector<double> by_rows(const std::vector<Shard>& shards) {
  double total = 0;
  for (const auto& shard : shards) total += static_cast<double>(shard.size());
  std::vector<double> weights;
  for (const auto& shard : shards) weights.push_back(static_cast<double>(shard.size()) / total);
  return weights;
}

TEST(Optimum, A9aHasItsPublishedMinimum) {
  FL_ONLY_ARITHMETIC();
  FL_NEED_DATA(path, "libsvm/a9a");
  auto rows = read_plain(path);
  rows.resize(32000);
  const auto data = make_dataset<double>(rows, Storage::sparse, 123);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const auto shards = contiguous_blocks(all_rows(32000), 20);
  const auto weights = by_rows(shards);
  const auto constants = compute_constants(*model, shards, weights);
  EXPECT_NEAR(constants.L, 1.5722182430111165, 1e-12);
  model->set_regulariser(constants.L / 1e4, 0);
  Scratch scratch;
  const auto optimum = find_optimum(scratch.exec, *model, shards, weights);
  EXPECT_NEAR(optimum.f, 0.32495668469063, 1e-14);
  EXPECT_LT(optimum.gradient_norm, 1e-13);
  std::vector<double> shifted = optimum.x;
  for (auto& x : shifted) x += 1;
  EXPECT_NEAR(Objective::of(*model, shards, weights).evaluate(scratch.exec, shifted.data(), nullptr), 8.14775889635117, 2e-13);
}

TEST(Optimum, MadelonIsTheReferencePoint) {
  FL_ONLY_ARITHMETIC();
  FL_NEED_DATA(path, "libsvm/madelon");
  const auto data = make_dataset<double>(read_plain(path), Storage::dense);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const auto shards = contiguous_blocks(all_rows(2000), 20);
  const auto weights = by_rows(shards);
  const auto constants = compute_constants(*model, shards, weights);
  EXPECT_NEAR(constants.L / 29790805.64933511, 1, 1e-13);
  model->set_regulariser(2979.0805649335107, 0);
  Scratch scratch;
  const auto optimum = find_optimum(scratch.exec, *model, shards, weights);
  EXPECT_NEAR(optimum.f, 0.6679195534295149, 1e-15);
  EXPECT_LT(optimum.gradient_norm, 1e-12);
  std::vector<double> shifted = optimum.x;
  for (auto& x : shifted) x += 1e-4;
  EXPECT_NEAR(Objective::of(*model, shards, weights).evaluate(scratch.exec, shifted.data(), nullptr) - optimum.f, 11.503009502517077,
              1e-12);
  const auto truncated = minimise(scratch.exec, Objective::of(*model, shards, weights), 0);
  EXPECT_NEAR(truncated.f, optimum.f, 1e-15);
  for (std::size_t j = 0; j < 500; ++j) EXPECT_NEAR(truncated.x[j], optimum.x[j], 1e-13);
}

TEST(Optimum, LeastSquaresSolvesTheNormalEquations) {
  const auto data = make_dataset<double>(random_rows(80, 10, 4, 0.7, 2), Storage::dense);
  const auto model = make_model<double>("linear_regression", {}, data);
  model->set_regulariser(0.05, 0);
  Scratch scratch;
  // Unequal shards with equal weights: rows do not count alike.
  const std::vector<Shard> shards = {{0, 1, 2}, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}};
  const std::vector<double> weights = {0.5, 0.5};
  const auto optimum = find_optimum(scratch.exec, *model, shards, weights);
  EXPECT_LT(optimum.gradient_norm, 1e-14);
  std::vector<double> mean(11, 0.0), own(11);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::span<const std::uint32_t> rows(shards[i]);
    model->gradient(scratch.exec, shared_view(optimum.x.data(), 1, 11), {&rows, 1}, {own.data(), nullptr, 1, 11, 11}, nullptr);
    for (std::size_t j = 0; j < 11; ++j) mean[j] += 0.5 * own[j];
  }
  for (const double g : mean) EXPECT_NEAR(g, 0, 1e-13);
}

TEST(Optimum, MultinomialAndItsTruncatedTwinAgree) {
  const auto data = make_dataset<double>(random_rows(120, 15, 4, 0.5, 3), Storage::sparse, 15);
  const auto model = make_model<double>("logistic_regression", {}, data);
  model->set_regulariser(1e-3, 5e-4);
  const auto shards = contiguous_blocks(all_rows(120), 5);
  Scratch scratch;
  const auto f = Objective::of(*model, shards, by_rows(shards));
  const auto dense = find_optimum(scratch.exec, *model, shards, by_rows(shards));
  const auto truncated = minimise(scratch.exec, f, 0);
  EXPECT_LT(dense.gradient_norm, 1e-14);
  EXPECT_LT(truncated.gradient_norm, 1e-13);
  for (std::size_t j = 0; j < dense.x.size(); ++j) EXPECT_NEAR(dense.x[j], truncated.x[j], 1e-10);
}

TEST(Optimum, FloatModelsAreSolvedInDouble) {
  const auto rows = random_rows(100, 8, 2, 1, 3);
  const auto data = make_dataset<float>(rows, Storage::dense);
  const auto model = make_model<float>("logistic_regression", {}, data);
  model->set_regulariser(0.01, 0);
  const auto shards = contiguous_blocks(all_rows(100), 4);
  Scratch scratch;
  EXPECT_LT(find_optimum(scratch.exec, *model, shards, by_rows(shards)).gradient_norm, 1e-14);
}

// Rows of ordinary columns and one of times: large numbers that hardly differ.
std::vector<PlainRow> rows_with_times(double time, int classes) {
  auto rows = random_rows(60, 5, classes, 1, 11);
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r].entries.emplace_back(5u, time * (1 + 1e-3 * std::sin(7.0 * static_cast<double>(r))));
  return rows;
}

// Returns the minimum of logistic regression without a bias and with l2, by Newton's method in long double on columns scaled to at most 1.
double minimum_of_scaled(const std::vector<PlainRow>& rows, std::size_t D, double l2) {
  using Number = long double;
  std::vector<Number> scale(D, 0), u(D, 0);
  for (const auto& row : rows)
    for (const auto& [j, v] : row.entries) scale[j] = std::max(scale[j], std::abs(static_cast<Number>(v)));
  Number best = 0;
  for (int step = 0; step < 100; ++step) {
    std::vector<Number> g(D, 0), H(D * D, 0);
    Number f = 0;
    for (const auto& row : rows) {
      Number z = 0;
      for (const auto& [j, v] : row.entries) z += static_cast<Number>(v) / scale[j] * u[j];
      const Number y = row.label > 0 ? 1 : -1, p = 1 / (1 + std::exp(y * z)), over = Number(1) / static_cast<Number>(rows.size());
      f += over * std::log1p(std::exp(-y * z));
      for (const auto& [i, a] : row.entries) {
        g[i] -= over * y * p * static_cast<Number>(a) / scale[i];
        for (const auto& [j, b] : row.entries)
          H[i * D + j] += over * p * (1 - p) * static_cast<Number>(a) / scale[i] * static_cast<Number>(b) / scale[j];
      }
    }
    for (std::size_t j = 0; j < D; ++j) {
      f += l2 / 2 * (u[j] / scale[j]) * (u[j] / scale[j]);
      g[j] += l2 * u[j] / scale[j] / scale[j];
      H[j * D + j] += l2 / scale[j] / scale[j];
    }
    best = f;
    for (std::size_t c = 0; c < D; ++c)  // Gauss without pivots: H is positive definite
      for (std::size_t r = c + 1; r < D; ++r) {
        const Number factor = H[r * D + c] / H[c * D + c];
        for (std::size_t j = c; j < D; ++j) H[r * D + j] -= factor * H[c * D + j];
        g[r] -= factor * g[c];
      }
    for (std::size_t c = D; c-- > 0;) {
      for (std::size_t j = c + 1; j < D; ++j) g[c] -= H[c * D + j] * g[j];
      g[c] /= H[c * D + c];
      u[c] -= g[c];
    }
  }
  return static_cast<double>(best);
}

// A column of large numbers gave a wrong minimum without a word.
TEST(Optimum, LargeColumnsDoNotSpoilIt) {
  Scratch scratch;
  const std::vector<Shard> shards = {all_rows(60)};
  const std::vector<double> weights = {1};
  for (const double time : {1e3, 1e6, 1.7e9, 1.7e12}) {
    const auto rows = rows_with_times(time, 2);
    const double expected = minimum_of_scaled(rows, 6, 0.01);
    const auto data = make_dataset<double>(rows, Storage::dense);
    const auto model = make_model<double>("logistic_regression", kNoBias, data);
    model->set_regulariser(0.01, 0);
    for (const std::size_t largest_dense : {kDenseNewton, std::size_t{0}}) {
      const auto optimum = minimise(scratch.exec, Objective::of(*model, shards, weights), largest_dense);
      EXPECT_NEAR(optimum.f, expected, 2e-13) << time << ", dense up to " << largest_dense;
      EXPECT_TRUE(optimum.is_known());
      EXPECT_LE(optimum.f - expected, optimum.error + 1e-15);
    }
  }
}

TEST(Optimum, LargeColumnsOfOtherProblems) {
  Scratch scratch;
  const std::vector<Shard> shards = {all_rows(60)};
  const std::vector<double> weights = {1};
  const auto agree = [&](const auto& data, const std::string& kind, double l2) {
    const auto model = make_model<double>(kind, {}, data);
    model->set_regulariser(l2, 0);
    const auto f = Objective::of(*model, shards, weights);
    const auto dense = minimise(scratch.exec, f), truncated = minimise(scratch.exec, f, 0);
    EXPECT_TRUE(dense.is_known() && truncated.is_known()) << kind << ' ' << l2;
    EXPECT_NEAR(dense.f, truncated.f, 1e-12 * dense.largest) << kind << ' ' << l2;
  };
  for (const double time : {1e6, 1.7e12}) {
    const auto three = make_dataset<double>(rows_with_times(time, 3), Storage::dense);
    agree(three, "logistic_regression", 0.01);
    auto rows = rows_with_times(time, 2);
    for (auto& row : rows) row.label = row.entries[0].second + 0.1 * row.entries[1].second;
    const auto targets = make_dataset<double>(rows, Storage::dense);
    agree(targets, "linear_regression", 0.01);
    agree(targets, "linear_regression", 0);
  }
}

// Newton's decrement bounds the error where f is only convex; with equal columns H is singular.
TEST(Optimum, WithoutStrongConvexityTheDecrementBoundsTheError) {
  Scratch scratch;
  auto rows = random_rows(120, 5, 2, 1, 4);
  for (auto& row : rows) row.entries.emplace_back(5u, row.entries[0].second);
  const auto data = make_dataset<double>(rows, Storage::dense);
  const auto model = make_model<double>("logistic_regression", {}, data);
  const std::vector<Shard> shards = {all_rows(120)};
  const std::vector<double> weights = {1};
  const auto f = Objective::of(*model, shards, weights);
  const auto singular = minimise(scratch.exec, f), truncated = minimise(scratch.exec, f, 0);
  EXPECT_TRUE(singular.is_known());
  EXPECT_TRUE(truncated.is_known());
  EXPECT_GT(singular.error, 0);
  EXPECT_NEAR(singular.f, truncated.f, 1e-14);
  model->set_regulariser(1e-9, 0);  // little more, and unique
  EXPECT_NEAR(singular.f, find_optimum(scratch.exec, *model, shards, weights).f, 1e-6);
}

// A feature that only one class has: its weight grows for ever, and f has an infimum that is known all the same.
TEST(Optimum, AnInfimumThatIsNotAttainedIsKnown) {
  Scratch scratch;
  auto rows = random_rows(120, 5, 2, 1, 4);
  const auto data = make_dataset<double>(rows, Storage::dense);
  std::size_t marked = 0;
  for (auto& row : rows)
    if (row.label > 0 && marked < 7) row.entries.emplace_back(5u, 1.0), ++marked;
  const auto with_mark = make_dataset<double>(rows, Storage::sparse, 6);
  rows.erase(std::remove_if(rows.begin(), rows.end(), [](const PlainRow& row) { return row.entries.back().first == 5; }), rows.end());
  ASSERT_EQ(rows.size(), 113u);
  const auto without_rows = make_dataset<double>(rows, Storage::dense);
  const auto minimum = [&](const auto& of, std::size_t count, std::size_t largest_dense) {
    const auto model = make_model<double>("logistic_regression", kNoBias, of);
    const std::vector<Shard> shards = {all_rows(static_cast<std::uint32_t>(count))};
    const std::vector<double> weights = {1};
    const auto optimum = minimise(scratch.exec, Objective::of(*model, shards, weights), largest_dense);
    EXPECT_TRUE(optimum.is_known());
    return optimum.f;
  };
  for (const std::size_t largest_dense : {kDenseNewton, std::size_t{0}})
    EXPECT_NEAR(minimum(with_mark, 120, largest_dense), minimum(without_rows, 113, largest_dense) * 113 / 120, 1e-13)
        << "their losses go to 0";
}

TEST(Optimum, RefusesWhatHasNoMinimum) {
  Scratch scratch;
  // Separable: the loss falls for ever.
  const auto data = make_dataset<double>({{-1, {{0, -1.0}}}, {1, {{0, 1.0}}}}, Storage::dense);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const std::vector<Shard> shards = {{0, 1}};
  const std::vector<double> weights = {1};
  for (const std::size_t largest_dense : {kDenseNewton, std::size_t{0}})
    EXPECT_FALSE(minimise(scratch.exec, Objective::of(*model, shards, weights), largest_dense).is_known());
  model->set_regulariser(0.1, 0.3);
  EXPECT_FALSE(model->is_convex());
  EXPECT_THROW(static_cast<void>(find_optimum(scratch.exec, *model, shards, weights)), ConfigError);
  model->set_regulariser(0.15, 0.3);
  EXPECT_TRUE(model->is_convex());
  EXPECT_LT(find_optimum(scratch.exec, *model, shards, weights).gradient_norm, 1e-15);
}

TEST(Objective, RefusesWeightsThatAreNone) {
  const auto data = make_dataset<double>(random_rows(10, 3, 2, 1, 1), Storage::dense);
  const auto model = make_model<double>("logistic_regression", {}, data);
  const std::vector<Shard> shards = {{0, 1}, {2}}, hollow = {{0, 1}, {}};
  const auto make = [&](const std::vector<Shard>& s, const std::vector<double>& w) { static_cast<void>(Objective::of(*model, s, w)); };
  EXPECT_THROW(make(shards, {0.5, 0.6}), ConfigError);
  EXPECT_THROW(make(shards, {1.5, -0.5}), ConfigError);
  EXPECT_THROW(make(shards, {1.0}), ConfigError);
  EXPECT_THROW(make(hollow, {0.5, 0.5}), ConfigError);
  EXPECT_NO_THROW(make(shards, {0.5, 0.5}));
}

}  // namespace
}  // namespace fl::test
