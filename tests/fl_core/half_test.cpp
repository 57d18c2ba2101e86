#include "fl_core/message/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace fl {
namespace {

// By the definition of the format.
double by_definition(std::uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <class T>
class HalfTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(HalfTest, Precisions);

TYPED_TEST(HalfTest, AllHalvesAreExact) {
  using T = TypeParam;
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const T value = half_value<T>(half);
    const double expected = by_definition(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(half_bits(value), (half & 0x8000) | 0x7e00);
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << h;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << h;
    ASSERT_EQ(half_bits(value), half) << h;
    ASSERT_EQ(round_to_half(value), value) << h;
  }
}

// Between two neighbours: the nearest, and the even one from the middle. 65520 is the middle between the largest half and "65536".
TYPED_TEST(HalfTest, NearestAndTiesToEven) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  for (std::uint32_t h = 0; h < 0x7c00; ++h) {
    const double low = by_definition(static_cast<std::uint16_t>(h));
    const double high = h == 0x7bff ? 65536 : by_definition(static_cast<std::uint16_t>(h + 1));
    const T middle = static_cast<T>((low + high) / 2);
    const std::uint32_t even = h + (h & 1);
    ASSERT_EQ(half_bits(middle), even) << h;
    ASSERT_EQ(half_bits(-middle), even | 0x8000) << h;
    ASSERT_EQ(half_bits(std::nextafter(middle, T(0))), h) << h;
    ASSERT_EQ(half_bits(std::nextafter(middle, infinity)), h + 1) << h;
  }
  EXPECT_EQ(half_bits(T(65519.99)), 0x7bff);
  EXPECT_EQ(half_bits(T(65520)), 0x7c00);
  EXPECT_EQ(half_bits(std::numeric_limits<T>::max()), 0x7c00);
  EXPECT_EQ(half_bits(-infinity), 0xfc00);
  EXPECT_EQ(half_bits(std::numeric_limits<T>::denorm_min()), 0);
  EXPECT_EQ(half_bits(-std::numeric_limits<T>::min()), 0x8000);
}

// Rounding twice would give 1 + 2^-10: double -> float ends on the middle, which goes up to even.
TEST(HalfTest, DoubleIsRoundedOnce) {
  const double x = 1 + std::ldexp(3, -11) - std::ldexp(1, -40);
  EXPECT_EQ(half_bits(x), 0x3c01);
  EXPECT_EQ(half_bits(static_cast<float>(x)), 0x3c02);
}

TYPED_TEST(HalfTest, RandomNumbersAreNearest) {
  using T = TypeParam;
  std::mt19937_64 random(8);
  for (int i = 0; i < 200'000; ++i) {
    const T x = static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random), static_cast<int>(random() % 44) - 28));
    const std::uint16_t half = half_bits(x);
    if (std::abs(x) >= T(65520)) {
      ASSERT_TRUE(std::isinf(half_value<T>(half)));
      continue;
    }
    const double error = std::abs(by_definition(half) - static_cast<double>(x));
    for (const int step : {-1, 1}) {
      const auto other = static_cast<std::uint16_t>(half + step);
      if ((other & 0x7fff) > 0x7c00) continue;
      const double neighbour = by_definition(other);
      ASSERT_LE(error, std::abs(neighbour - static_cast<double>(x))) << x;
    }
  }
}

}  // namespace
}  // namespace fl
