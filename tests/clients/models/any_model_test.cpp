// What every registered model must keep: its gradient is the derivative of its loss, a block is its clients one by one, float follows
// double, and its Hessian, where there is one, is the derivative of its gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fl_core/workspace.hpp"
#include "tests/clients/problem_data.hpp"

namespace fl::test {
namespace {

constexpr std::size_t kRows = 37;

// Data that the model accepts, and one set of options to test it with.
struct Case {
  std::string model, label;
  std::vector<std::pair<std::string, Value>> options = {};
  std::size_t classes = 2;
};

std::vector<PlainRow> quadratic_rows(std::size_t m, std::size_t d) {
  RandomSequence random(11, Purpose::synthetic_data);
  std::vector<PlainRow> rows(m);
  for (auto& row : rows) {
    std::vector<double> B(d * d), flat(d * d + d + 1);
    for (auto& b : B) b = random.normal();
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t l = 0; l < d; ++l) flat[i * d + j] += B[i * d + l] * B[j * d + l] / static_cast<double>(d);
    for (std::size_t i = d * d; i < flat.size(); ++i) flat[i] = random.normal();
    for (std::uint32_t i = 0; i < flat.size(); ++i) row.entries.emplace_back(i, flat[i]);
  }
  return rows;
}

template <class T>
Dataset<T> data_for(const Case& c) {
  if (c.model == "quadratic") return make_dataset<T>(quadratic_rows(kRows, 13), Storage::dense);
  return make_dataset<T>(random_rows(kRows, 21, c.classes, 0.6, 5), Storage::dense);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& name : Registry::instance().names("model")) {
    cases.push_back({name, name});
    if (name == "quadratic") continue;
    cases.push_back({name, name + "_no_bias", {{"bias", Value{false}}}});
    if (name != "logistic_regression") continue;
    cases.push_back({name, name + "_5_classes", {}, 5});
    cases.push_back({name, name + "_multinomial_of_2", {{"multinomial", Value{true}}, {"bias", Value{false}}}});
  }
  return cases;
}

// A model on its data with scratch, at a random point.
template <class T>
struct Bench {
  explicit Bench(const Case& c) : data(data_for<T>(c)), model(make_model<T>(c.model, c.options, data)), P(model->layers().size()) {
    model->set_regulariser(0.3, 0.2);
    exec.workspace = &workspace;
  }
  std::vector<T> point(std::uint64_t seed) const {
    RandomSequence random(seed, Purpose::start);
    std::vector<T> x(P);
    for (auto& v : x) v = static_cast<T>(0.5 * random.normal());
    return x;
  }
  std::vector<T> gradient(const std::vector<T>& x, std::span<const std::uint32_t> rows, double* loss = nullptr) const {
    std::vector<T> g(P);
    model->gradient(exec, shared_view(x.data(), 1, P), {&rows, 1}, {g.data(), nullptr, 1, P, P}, loss);
    return g;
  }
  Dataset<T> data;
  std::unique_ptr<Model<T>> model;
  std::size_t P;
  Workspace workspace;
  Exec exec;
};

class AnyModel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Registered, AnyModel, testing::ValuesIn(all_cases()), [](const auto& instance) { return instance.param.label; });

TEST_P(AnyModel, GradientIsTheDerivativeOfTheLoss) {
  const Bench<double> bench(GetParam());
  const auto rows = all_rows(kRows);
  auto x = bench.point(1);
  double loss = 0;
  const auto g = bench.gradient(x, rows, &loss);
  for (std::size_t j = 0; j < bench.P; ++j) {
    const double h = 1e-5, at = x[j];
    double above = 0, below = 0;
    x[j] = at + h;
    static_cast<void>(bench.gradient(x, rows, &above));
    x[j] = at - h;
    static_cast<void>(bench.gradient(x, rows, &below));
    x[j] = at;
    EXPECT_NEAR(g[j], (above - below) / (2 * h), 1e-7 * (1 + std::abs(g[j]))) << "parameter " << j;
  }
}

TEST_P(AnyModel, LossIsMeanPlusRegulariser) {
  const Bench<double> bench(GetParam());
  const auto rows = all_rows(kRows);
  const auto x = bench.point(2);
  double loss = 0;
  static_cast<void>(bench.gradient(x, rows, &loss));
  std::uint64_t correct = 99;
  const double sum = bench.model->loss_sum(bench.exec, x.data(), bench.data, rows, &correct);
  EXPECT_NEAR(loss, sum / kRows + bench.model->regulariser(x.data()), 1e-13 * std::abs(loss));
  EXPECT_LE(correct, kRows);
  double squares = 0, bounded = 0;
  for (const double v : x) squares += v * v, bounded += v * v / (1 + v * v);
  EXPECT_NEAR(bench.model->regulariser(x.data()), 0.15 * squares + 0.2 * bounded, 1e-13);
}

TEST_P(AnyModel, MeanOverRowsIsTheMeanOfSingleRows) {
  const Bench<double> bench(GetParam());
  const auto x = bench.point(3);
  for (const std::size_t size : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 37u}) {
    const auto rows = all_rows(size);
    const auto g = bench.gradient(x, rows);
    std::vector<double> mean(bench.P, 0.0);
    for (const auto row : rows) {
      const auto one = bench.gradient(x, {&row, 1});
      for (std::size_t j = 0; j < bench.P; ++j) mean[j] += one[j] / static_cast<double>(size);
    }
    for (std::size_t j = 0; j < bench.P; ++j)
      EXPECT_NEAR(g[j], mean[j], 1e-13 * (1 + std::abs(mean[j]))) << size << " rows, parameter " << j;
  }
}

template <class T>
void expect_block_equals_clients(const Case& c) {
  const Bench<T> bench(c);
  // Clients of many sizes (one without rows), in no order; each at its own point, stored in other rows than its number.
  const std::vector<std::vector<std::uint32_t>> shards = {{4}, {3, 1, 2}, {}, {9, 8, 7, 6, 5}, all_rows(kRows), {30}, {11, 11}, {36}};
  const auto K = static_cast<std::uint32_t>(shards.size());
  std::vector<std::span<const std::uint32_t>> rows(shards.begin(), shards.end());
  const std::vector<std::uint32_t> slot = {7, 6, 5, 4, 3, 2, 1, 0};
  const std::size_t stride = bench.P + 3;
  std::vector<T> x(K * stride), g(K * stride, T(-1));
  for (std::uint32_t k = 0; k < K; ++k) {
    const auto own = bench.point(40 + k);
    std::copy(own.begin(), own.end(), x.begin() + static_cast<std::ptrdiff_t>(slot[k] * stride));
  }
  std::vector<double> loss(K);
  bench.model->gradient(bench.exec, {x.data(), slot.data(), K, bench.P, stride}, rows, {g.data(), slot.data(), K, bench.P, stride},
                        loss.data());
  for (std::uint32_t k = 0; k < K; ++k) {
    double own_loss = 0;
    const auto own = bench.gradient(bench.point(40 + k), rows[k], &own_loss);
    const auto silent = bench.gradient(bench.point(40 + k), rows[k]);
    EXPECT_EQ(loss[k], own_loss) << "client " << k;
    for (std::size_t j = 0; j < bench.P; ++j) {
      EXPECT_EQ(g[slot[k] * stride + j], own[j]) << "client " << k << ", parameter " << j;
      EXPECT_EQ(silent[j], own[j]) << "asking for the loss changed the gradient of client " << k;
    }
    for (std::size_t j = bench.P; j < stride; ++j) EXPECT_EQ(g[slot[k] * stride + j], T(-1)) << "wrote past client " << k;
  }
}
TEST_P(AnyModel, BlockEqualsItsClientsBitForBit) {
  expect_block_equals_clients<double>(GetParam());
  expect_block_equals_clients<float>(GetParam());
}

TEST_P(AnyModel, FloatFollowsDouble) {
  const Bench<double> exact(GetParam());
  const Bench<float> rounded(GetParam());
  const auto x = rounded.point(8);
  double loss = 0, exact_loss = 0;
  const auto g = rounded.gradient(x, all_rows(kRows), &loss);
  const auto exact_g = exact.gradient(std::vector<double>(x.begin(), x.end()), all_rows(kRows), &exact_loss);
  EXPECT_NEAR(loss, exact_loss, 1e-5 * std::abs(exact_loss));
  for (std::size_t j = 0; j < exact.P; ++j) EXPECT_NEAR(g[j], exact_g[j], 1e-5 * (1 + std::abs(exact_g[j])));
}

TEST_P(AnyModel, SecondOrderIsTheDerivativeOfTheGradient) {
  const Bench<double> bench(GetParam());
  const SecondOrder* loss = bench.model->second_order();
  if (loss == nullptr) return;
  const std::size_t P = bench.P;
  const auto rows = all_rows(kRows);
  std::vector<double> weight(kRows);
  for (std::size_t r = 0; r < kRows; ++r) weight[r] = 0.1 + 0.01 * static_cast<double>(r);
  const RowSet set{rows, weight};
  const auto x = bench.point(6), v = bench.point(7);
  std::vector<double> above(P), below(P), Hv(P), H(P * P, 0.5);
  const double h = 1e-5;
  std::vector<double> moved(P);
  for (std::size_t j = 0; j < P; ++j) moved[j] = x[j] + h * v[j];
  static_cast<void>(loss->evaluate(bench.exec, moved.data(), set, above.data()));
  for (std::size_t j = 0; j < P; ++j) moved[j] = x[j] - h * v[j];
  static_cast<void>(loss->evaluate(bench.exec, moved.data(), set, below.data()));
  loss->hessian_times(bench.exec, x.data(), set, v.data(), Hv.data());
  loss->add_hessian(bench.exec, x.data(), set, H.data());
  double rayleigh = 0, square = 0;
  for (std::size_t i = 0; i < P; ++i) {
    EXPECT_NEAR(Hv[i], (above[i] - below[i]) / (2 * h), 1e-6 * (1 + std::abs(Hv[i])));
    double row = 0;
    for (std::size_t j = 0; j < P; ++j) row += (H[i * P + j] - 0.5) * v[j];
    EXPECT_NEAR(row, Hv[i], 1e-11 * (1 + std::abs(Hv[i])));
    rayleigh += v[i] * Hv[i], square += v[i] * v[i];
  }
  const auto bounds = loss->curvature(set);
  EXPECT_LE(rayleigh, bounds.largest * square);
  EXPECT_GE(rayleigh, bounds.least * square);
}

TEST_P(AnyModel, SecondOrderAgreesWithTheGradient) {
  const Bench<double> bench(GetParam());
  const SecondOrder* loss = bench.model->second_order();
  if (loss == nullptr) return;
  bench.model->set_regulariser(0, 0);
  const auto x = bench.point(6);
  std::vector<double> sum(bench.P);
  double mean_loss = 0;
  const auto g = bench.gradient(x, all_rows(kRows), &mean_loss);
  const auto rows = all_rows(kRows);
  const double total = loss->evaluate(bench.exec, x.data(), {rows}, sum.data());
  EXPECT_NEAR(total, mean_loss * kRows, 1e-12 * std::abs(total));
  EXPECT_EQ(loss->evaluate(bench.exec, x.data(), {rows}, nullptr), total);
  for (std::size_t j = 0; j < bench.P; ++j) EXPECT_NEAR(sum[j] / kRows, g[j], 1e-13 * (1 + std::abs(g[j])));
}

TEST_P(AnyModel, LayersCoverTheParameters) {
  const Bench<float> bench(GetParam());
  std::size_t next = 0;
  for (const auto& layer : bench.model->layers().layers) {
    EXPECT_EQ(layer.begin, next);
    EXPECT_GT(layer.size(), 0u);
    next += layer.size();
  }
  EXPECT_EQ(next, bench.P);
  std::vector<float> x(bench.P, 7.0f), again(bench.P, 8.0f);
  bench.model->initial(3, x.data());
  bench.model->initial(3, again.data());
  EXPECT_EQ(x, again);
}

}  // namespace
}  // namespace fl::test
