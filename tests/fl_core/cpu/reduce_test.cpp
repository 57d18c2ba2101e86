#include "fl_core/ops/cpu/reduce.hpp"

#include <gtest/gtest.h>

#include "tests/fl_core/cpu/op_cases.hpp"

namespace fl {
namespace {

using namespace fl::test;

template <class T>
class ReduceRows : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceRows, Precisions);

// The order as the header states it, one element at a time.
template <class T>
double sum_in_stated_order(const T* p, std::size_t n) {
  double total = 0;
  for (std::size_t tile = 0; tile < n; tile += 2048) {
    double lane[16] = {};
    for (std::size_t j = tile; j < std::min(n, tile + 2048); ++j)
      lane[(j - tile) % 16] += static_cast<double>(p[j]) * static_cast<double>(p[j]);
    for (std::size_t width = 8; width > 0; width /= 2)
      for (std::size_t l = 0; l < width; ++l) lane[l] += lane[l + width];
    total += lane[0];
  }
  return total;
}

TYPED_TEST(ReduceRows, SumsInTheStatedOrderAndFindsTheMaximum) {
  using T = TypeParam;
  for (const std::size_t P : kOddSizes)
    for (const Pattern pattern : {Pattern::uniform, Pattern::zeros, Pattern::denormal, Pattern::layered})
      for (int terms = 1; terms <= 4; ++terms) {
        TestBlock<T> block(2, P, pattern);
        const std::vector<T> p = evaluate(block.input(terms));
        double sum[2], largest[2];
        cpu::reduce_rows(block.exec, block.input(terms), model_scope(P), SquareOf{}, Reduce::sum, sum);
        cpu::reduce_rows(block.exec, block.input(terms), model_scope(P), MagnitudeOf{}, Reduce::max, largest);
        for (std::size_t k = 0; k < 2; ++k) {
          EXPECT_EQ(sum[k], sum_in_stated_order(p.data() + k * P, P));
          T expected = 0;
          for (std::size_t j = 0; j < P; ++j) expected = std::max(expected, std::fabs(p[k * P + j]));
          EXPECT_EQ(largest[k], static_cast<double>(expected));
        }
      }
}

TYPED_TEST(ReduceRows, GivesOneNumberPerClientAndSegment) {
  using T = TypeParam;
  const Scope scope = bucket_scope(5000, 700, true);
  TestBlock<T> block(3, 5000, Pattern::uniform);
  const std::vector<T> p = evaluate(block.input(2));
  std::vector<double> out(3 * scope.segments.size());
  cpu::reduce_rows(block.exec, block.input(2), scope, SquareOf{}, Reduce::sum, out.data());
  for (std::size_t k = 0, i = 0; k < 3; ++k)
    for (const Segment& segment : scope.segments)
      EXPECT_EQ(out[i++], sum_in_stated_order(p.data() + k * 5000 + segment.begin, segment.size()));
}

TYPED_TEST(ReduceRows, NanIsNotAMaximum) {
  using T = TypeParam;
  TestBlock<T> block(1, 100, Pattern::nan);
  double largest = 0;
  cpu::reduce_rows(block.exec, block.input(1), model_scope(100), MagnitudeOf{}, Reduce::max, &largest);
  EXPECT_LT(largest, 1.0);
  EXPECT_GT(largest, 0.5);
}

}  // namespace
}  // namespace fl
