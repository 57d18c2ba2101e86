// Compares products of an affine matrix with thin factors with plain loops: shapes of one tile and of many, ranks of one chunk of columns
// and of several.
#include "fl_core/ops/cpu/low_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cpu {
namespace {

struct MatrixSizes {
  std::size_t rows, cols, rank;
};
constexpr MatrixSizes kMatrixSizes[] = {{1, 1, 1},     {7, 5, 2},   {8, 512, 4}, {9, 513, 5},
                                        {19, 1100, 6}, {40, 16, 9}, {3, 700, 3}, {5, 9001, 4}};
constexpr std::size_t kBefore = 3, kClients = 2;  // parameters in front of the matrix

template <class T>
class LowRank : public testing::Test {
 protected:
  LowRank() { exec_.workspace = &workspace_; }
  std::vector<T> noise(std::size_t n, std::uint32_t which) {
    RandomSequence random(which, Purpose::start);
    std::vector<T> x(n);
    for (T& v : x) v = static_cast<T>(random.normal());
    return x;
  }
  // Tests p = e + g / 4 of both clients on the second client.
  void take(const MatrixSizes& sizes) {
    P_ = kBefore + sizes.rows * sizes.cols + 2;
    segment_ = {kBefore, kBefore + sizes.rows * sizes.cols, sizes.rows, sizes.cols};
    e_ = noise(kClients * P_, 1), g_ = noise(kClients * P_, 2);
    left_ = noise(sizes.rows * sizes.rank, 3), right_ = noise(sizes.cols * sizes.rank, 4);
  }
  BatchView<T> view(std::vector<T>& x) { return {x.data(), nullptr, kClients, P_, P_}; }
  Affine<T> input() {
    Affine<T> input;
    input.add(T(1), view(e_)).add(T(0.25), view(g_));
    return input;
  }
  double entry(std::size_t i, std::size_t j) {
    const std::size_t at = P_ + kBefore + i * segment_.cols + j;
    return static_cast<double>(e_[at]) + 0.25 * static_cast<double>(g_[at]);
  }
  double sent(const MatrixSizes& sizes, std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t c = 0; c < sizes.rank; ++c)
      sum += static_cast<double>(left_[i * sizes.rank + c]) * static_cast<double>(right_[j * sizes.rank + c]);
    return sum;
  }
  static constexpr double kTolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

  Workspace workspace_;
  Exec exec_;
  std::size_t P_ = 0;
  Segment segment_;
  std::vector<T> e_, g_, left_, right_;
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(LowRank, Precisions);

TYPED_TEST(LowRank, ProductsAreThoseOfPlainLoops) {
  using T = TypeParam;
  for (const MatrixSizes& sizes : kMatrixSizes) {
    this->take(sizes);
    std::vector<T> by_rows(sizes.rows * sizes.rank, T(9)), by_columns(sizes.cols * sizes.rank, T(9));
    affine_times(this->exec_, this->input(), 1, this->segment_, this->right_.data(), sizes.rank, by_rows.data());
    affine_transposed_times(this->exec_, this->input(), 1, this->segment_, this->left_.data(), sizes.rank, StateWrite<T>{},
                            by_columns.data());
    for (std::size_t c = 0; c < sizes.rank; ++c) {
      for (std::size_t i = 0; i < sizes.rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < sizes.cols; ++j) sum += this->entry(i, j) * static_cast<double>(this->right_[j * sizes.rank + c]);
        ASSERT_NEAR(static_cast<double>(by_rows[i * sizes.rank + c]), sum, this->kTolerance * (1 + std::sqrt(sizes.cols)))
            << sizes.rows << 'x' << sizes.cols << " rank " << sizes.rank;
      }
      for (std::size_t j = 0; j < sizes.cols; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < sizes.rows; ++i) sum += this->entry(i, j) * static_cast<double>(this->left_[i * sizes.rank + c]);
        ASSERT_NEAR(static_cast<double>(by_columns[j * sizes.rank + c]), sum, this->kTolerance * (1 + std::sqrt(sizes.rows)))
            << sizes.rows << 'x' << sizes.cols << " rank " << sizes.rank;
      }
    }
  }
}

// The state lies over either term of the input; what is beside the matrix, and the other client, stay as they are.
TYPED_TEST(LowRank, TheStateIsWhatTheProductLeaves) {
  using T = TypeParam;
  for (const MatrixSizes& sizes : kMatrixSizes)
    for (const bool over_first : {true, false}) {
      this->take(sizes);
      std::vector<T>& state = over_first ? this->e_ : this->g_;
      std::vector<T> stateless(sizes.cols * sizes.rank), right(sizes.cols * sizes.rank), product(sizes.rows * sizes.cols, T(9));
      const auto transposed_times = [&](StateRule rule, std::vector<T>& out) {
        affine_transposed_times(this->exec_, this->input(), 1, this->segment_, this->left_.data(), sizes.rank,
                                StateWrite<T>{rule, this->view(state)}, out.data());
      };
      transposed_times(StateRule::none, stateless);
      low_rank_product(this->exec_, this->segment_, this->left_.data(), stateless.data(), sizes.rank, product.data());
      std::vector<T> expected = state;
      for (std::size_t i = 0; i < product.size(); ++i) {
        const std::size_t at = this->P_ + kBefore + i;
        expected[at] = T(1) * this->e_[at] + T(0.25) * this->g_[at] - product[i];
      }
      transposed_times(StateRule::residual, right);
      ASSERT_EQ(right, stateless) << sizes.rows << 'x' << sizes.cols << " rank " << sizes.rank;
      ASSERT_EQ(state, expected) << sizes.rows << 'x' << sizes.cols << " rank " << sizes.rank;
      transposed_times(StateRule::zero_where_sent, right);
      for (std::size_t i = 0; i < product.size(); ++i) expected[this->P_ + kBefore + i] = T(0);
      ASSERT_EQ(state, expected);
    }
}

// The products of the entries of two factors.
TYPED_TEST(LowRank, FactorsAreMultipliedAsByPlainLoops) {
  using T = TypeParam;
  for (const MatrixSizes& sizes : kMatrixSizes) {
    this->take(sizes);
    std::vector<T> product(sizes.rows * sizes.cols, T(9));
    low_rank_product(this->exec_, this->segment_, this->left_.data(), this->right_.data(), sizes.rank, product.data());
    for (std::size_t i = 0; i < product.size(); ++i)
      ASSERT_NEAR(static_cast<double>(product[i]), this->sent(sizes, i / sizes.cols, i % sizes.cols), this->kTolerance * 10);
  }
}

}  // namespace
}  // namespace fl::cpu
