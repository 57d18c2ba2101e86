// Compares the numbers that levels represent with the definitions of their formats.
#include "fl_core/message/level_format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "fl_core/message/half.hpp"

namespace fl {
namespace {

// A small float with `exponent_bits` and `mantissa_bits` by the definition of its fields; NaN and infinity are not asked for.
double by_definition(unsigned magnitude, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, e = static_cast<int>(magnitude >> mantissa_bits);
  const double m = static_cast<double>(magnitude & ((1U << mantissa_bits) - 1)) / std::exp2(mantissa_bits);
  return e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias);
}

// Every finite code is exact and returns; the middle between two goes to the even one, its neighbours to the nearer one.
template <class F, class T>
void expect_nearest(int exponent_bits, int mantissa_bits) {
  const T infinity = std::numeric_limits<T>::infinity();
  const unsigned sign = 1U << (8 * sizeof(typename F::Code) - 1);
  for (unsigned c = 0; c <= F::kLargest; ++c) {
    const auto code = static_cast<typename F::Code>(c), minus = static_cast<typename F::Code>(c | sign);
    const auto value = static_cast<T>(by_definition(c, exponent_bits, mantissa_bits));
    ASSERT_EQ((small_float_value<F, T>(code)), value) << c;
    ASSERT_EQ((small_float_value<F, T>(minus)), -value) << c;
    ASSERT_EQ(small_float_bits<F>(value), code) << c;
    ASSERT_EQ(small_float_bits<F>(-value), minus) << c;
    if (c == F::kLargest) break;
    const T next = static_cast<T>(by_definition(c + 1, exponent_bits, mantissa_bits)), middle = value + (next - value) / 2;
    ASSERT_EQ(small_float_bits<F>(middle), c + (c & 1)) << c;
    ASSERT_EQ(small_float_bits<F>(std::nextafter(middle, T(0))), c) << c;
    ASSERT_EQ(small_float_bits<F>(std::nextafter(middle, infinity)), c + 1) << c;
  }
  ASSERT_TRUE(is_small_nan<F>(small_float_bits<F>(std::numeric_limits<T>::quiet_NaN())));
  ASSERT_TRUE(std::isnan(small_float_value<F, T>(small_float_bits<F>(std::numeric_limits<T>::quiet_NaN()))));
}

template <class T>
class LevelFormatTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(LevelFormatTest, Precisions);

TYPED_TEST(LevelFormatTest, SmallFloatsAreNearestAndExact) {
  using T = TypeParam;
  expect_nearest<Binary16, T>(5, 10);
  expect_nearest<Bfloat16, T>(8, 7);
  expect_nearest<Fp8E5m2, T>(5, 2);
  expect_nearest<Fp8E4m3, T>(4, 3);
}

// Table 2 of OFP8: largest and smallest numbers, and what lies beyond.
TYPED_TEST(LevelFormatTest, TheNumbersOfTheEightBitFloats) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  EXPECT_EQ((small_float_value<Fp8E4m3, T>(0x7e)), T(448));
  EXPECT_EQ((small_float_value<Fp8E4m3, T>(0x08)), T(0x1p-6));
  EXPECT_EQ((small_float_value<Fp8E4m3, T>(0x01)), T(0x1p-9));
  EXPECT_EQ((small_float_value<Fp8E5m2, T>(0x7b)), T(57344));
  EXPECT_EQ((small_float_value<Fp8E5m2, T>(0x04)), T(0x1p-14));
  EXPECT_EQ((small_float_value<Fp8E5m2, T>(0x01)), T(0x1p-16));
  EXPECT_EQ((small_float_value<Fp8E5m2, T>(0xfc)), -infinity);
  EXPECT_TRUE(std::isnan(small_float_value<Fp8E4m3, T>(0xff)));
  for (const unsigned nan : {0x7dU, 0x7eU, 0x7fU, 0xfdU}) EXPECT_TRUE(is_small_nan<Fp8E5m2>(static_cast<std::uint8_t>(nan)));
  EXPECT_FALSE(is_small_nan<Fp8E5m2>(0x7c));
  EXPECT_FALSE(is_small_nan<Fp8E4m3>(0x7e));
  EXPECT_TRUE(is_small_nan<Fp8E4m3>(0x7f));
  for (const T x : {T(449), T(1e6), std::numeric_limits<T>::max(), infinity}) {
    EXPECT_EQ(small_float_bits<Fp8E4m3>(x), 0x7e);
    EXPECT_EQ(small_float_bits<Fp8E4m3>(-x), 0xfe);
  }
  EXPECT_EQ(small_float_bits<Fp8E5m2>(infinity), 0x7b);
  EXPECT_EQ(small_float_bits<Fp8E4m3>(std::numeric_limits<T>::denorm_min()), 0);
  EXPECT_EQ(small_float_bits<Bfloat16>(std::numeric_limits<T>::max()), 0x7f80);
  EXPECT_EQ(round_to_bfloat16(infinity), infinity);
  EXPECT_EQ(fp8_level(LevelMap::fp8_e4m3, T(-448)), static_cast<std::int8_t>(0xfe));
  EXPECT_EQ(fp8_value<T>(LevelMap::fp8_e5m2, fp8_level(LevelMap::fp8_e5m2, T(-96))), T(-96));
}

// 1 + 2^-8 is the middle of two bfloat16 numbers; as a float a double just below it would be the middle itself.
TEST(LevelFormatTest, DoubleIsRoundedToBfloat16Once) {
  const double x = 1 + 3 * 0x1p-8 - 0x1p-40;
  EXPECT_EQ(round_to_bfloat16(x), 1 + 0x1p-7);
  EXPECT_EQ(round_to_bfloat16(static_cast<float>(x)), 1 + 0x1p-6F);
}

// 2^i equal parts of 0.1 .. 1 for each power of ten, all numbers ascending, 0 in the middle.
TEST(LevelFormatTest, TheDynamicTree) {
  EXPECT_EQ(dynamic_tree(0), 0);
  EXPECT_NEAR(dynamic_tree(1), 0.55e-6, 1e-20);
  EXPECT_NEAR(dynamic_tree(2), 0.325e-5, 1e-20);
  EXPECT_NEAR(dynamic_tree(3), 0.775e-5, 1e-20);
  EXPECT_NEAR(dynamic_tree(64), 0.1 + 0.9 / 128, 1e-15);
  EXPECT_NEAR(dynamic_tree(127), 0.99296875, 1e-15);
  for (std::int32_t level = -127; level < 127; ++level) {
    EXPECT_LT(dynamic_tree(level), dynamic_tree(level + 1)) << level;
    EXPECT_EQ(dynamic_tree(level), -dynamic_tree(-level)) << level;
  }
}

TYPED_TEST(LevelFormatTest, ScalesOfASegment) {
  using T = TypeParam;
  const T two[] = {T(-0.25), T(3)}, table[] = {T(5), T(6), T(7)}, scale[] = {T(2)};
  EXPECT_EQ(scales_per_segment(two_value_format()), 2);
  EXPECT_EQ(scales_per_segment(table_format(3)), 3);
  EXPECT_EQ(scales_per_segment(dynamic_tree_format()), 1);
  EXPECT_EQ(scales_per_segment(fp8_format(LevelMap::fp8_e4m3, false)), 0);
  EXPECT_EQ(level_value(two_value_format(), 0, two), T(-0.25));
  EXPECT_EQ(level_value(two_value_format(), 1, two), T(3));
  EXPECT_EQ(level_value(table_format(3, -1), -1, table), T(5));
  EXPECT_EQ(level_value(table_format(3, -1), 1, table), T(7));
  EXPECT_EQ(level_value(dynamic_tree_format(), -127, scale), static_cast<T>(dynamic_tree(-127)) * T(2));
  EXPECT_EQ(level_value(fp8_format(LevelMap::fp8_e4m3), 0x38, scale), T(2));
  EXPECT_EQ(level_value(fp8_format(LevelMap::fp8_e5m2, false), 0x3c, T(1)), T(1));
  EXPECT_EQ(table_format(1).bits, 1);
  EXPECT_EQ(table_format(256).bits, 8);
  EXPECT_EQ(table_format(257).bits, 9);
}

}  // namespace
}  // namespace fl
