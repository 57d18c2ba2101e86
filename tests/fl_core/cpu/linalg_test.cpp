// Compares dense algebra with Eigen, and sorts and scans with the standard library.
#include "fl_core/ops/cpu/linalg.hpp"

#include <gtest/gtest.h>

// g++ 12 warns inside its own AVX-512 intrinsics, wherever Eigen uses them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fl_core/ops/cpu/sort.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cpu {
namespace {

template <class T>
using Mat = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
Mat<T> random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::synthetic_data);
  Mat<T> m(rows, cols);
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<T>(random.normal());
  return m;
}

template <class T>
Mat<double> in_double(const Mat<T>& m) {
  return m.template cast<double>();
}

template <class T>
class Linalg : public testing::Test {
 protected:
  Linalg() { exec_.workspace = &workspace_; }
  static constexpr double kEps = static_cast<double>(std::numeric_limits<T>::epsilon());
  Workspace workspace_;
  Exec exec_;
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Linalg, Precisions);

// Eigen would ask the processor for the sizes of its caches, and sums would differ between processors.
TEST(EigenBlocks, DoNotDependOnTheProcessor) {
  std::ptrdiff_t l1 = 0, l2 = 0, l3 = 0;
  Eigen::internal::manage_caching_sizes(Eigen::GetAction, &l1, &l2, &l3);
  EXPECT_EQ(l1, 48 << 10);
  EXPECT_EQ(l2, 2 << 20);
  EXPECT_EQ(l3, 256 << 20);
}

TYPED_TEST(Linalg, GemmEqualsEigenInDouble) {
  using T = TypeParam;
  for (const auto& [m, n, k] : {std::array<std::size_t, 3>{1, 1, 1}, {5, 3, 7}, {64, 2, 129}, {3, 200, 1}, {33, 65, 100}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Mat<T> A = ta ? random_matrix<T>(k, m, 1) : random_matrix<T>(m, k, 1);
        const Mat<T> B = tb ? random_matrix<T>(n, k, 2) : random_matrix<T>(k, n, 2);
        for (const double beta : {0.0, 1.0, -0.5}) {
          Mat<T> C = random_matrix<T>(m, n, 3);
          const Mat<double> a = in_double(A), b = in_double(B);
          const Mat<double> product = (ta ? Mat<double>(a.transpose()) : a) * (tb ? Mat<double>(b.transpose()) : b);
          const Mat<double> expected = 1.5 * product + beta * C.template cast<double>();
          if (beta == 0) C.setConstant(std::numeric_limits<T>::quiet_NaN());  // C is not read
          gemm<T>(this->exec_, ta ? Transpose::yes : Transpose::no, tb ? Transpose::yes : Transpose::no, m, n, k, T(1.5), A.data(),
                  B.data(), static_cast<T>(beta), C.data());
          EXPECT_LE((C.template cast<double>() - expected).cwiseAbs().maxCoeff(), 8 * this->kEps * static_cast<double>(k + 4));
        }
      }
    }
  }
}

TYPED_TEST(Linalg, OrthogonalizeKeepsTheSpan) {
  using T = TypeParam;
  for (const auto& [n, r] : {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {200, 4}, {1000, 16}, {6, 6}}) {
    const Mat<T> A = random_matrix<T>(n, r, 4);
    Mat<T> Q = A;
    orthogonalize<T>(this->exec_, Q.data(), n, r);
    const Mat<double> q = in_double(Q), a = in_double(A);
    EXPECT_LE((q.transpose() * q - Mat<double>::Identity(r, r)).cwiseAbs().maxCoeff(), 16 * this->kEps);
    EXPECT_LE((q * (q.transpose() * a) - a).cwiseAbs().maxCoeff(), 64 * this->kEps * a.cwiseAbs().maxCoeff());
  }
}

TYPED_TEST(Linalg, DependentAndZeroColumnsBecomeZero) {
  using T = TypeParam;
  Mat<T> A = random_matrix<T>(50, 5, 5);
  A.col(1) = A.col(0) * T(3);
  A.col(2).setZero();
  A.col(4) = A.col(0) - A.col(3);
  orthogonalize<T>(this->exec_, A.data(), 50, 5);
  for (const Eigen::Index zero : {1, 2, 4}) EXPECT_EQ(A.col(zero).cwiseAbs().maxCoeff(), T(0)) << zero;
  for (const Eigen::Index kept : {0, 3}) EXPECT_NEAR(static_cast<double>(A.col(kept).norm()), 1.0, 8 * this->kEps);
}

TYPED_TEST(Linalg, NearlyDependentColumnsAreStillOrthogonal) {
  using T = TypeParam;
  Mat<T> A = random_matrix<T>(300, 3, 6);
  A.col(1) = A.col(0) + A.col(1) * T(1e-3);
  A.col(2) = A.col(0) + A.col(2) * T(1e-3);
  orthogonalize<T>(this->exec_, A.data(), 300, 3);
  const Mat<double> q = A.template cast<double>();
  EXPECT_LE((q.transpose() * q - Mat<double>::Identity(3, 3)).cwiseAbs().maxCoeff(), 16 * this->kEps);
}

TYPED_TEST(Linalg, SvdEqualsEigen) {
  using T = TypeParam;
  for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{1, 1}, {5, 3}, {3, 5}, {40, 8}, {8, 40}, {12, 12}}) {
    const Mat<T> A = random_matrix<T>(m, n, 7);
    const std::size_t q = std::min(m, n);
    Mat<T> U(m, q), V(n, q);
    std::vector<T> S(q);
    svd_small<T>(this->exec_, A.data(), m, n, U.data(), S.data(), V.data());
    const Mat<double> a = in_double(A), u = in_double(U), v = in_double(V);
    const Eigen::JacobiSVD<Eigen::MatrixXd> reference{Eigen::MatrixXd(a)};
    const double tolerance = 16 * this->kEps * reference.singularValues()(0);
    Eigen::VectorXd s(q);
    for (std::size_t i = 0; i < q; ++i) s(static_cast<Eigen::Index>(i)) = static_cast<double>(S[i]);
    EXPECT_LE((s - reference.singularValues()).cwiseAbs().maxCoeff(), tolerance);
    EXPECT_LE((u * s.asDiagonal() * v.transpose() - a).cwiseAbs().maxCoeff(), tolerance);
    EXPECT_LE((u.transpose() * u - Mat<double>::Identity(q, q)).cwiseAbs().maxCoeff(), 16 * this->kEps);
    EXPECT_LE((v.transpose() * v - Mat<double>::Identity(q, q)).cwiseAbs().maxCoeff(), 16 * this->kEps);
  }
}

TYPED_TEST(Linalg, SvdOfLowRankZeroAndNan) {
  using T = TypeParam;
  const Mat<T> left = random_matrix<T>(9, 2, 8), right = random_matrix<T>(2, 6, 9);
  Mat<T> A = left * right, U(9, 6), V(6, 6);
  std::vector<T> S(6);
  svd_small<T>(this->exec_, A.data(), 9, 6, U.data(), S.data(), V.data());
  EXPECT_GT(S[1], T(0.1));
  for (std::size_t i = 2; i < 6; ++i) EXPECT_LE(static_cast<double>(S[i]), 64 * this->kEps * static_cast<double>(S[0]));
  A.setZero();
  svd_small<T>(this->exec_, A.data(), 9, 6, U.data(), S.data(), V.data());
  EXPECT_EQ(*std::max_element(S.begin(), S.end()), T(0));
  EXPECT_EQ(U.cwiseAbs().maxCoeff(), T(0));
  A(3, 3) = std::numeric_limits<T>::quiet_NaN();
  svd_small<T>(this->exec_, A.data(), 9, 6, U.data(), S.data(), V.data());  // ends
}

TYPED_TEST(Linalg, HadamardEqualsItsDefinition) {
  using T = TypeParam;
  for (const std::size_t n : {1u, 2u, 8u, 64u}) {
    const Mat<T> X = random_matrix<T>(3, n, 10);
    Mat<T> Y = X;
    hadamard_rows<T>(this->exec_, Y.data(), 3, n);
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        double expected = 0;
        for (std::size_t j = 0; j < n; ++j) expected += (__builtin_popcountll(i & j) % 2 == 0 ? 1 : -1) * static_cast<double>(X(k, j));
        EXPECT_NEAR(static_cast<double>(Y(k, i)), expected, 8 * this->kEps * static_cast<double>(n));
      }
    }
  }
}

TYPED_TEST(Linalg, SortRows) {
  using T = TypeParam;
  Mat<T> X = random_matrix<T>(3, 1000, 11);
  X(1, 5) = X(1, 6);
  std::vector<T> expected(X.data(), X.data() + X.size());
  for (std::size_t k = 0; k < 3; ++k)
    std::sort(expected.begin() + static_cast<long>(1000 * k), expected.begin() + static_cast<long>(1000 * (k + 1)));
  sort_rows<T>(this->exec_, X.data(), 3, 1000);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), X.data()));
}

TEST(Scan, ExclusiveSumInPlaceAndApart) {
  std::vector<std::uint32_t> in(1001), out(1001), expected(1001);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * 37 % 11);
  std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0u);
  const std::uint32_t total = std::accumulate(in.begin(), in.end(), 0u);
  EXPECT_EQ(exclusive_scan(Exec{}, in.data(), in.size(), out.data()), total);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(exclusive_scan(Exec{}, in.data(), in.size(), in.data()), total);
  EXPECT_EQ(in, expected);
  EXPECT_EQ(exclusive_scan(Exec{}, in.data(), 0, out.data()), 0u);
}

}  // namespace
}  // namespace fl::cpu
