#include "clients/optimum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "clients/constants.hpp"
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

TEST(Optimum, RefusesWhatHasNoMinimum) {
  Scratch scratch;
  // Separable: the loss falls for ever.
  const auto data = make_dataset<double>({{-1, {{0, -1.0}}}, {1, {{0, 1.0}}}}, Storage::dense);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const std::vector<Shard> shards = {{0, 1}};
  const std::vector<double> weights = {1};
  EXPECT_THROW(static_cast<void>(find_optimum(scratch.exec, *model, shards, weights)), ConfigError);
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
