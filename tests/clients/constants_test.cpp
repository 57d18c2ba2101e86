#include "clients/learning/constants.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "clients/kernels/gram.hpp"
#include "clients/learning/optimum.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/clients/problem_data.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/test_data.hpp"

namespace fl::test {
namespace {

const std::vector<std::pair<std::string, Value>> kNoBias = {{"bias", Value{false}}};

// File order is nearly homogeneous; sorting by label is not.
TEST(Constants, HeterogeneityOfA9aAtTheOptimum) {
  FL_ONLY_ARITHMETIC();
  FL_NEED_DATA(path, "libsvm/a9a");
  auto rows = read_plain(path);
  rows.resize(32000);
  const auto data = make_dataset<double>(rows, Storage::sparse, 123);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  model->set_regulariser(1.5722182430111165e-4, 0);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const auto file_order = all_rows(32000);
  auto by_label = file_order;
  std::stable_sort(by_label.begin(), by_label.end(), [&](auto a, auto b) { return data.label[a] < data.label[b]; });
  const std::vector<double> weights(20, 0.05);
  const auto x = find_optimum(exec, *model, contiguous_blocks(file_order, 20), weights).x;
  EXPECT_NEAR(zeta_sq(exec, *model, contiguous_blocks(file_order, 20), weights, x.data()), 6.8e-4, 0.05e-4);
  EXPECT_NEAR(zeta_sq(exec, *model, contiguous_blocks(by_label, 20), weights, x.data()), 0.39, 0.005);
}

TEST(Constants, QuadraticsAreExact) {
  // f_1 = (3 x0^2 + x1^2)/2 - x0, f_2 = (x0^2 + 5 x1^2)/2 + x1
  const std::vector<std::vector<double>> flat = {{3, 0, 0, 1, 1, 0, 0}, {1, 0, 0, 5, 0, -1, 0}};
  std::vector<PlainRow> rows(2);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::uint32_t i = 0; i < 7; ++i) rows[r].entries.emplace_back(i, flat[r][i]);
  const auto data = make_dataset<double>(rows, Storage::dense);
  const auto model = make_model<double>("quadratic", {}, data);
  model->set_regulariser(0.5, 0.2);
  const std::vector<Shard> shards = {{0}, {1}};
  const std::vector<double> weights = {0.25, 0.75};
  const auto constants = compute_constants(*model, shards, weights);
  EXPECT_NEAR(constants.L, 4, 1e-14);
  EXPECT_NEAR(constants.L_i[0], 3, 1e-14);
  EXPECT_NEAR(constants.L_i[1], 5, 1e-14);
  EXPECT_NEAR(constants.L_max, 5, 1e-14);
  EXPECT_NEAR(constants.mu, 1.5 + 0.5 - 0.1, 1e-14);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  // Gradients at (1,1): (2,1) and (1,6), mean (1.25, 4.75).
  const std::vector<double> x = {1, 1};
  const double expected = 0.25 * (0.75 * 0.75 + 3.75 * 3.75) + 0.75 * (0.25 * 0.25 + 1.25 * 1.25);
  EXPECT_NEAR(zeta_sq(exec, *model, shards, weights, x.data()), expected, 1e-13);
}

// The same matrix through the Gram matrix of its columns, of its rows, and Lanczos.
TEST(Constants, LargestEigenvalueByThreeWays) {
  const std::size_t m = 40, n = 55;
  RandomSequence random(3, Purpose::synthetic_data);
  std::vector<double> A(m * n), ones(m, 1.0), columns(n * n, 0.0), rows(m * m);
  for (auto& a : A) a = random.normal();
  kernels::add_gram(A.data(), ones.data(), m, n, columns.data());
  kernels::outer_gram(A.data(), m, n, rows.data());
  const double by_columns = kernels::extreme_eigenvalues(columns.data(), n).largest;
  const double by_rows = kernels::extreme_eigenvalues(rows.data(), m).largest;
  const double by_lanczos = kernels::largest_eigenvalue(n, [&](const double* v, double* out) {
    std::fill_n(out, n, 0.0);
    for (std::size_t r = 0; r < m; ++r) {
      double z = 0;
      for (std::size_t j = 0; j < n; ++j) z += A[r * n + j] * v[j];
      for (std::size_t j = 0; j < n; ++j) out[j] += z * A[r * n + j];
    }
  });
  EXPECT_NEAR(by_rows / by_columns, 1, 1e-13);
  EXPECT_NEAR(by_lanczos / by_columns, 1, 1e-12);
}

TEST(Constants, SmoothnessFormulas) {
  // Two rows (3,4) and (0,0) without bias: |A|_2^2 = 25, m = 2.
  const auto two = make_dataset<double>({{0, {{0, 3.0}, {1, 4.0}}}, {1, {}}}, Storage::dense, 2);
  const auto three = make_dataset<double>({{0, {{0, 3.0}, {1, 4.0}}}, {1, {}}, {2, {}}}, Storage::dense, 2);
  const std::vector<std::uint32_t> rows = {0, 1};
  EXPECT_NEAR(make_model<double>("logistic_regression", kNoBias, two)->smoothness(rows), 25.0 / 8, 1e-14);
  EXPECT_NEAR(make_model<double>("logistic_regression", kNoBias, three)->smoothness(rows), 25.0 / 4, 1e-14);
  EXPECT_NEAR(make_model<double>("linear_regression", kNoBias, two)->smoothness(rows), 25.0 / 2, 1e-14);
  // With a bias: columns (3,4,1) and (0,0,1).
  const double largest = (27 + std::sqrt(25.0 * 25 + 4)) / 2;
  EXPECT_NEAR(make_model<double>("logistic_regression", {}, two)->smoothness(rows), largest / 8, 1e-13);
}

// Many features and rows: neither Gram matrix is formed.
TEST(Constants, WideDataUsesLanczosAndAgrees) {
  const auto rows = random_rows(700, 650, 2, 0.02, 8);
  const auto data = make_dataset<double>(rows, Storage::sparse, 650);
  const auto model = make_model<double>("linear_regression", {}, data);
  const auto all = all_rows(700);
  const auto bounds = model->second_order()->curvature({all});
  EXPECT_EQ(bounds.least, 0);
  std::vector<double> H(651 * 651, 0.0);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<double> x(651, 0.0);
  model->second_order()->add_hessian(exec, x.data(), {all}, H.data());
  EXPECT_NEAR(bounds.largest / kernels::extreme_eigenvalues(H.data(), 651).largest, 1, 1e-12);
}

}  // namespace
}  // namespace fl::test
