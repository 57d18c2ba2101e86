// Tests logistic and linear regression: storage, stability, known values, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "clients/learning/bounded_gradients.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/clients/problem_data.hpp"

namespace fl::test {
namespace {

const std::vector<std::pair<std::string, Value>> kNoBias = {{"bias", Value{false}}};

template <class T>
std::vector<T> gradient_at(const Model<T>& model, const std::vector<T>& x, std::span<const std::uint32_t> rows, double* loss = nullptr) {
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::vector<T> g(x.size());
  model.gradient(exec, shared_view(x.data(), 1, x.size()), {&rows, 1}, {g.data(), nullptr, 1, x.size(), x.size()}, loss);
  return g;
}

// Plain loops over the rows as text has them: the specification of binary logistic regression without bias.
std::vector<double> reference_gradient(const std::vector<PlainRow>& rows, const std::vector<double>& x, std::span<const std::uint32_t> pick,
                                       double* loss) {
  std::vector<double> g(x.size(), 0.0);
  *loss = 0;
  for (const auto r : pick) {
    long double z = 0;
    for (const auto& [j, v] : rows[r].entries) z += static_cast<long double>(v) * x[j];
    const double y = rows[r].label > 0 ? 1 : -1;
    const double m = y * static_cast<double>(z);
    *loss += (std::max(-m, 0.0) + std::log1p(std::exp(-std::abs(m)))) / static_cast<double>(pick.size());
    for (const auto& [j, v] : rows[r].entries) g[j] += -y / (1 + std::exp(m)) * v / static_cast<double>(pick.size());
  }
  return g;
}

struct SparseCase {
  std::string label;
  std::size_t rows, features;
  double density;
  bool ones;
};
class SparseStorage : public testing::TestWithParam<SparseCase> {};
// Row lengths below and above two and four vectors, rows without entries, and blocks with more entries than are taken as one run.
INSTANTIATE_TEST_SUITE_P(Shapes, SparseStorage,
                         testing::Values(SparseCase{"short_rows", 200, 40, 0.2, false}, SparseCase{"short_ones", 200, 40, 0.2, true},
                                         SparseCase{"nearly_empty", 150, 30, 0.02, true}, SparseCase{"long_rows", 70, 300, 0.7, false},
                                         SparseCase{"long_ones", 70, 300, 0.7, true}, SparseCase{"middle", 130, 60, 0.45, false},
                                         SparseCase{"one_feature", 65, 1, 0.5, false}),
                         [](const auto& instance) { return instance.param.label; });

TEST_P(SparseStorage, EqualsDenseAndPlainLoops) {
  const auto& c = GetParam();
  auto rows = random_rows(c.rows, c.features, 2, c.density, 3);
  for (auto& row : rows) {
    row.label = row.label > 0 ? 1 : -1;
    for (auto& [_, v] : row.entries) v = c.ones ? 1 : v;
  }
  const auto dense = make_dataset<double>(rows, Storage::dense, c.features);
  const auto sparse = make_dataset<double>(rows, Storage::sparse, c.features);
  EXPECT_EQ(sparse.all_ones(), c.ones);
  const auto on_dense = make_model<double>("logistic_regression", kNoBias, dense);
  const auto on_sparse = make_model<double>("logistic_regression", kNoBias, sparse);
  RandomSequence random(9, Purpose::start);
  std::vector<double> x(c.features);
  for (auto& v : x) v = random.normal();
  auto shuffled = all_rows(c.rows);
  random.shuffle(shuffled.begin(), shuffled.end());
  const auto straight = all_rows(c.rows);
  for (const std::size_t size : {1ul, 3ul, 63ul, 64ul, c.rows}) {
    for (const auto& order : {straight, shuffled}) {
      const auto pick = std::span(order).first(size);
      double loss = 0, dense_loss = 0, sparse_loss = 0;
      const auto expected = reference_gradient(rows, x, pick, &loss);
      const auto a = gradient_at(*on_dense, x, pick, &dense_loss);
      const auto b = gradient_at(*on_sparse, x, pick, &sparse_loss);
      EXPECT_NEAR(dense_loss, loss, 1e-13 * loss);
      EXPECT_NEAR(sparse_loss, loss, 1e-13 * loss);
      for (std::size_t j = 0; j < c.features; ++j) {
        EXPECT_NEAR(a[j], expected[j], 1e-13 * (1 + std::abs(expected[j]))) << size << " dense rows, feature " << j;
        EXPECT_NEAR(b[j], expected[j], 1e-13 * (1 + std::abs(expected[j]))) << size << " sparse rows, feature " << j;
      }
    }
  }
}

TEST(SparseStorage, ContiguousRowsEqualTheSameRowsInPieces) {
  const auto rows = random_rows(128, 50, 3, 0.3, 4);
  auto data = make_dataset<float>(rows, Storage::sparse, 50);
  const auto model = make_model<float>("logistic_regression", {}, data);
  std::vector<float> x(model->layers().size());
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<float>(std::sin(static_cast<double>(j)));
  // The same rows as a copy of the data in another order: the second half first.
  std::vector<PlainRow> turned(rows.begin() + 64, rows.end());
  turned.insert(turned.end(), rows.begin(), rows.begin() + 64);
  auto other = make_dataset<float>(turned, Storage::sparse, 50);
  const auto other_model = make_model<float>("logistic_regression", {}, other);
  std::vector<std::uint32_t> mixed, straight;
  for (std::uint32_t r = 0; r < 40; ++r) mixed.push_back(r % 2 == 0 ? r : 64 + r);
  for (const auto r : mixed) straight.push_back((r + 64) % 128);
  EXPECT_EQ(gradient_at(*model, x, mixed), gradient_at(*other_model, x, straight));
}

TEST(LogisticRegression, IsStableForHugeMargins) {
  std::vector<PlainRow> rows = {{1, {{0, 1.0}}}, {-1, {{0, 1.0}}}};
  const auto data = make_dataset<double>(rows, Storage::dense);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const std::vector<std::uint32_t> right = {0}, wrong = {1};
  double loss = 0;
  EXPECT_EQ(gradient_at(*model, {800.0}, right, &loss)[0], 0);
  EXPECT_EQ(loss, 0);
  EXPECT_EQ(gradient_at(*model, {800.0}, wrong, &loss)[0], 1);
  EXPECT_EQ(loss, 800);
  const double small = gradient_at(*model, {50.0}, right, &loss)[0];
  EXPECT_NEAR(small / -std::exp(-50.0), 1, 1e-12) << "no cancellation in 1 - sigmoid";
  EXPECT_NEAR(loss / std::exp(-50.0), 1, 1e-12);
}

TEST(LogisticRegression, MultinomialIsStableForHugeMargins) {
  const std::vector<PlainRow> rows = {{0, {{0, 1.0}}}, {1, {{0, 1.0}}}, {2, {{0, 1.0}}}};
  const auto data = make_dataset<double>(rows, Storage::dense);
  const auto model = make_model<double>("logistic_regression", kNoBias, data);
  const std::vector<std::uint32_t> second = {1};
  double loss = 0;
  const auto g = gradient_at(*model, {900.0, -900.0, 0.0}, second, &loss);
  EXPECT_EQ(loss, 1800);
  EXPECT_EQ(g, (std::vector<double>{1, -1, 0}));
}

TEST(LogisticRegression, LossesAndHitsOfKnownPoints) {
  const std::vector<PlainRow> rows = {{-1, {{0, 1.0}}}, {1, {{0, 2.0}}}, {1, {{0, -1.0}}}};
  const auto data = make_dataset<double>(rows, Storage::dense);
  const auto model = make_model<double>("logistic_regression", {}, data);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::uint64_t correct = 0;
  const std::vector<double> zero = {0, 0}, x = {1, 0.5};
  EXPECT_NEAR(model->loss_sum(exec, zero.data(), data, all_rows(3), &correct), 3 * std::log(2.0), 1e-15);
  EXPECT_EQ(correct, 1u) << "a margin of zero is class 0";
  const double expected = std::log1p(std::exp(1.5)) + std::log1p(std::exp(-2.5)) + std::log1p(std::exp(0.5));
  EXPECT_NEAR(model->loss_sum(exec, x.data(), data, all_rows(3), &correct), expected, 1e-14);
  EXPECT_EQ(correct, 1u);
}

TEST(LogisticRegression, SoftmaxOfTwoIsTheBinaryModelOfTheDifference) {
  const auto data = make_dataset<double>(random_rows(90, 12, 2, 0.8, 6), Storage::dense);
  const auto binary = make_model<double>("logistic_regression", kNoBias, data);
  const auto softmax = make_model<double>("logistic_regression", {{"bias", Value{false}}, {"multinomial", Value{true}}}, data);
  std::vector<double> w(12), W(24);
  for (std::size_t j = 0; j < 12; ++j) {
    W[j] = std::cos(static_cast<double>(j));
    W[12 + j] = std::sin(static_cast<double>(j));
    w[j] = W[12 + j] - W[j];
  }
  double loss = 0, softmax_loss = 0;
  const auto g = gradient_at(*binary, w, all_rows(90), &loss);
  const auto G = gradient_at(*softmax, W, all_rows(90), &softmax_loss);
  EXPECT_NEAR(loss, softmax_loss, 1e-13);
  for (std::size_t j = 0; j < 12; ++j) {
    EXPECT_NEAR(G[12 + j], g[j], 1e-13);
    EXPECT_NEAR(G[j], -g[j], 1e-13);
  }
}

TEST(LinearModels, Layers) {
  const auto two = make_dataset<double>(random_rows(20, 7, 2, 1, 1), Storage::dense);
  const auto four = make_dataset<double>(random_rows(20, 7, 4, 1, 1), Storage::dense);
  const auto binary = make_model<double>("logistic_regression", {}, two)->layers().layers;
  ASSERT_EQ(binary.size(), 2u);
  EXPECT_EQ(binary[0].name, "weight");
  EXPECT_EQ(binary[0].rows, 7u);
  EXPECT_EQ(binary[1].name, "bias");
  EXPECT_EQ(binary[1].size(), 1u);
  const auto many = make_model<double>("logistic_regression", {}, four)->layers().layers;
  EXPECT_EQ(many[0].rows, 4u);
  EXPECT_EQ(many[0].cols, 7u);
  EXPECT_EQ(many[1].begin, 28u);
  EXPECT_EQ(many[1].rows, 4u);
  EXPECT_EQ(make_model<double>("linear_regression", kNoBias, two)->layers().layers.size(), 1u);
}

// Images as bytes give the bits of the same images as dense rows, for rows in no order and blocks that are not full.
template <class T>
void expect_bits_of_dense_rows(const std::string& kind) {
  auto pixels = checks::image_rows<T>(45, 10, 3), dense = checks::image_rows<T>(45, 10, 3);
  for (auto* data : {&pixels, &dense}) data->images.mean = {0.3}, data->images.deviation = {0.7};
  dense.expand_pixels();
  ASSERT_TRUE(pixels.has_pixels() && !dense.has_pixels());
  const auto of_bytes = make_model<T>(kind, {}, pixels), of_numbers = make_model<T>(kind, {}, dense);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::vector<T> x(of_bytes->layers().size());
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(0.01 * std::sin(static_cast<double>(j)));
  const std::vector<double> at(x.begin(), x.end());
  for (const std::size_t count : {1u, 7u, 16u, 23u, 45u}) {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t r = 0; r < count; ++r) rows.push_back((r * 17 + 5) % 45);
    double loss = 0, dense_loss = 1;
    EXPECT_EQ(gradient_at(*of_bytes, x, rows, &loss), gradient_at(*of_numbers, x, rows, &dense_loss)) << count;
    EXPECT_EQ(loss, dense_loss);
    std::uint64_t correct = 0, dense_correct = 1;
    EXPECT_EQ(of_bytes->loss_sum(exec, x.data(), pixels, rows, &correct),
              of_numbers->loss_sum(exec, x.data(), dense, rows, &dense_correct));
    EXPECT_EQ(correct, dense_correct);
    std::vector<double> product(x.size()), dense_product(x.size());
    of_bytes->second_order()->hessian_times(exec, at.data(), {rows}, at.data(), product.data());
    of_numbers->second_order()->hessian_times(exec, at.data(), {rows}, at.data(), dense_product.data());
    EXPECT_EQ(product, dense_product);
    EXPECT_EQ(of_bytes->second_order()->curvature({rows}).largest, of_numbers->second_order()->curvature({rows}).largest);
    const auto* bounded = dynamic_cast<const BoundedGradients*>(of_bytes.get());
    const auto* dense_bounded = dynamic_cast<const BoundedGradients*>(of_numbers.get());
    if (bounded != nullptr) {
      EXPECT_EQ(bounded->gradient_variance(rows), dense_bounded->gradient_variance(rows));
    }
  }
}
TEST(LinearModels, BytesOfImagesGiveTheBitsOfDenseRows) {
  for (const char* kind : {"logistic_regression", "linear_regression"}) {
    SCOPED_TRACE(kind);
    expect_bits_of_dense_rows<float>(kind);
    expect_bits_of_dense_rows<double>(kind);
  }
}

TEST(LinearModels, RefuseImagesThatChange) {
  auto data = checks::image_rows<float>(20, 10, 3);
  data.images.augment.flip = true;
  try {
    static_cast<void>(make_model<float>("logistic_regression", {}, data));
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().at(0).where, "data.augment");
  }
}

TEST(LinearModels, RefuseUnfitData) {
  auto one_class = make_dataset<double>({{1, {{0, 1.0}}}, {1, {{0, 2.0}}}}, Storage::dense);
  EXPECT_THROW(make_model<double>("logistic_regression", {}, one_class), ConfigError);
  Dataset<double> empty;
  EXPECT_THROW(make_model<double>("logistic_regression", {}, empty), ConfigError);
  auto no_target = make_dataset<double>(random_rows(9, 3, 2, 1, 1), Storage::dense);
  no_target.target.clear();
  EXPECT_THROW(make_model<double>("linear_regression", {}, no_target), ConfigError);
  const auto train = make_dataset<double>(random_rows(9, 4, 2, 1, 1), Storage::dense);
  EXPECT_THROW(make_model<double>("quadratic", {}, train), ConfigError) << "4 is not d*d + d + 1";
  const auto narrow = make_dataset<double>(random_rows(9, 3, 2, 1, 1), Storage::dense);
  const auto model = make_model<double>("logistic_regression", {}, train);
  const std::vector<double> x(5, 0.0);
  EXPECT_THROW(static_cast<void>(model->loss_sum({}, x.data(), narrow, all_rows(9), nullptr)), ConfigError);
}

TEST(Quadratic, KnownValuesAndRefusals) {
  // l(x) = (2 x0^2 + 2 x0 x1 + 4 x1^2)/2 - x0 + 3 x1 + 5
  const std::vector<double> flat = {2, 1, 1, 4, 1, -3, 5};
  PlainRow row;
  for (std::uint32_t i = 0; i < flat.size(); ++i) row.entries.emplace_back(i, flat[i]);
  const auto data = make_dataset<double>({row}, Storage::dense);
  const auto model = make_model<double>("quadratic", {}, data);
  EXPECT_TRUE(model->is_convex());
  double loss = 0;
  EXPECT_EQ(gradient_at(*model, {2, -1}, all_rows(1), &loss), (std::vector<double>{2 * 2 - 1 - 1, 2 - 4 + 3}));
  EXPECT_EQ(loss, (8 - 4 + 4) / 2.0 - 2 - 3 + 5);
  row.entries[1].second = 1.1;
  const auto lopsided = make_dataset<double>({row}, Storage::dense);
  EXPECT_THROW(make_model<double>("quadratic", {}, lopsided), ConfigError);
  row.entries[1].second = row.entries[2].second = 3;
  const auto saddle = make_dataset<double>({row}, Storage::dense);
  EXPECT_FALSE(make_model<double>("quadratic", {}, saddle)->is_convex());
}

TEST(Regulariser, Value) {
  const std::vector<double> x = {0.5, -2, 0, 3};
  double squares = 0, bounded = 0;
  for (const double v : x) squares += v * v, bounded += v * v / (1 + v * v);
  EXPECT_NEAR((Regulariser{0.3, 0.2}.value(x.data(), x.size())), 0.15 * squares + 0.2 * bounded, 1e-14);
}

TEST(Regulariser, DerivativesAndConvexity) {
  const Regulariser both{0.3, 0.2};
  for (const double x : {-3.0, -1.0, -0.2, 0.0, 0.5, 1.0, 2.5}) {
    const double h = 1e-6;
    const double up = x + h, down = x - h;
    EXPECT_NEAR(both.derivative(x), (both.value(&up, 1) - both.value(&down, 1)) / (2 * h), 1e-9);
    EXPECT_NEAR(both.curvature(x), (both.derivative(up) - both.derivative(down)) / (2 * h), 1e-8);
    EXPECT_GE(both.curvature(x), both.least_curvature());
  }
  EXPECT_DOUBLE_EQ(both.curvature(1), both.least_curvature());
}

}  // namespace
}  // namespace fl::test
