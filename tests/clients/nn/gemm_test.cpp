// Compares matrix products with plain loops, and tests that results do not depend on the memory addresses of matrices.
#include "clients/nn/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "clients/nn/elementwise.hpp"
#include "fl_core/random/random.hpp"
#include "tests/support/sanitized.hpp"

namespace fl::nn {
namespace {

struct Sizes {
  std::size_t m, n, k;
};
const std::vector<Sizes> kSizes = {{1, 1, 1},      {1, 7, 3},     {5, 1, 9},     {3, 4, 5},    {2, 3, 300},    {1, 200, 784},
                                   {10, 200, 784}, {200, 1, 33},  {33, 17, 65},  {6, 784, 25}, {64, 49, 800},  {128, 10, 1},
                                   {7, 300, 2},    {150, 83, 20}, {70, 53, 130}, {13, 9, 131}, {70, 40, 1100}, {67, 500, 300}};

template <class T>
std::vector<T> random_entries(std::size_t count, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::start);
  std::vector<T> entries(count);
  for (T& v : entries) v = static_cast<T>(random.normal());
  return entries;
}

template <class T>
void check_products(double tolerance) {
  for (const Sizes& s : kSizes)
    for (const Op a : {Op::plain, Op::transposed})
      for (const Op b : {Op::plain, Op::transposed})
        for (const bool add : {false, true}) {
          if (test::kSanitized && s.m * s.n * s.k > 300000 && add) continue;
          const std::size_t lda = (a == Op::plain ? s.k : s.m) + 2, ldb = (b == Op::plain ? s.n : s.k) + 1, ldc = s.n + 3;
          const auto A = random_entries<T>(lda * std::max(s.m, s.k), 1), B = random_entries<T>(ldb * std::max(s.n, s.k), 2);
          std::vector<T> C(s.m * ldc, T(2)), first;
          gemm(a, b, s.m, s.n, s.k, A.data(), lda, B.data(), ldb, add, C.data(), ldc);
          for (std::size_t i = 0; i < s.m; ++i) {
            for (std::size_t j = 0; j < s.n; ++j) {
              double sum = add ? 2 : 0, size = 2;
              for (std::size_t l = 0; l < s.k; ++l) {
                const double x = static_cast<double>(a == Op::plain ? A[i * lda + l] : A[l * lda + i]);
                const double y = static_cast<double>(b == Op::plain ? B[l * ldb + j] : B[j * ldb + l]);
                sum += x * y;
                size += std::abs(x * y);
              }
              ASSERT_NEAR(static_cast<double>(C[i * ldc + j]), sum, tolerance * size) << s.m << ' ' << s.n << ' ' << s.k;
            }
            for (std::size_t j = s.n; j < ldc; ++j) ASSERT_EQ(C[i * ldc + j], T(2));  // past the row
          }
        }
}

TEST(GemmTest, ProductsOfFloats) { check_products<float>(1e-5); }
TEST(GemmTest, ProductsOfDoubles) { check_products<double>(1e-14); }

TEST(GemmTest, BitsDoNotDependOnWhereMatricesLie) {
  for (const Sizes& s : kSizes)
    for (const Op a : {Op::plain, Op::transposed})
      for (const Op b : {Op::plain, Op::transposed}) {
        const auto A = random_entries<float>(s.m * s.k, 1), B = random_entries<float>(s.n * s.k, 2);
        const std::size_t lda = a == Op::plain ? s.k : s.m, ldb = b == Op::plain ? s.n : s.k;
        std::vector<float> reference(s.m * s.n);
        for (std::size_t shift = 0; shift < 17; ++shift) {
          std::vector<float> a_room(A.size() + 32), b_room(B.size() + 32), c_room(s.m * s.n + 32);
          float *pa = a_room.data() + shift, *pb = b_room.data() + shift * 3 % 17, *pc = c_room.data() + shift * 5 % 17;
          std::copy(A.begin(), A.end(), pa);
          std::copy(B.begin(), B.end(), pb);
          gemm(a, b, s.m, s.n, s.k, pa, lda, pb, ldb, false, pc, s.n);
          if (shift == 0) std::copy_n(pc, reference.size(), reference.data());
          ASSERT_EQ(std::memcmp(pc, reference.data(), reference.size() * sizeof(float)), 0)
              << s.m << ' ' << s.n << ' ' << s.k << " +" << shift;
        }
      }
}

template <class T>
void check_functions(double tolerance) {
  const auto x = random_entries<T>(1003, 4);
  std::vector<T> y(x.size()), one(1);
  const auto check = [&](auto&& many, auto&& exact) {
    many(x.size(), x.data(), y.data());
    for (std::size_t j = 0; j < x.size(); ++j) {
      ASSERT_NEAR(static_cast<double>(y[j]), exact(static_cast<double>(x[j])), tolerance * (1 + std::abs(static_cast<double>(y[j]))));
      many(1, &x[j], one.data());
      ASSERT_EQ(one[0], y[j]) << "alone and among others";
    }
  };
  check([](auto... a) { exp_of<T>(a...); }, [](double v) { return std::exp(v); });
  check([](auto... a) { tanh_of<T>(a...); }, [](double v) { return std::tanh(v); });
  check([](auto... a) { logistic_of<T>(a...); }, [](double v) { return 1 / (1 + std::exp(-v)); });
}

TEST(ElementwiseTest, FunctionsOfFloats) { check_functions<float>(1e-6); }
TEST(ElementwiseTest, FunctionsOfDoubles) { check_functions<double>(1e-14); }

}  // namespace
}  // namespace fl::nn
