#include <gtest/gtest.h>

#include <cmath>

#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

TEST(EfSign, SignOfZeroIsPlusAndScaleIsTheMeanMagnitude) {
  const auto op = make_operator<double>("ef_sign");
  const Sent<double> sent(*op, {3.0, -1.0, 0.0, -0.0}, whole_vector(4));
  EXPECT_EQ(sent.c, (std::vector<double>{1.0, -1.0, 1.0, 1.0}));
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(4)), 4 + 32);
}
// |C(x) - x|^2 = |x|^2 - |x|_1^2 / d
TEST(EfSign, ContractionIsTightOnOneHotAndExactOnEqualMagnitudes) {
  const auto op = make_operator<double>("ef_sign");
  std::vector<double> one_hot(64, 0.0);
  one_hot[5] = -2;
  EXPECT_NEAR(relative_error(*op, one_hot, 1), 1 - 1.0 / 64, 1e-12);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).delta, 1.0 / 64);
  EXPECT_EQ(relative_error(*op, std::vector<double>(64, -0.5), 1), 0.0);
  std::vector<double> ramp(64);
  for (std::size_t j = 0; j < 64; ++j) ramp[j] = static_cast<double>(j) - 20;
  double l1 = 0, l2 = 0;
  for (const double v : ramp) l1 += std::fabs(v), l2 += v * v;
  EXPECT_NEAR(relative_error(*op, ramp, 1), 1 - l1 * l1 / (64 * l2), 1e-12);
}
TEST(EfSign, EverySegmentHasItsOwnScale) {
  const auto op = make_operator<float>("ef_sign");
  const Scope scope{ScopeKind::bucket, {{0, 2, 2, 1}, {2, 3, 1, 1}}, {}, 3};
  const Sent<float> sent(*op, {1.0f, -3.0f, 8.0f}, scope);
  EXPECT_EQ(sent.c, (std::vector<float>{2.0f, -2.0f, 8.0f}));
  EXPECT_DOUBLE_EQ(*op->contract(scope).delta, 0.5);
}

}  // namespace
}  // namespace fl::test
