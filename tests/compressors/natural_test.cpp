#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

const Value kNearest{std::string("nearest")};

template <class T>
class Natural : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Natural, Precisions);

TYPED_TEST(Natural, NearestPowerOfTwoByThePlainRule) {
  using T = TypeParam;
  const auto op = make_operator<T>("natural", {{"rounding", kNearest}});
  std::vector<T> x;
  for (int e = std::numeric_limits<T>::min_exponent - 1; e < std::numeric_limits<T>::max_exponent - 1; e += 7)
    for (const double m : {1.0, 1.25, 1.4999, 1.5, 1.75, 1.9999}) x.push_back(static_cast<T>(std::ldexp(e % 2 == 0 ? m : -m, e)));
  const Sent<T> sent(*op, x, whole_vector(x.size()));
  for (std::size_t j = 0; j < x.size(); ++j) {
    int e = 0;
    const double m = 2 * std::frexp(std::fabs(static_cast<double>(x[j])), &e);
    const double expected = std::copysign(std::ldexp(1.0, m >= 1.5 ? e : e - 1), static_cast<double>(x[j]));
    EXPECT_EQ(static_cast<double>(sent.c[j]), expected) << x[j];
  }
}

TYPED_TEST(Natural, EdgesOfTheRange) {
  using T = TypeParam;
  const auto op = make_operator<T>("natural", {{"rounding", kNearest}});
  const T smallest = std::numeric_limits<T>::min() / 2, largest = std::ldexp(T(1), std::numeric_limits<T>::max_exponent - 1);
  const std::vector<T> x{T(0),         -T(0),
                         smallest,     smallest * T(0.75),
                         smallest / 4, -std::numeric_limits<T>::denorm_min(),
                         largest,      -std::numeric_limits<T>::max(),
                         3 * smallest};
  const Sent<T> sent(*op, x, whole_vector(x.size()));
  EXPECT_EQ(sent.c, (std::vector<T>{T(0), T(0), smallest, smallest, T(0), T(0), largest, -largest, 4 * smallest}));
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(x.size())), (sizeof(T) == 4 ? 9.0 : 12.0) * static_cast<double>(x.size()));
}

// (m-1)(2-m)/m^2 is largest, 1/8, at m = 4/3; below 2^-126 the steps are equal, so half-way errors are sure.
TYPED_TEST(Natural, VarianceIsTightAtFourThirds) {
  using T = TypeParam;
  const auto op = make_operator<T>("natural");
  EXPECT_NEAR(relative_error(*op, std::vector<T>(64, T(4.0 / 3)), 2000), 0.125, 0.004);
  EXPECT_EQ(relative_error(*op, std::vector<T>(64, T(-8)), 10), 0.0);
}
TYPED_TEST(Natural, DenormalNumbersAreRoundedWithoutBias) {
  using T = TypeParam;
  const auto op = make_operator<T>("natural");
  const T smallest = std::numeric_limits<T>::min() / 2;
  const std::vector<T> x(2000, smallest * T(0.25));
  const Sent<T> sent(*op, x, whole_vector(x.size()));
  double up = 0;
  for (const T c : sent.c) up += static_cast<double>(c / smallest) / 2000;
  EXPECT_NEAR(up, 0.25, 0.06);
}
TYPED_TEST(Natural, NearestIsTightAtOneAndAHalf) {
  using T = TypeParam;
  const auto op = make_operator<T>("natural", {{"rounding", kNearest}});
  EXPECT_NEAR(relative_error(*op, std::vector<T>(64, T(1.5)), 1), 1.0 / 9, 1e-7);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).delta, 8.0 / 9);
}

}  // namespace
}  // namespace fl::test
