#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

std::vector<std::pair<std::string, Value>> settings(double alpha, std::int64_t bits, const char* rounding) {
  return {{"alpha", Value{alpha}}, {"bits", Value{bits}}, {"rounding", Value{std::string(rounding)}}};
}

TEST(ScaledInteger, NearestWithTiesToEven) {
  const auto op = make_operator<double>("scaled_integer", settings(4, 16, "nearest"));
  const Sent<double> sent(*op, {0.125, 0.375, -0.125, 1.0, 0.26, -7.2}, whole_vector(6));
  EXPECT_EQ(sent.c, (std::vector<double>{0.0, 0.5, 0.0, 1.0, 0.25, -7.25}));
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(6)).kappa, std::sqrt(6.0) / 8);
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(6)), 6 * 16);
}
TEST(ScaledInteger, SaturatesAtTheWidth) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const auto& [bits, largest] : {std::pair<std::int64_t, double>{8, 127}, {16, 32767}, {32, 2147483647}}) {
    for (const char* rounding : {"nearest", "stochastic"}) {
      const auto op = make_operator<double>("scaled_integer", settings(1, bits, rounding));
      const Sent<double> sent(*op, {largest, largest + 1, -largest - 1, 1e300, -1e300, kInf, -kInf}, whole_vector(7));
      EXPECT_EQ(sent.c, (std::vector<double>{largest, largest, -largest, largest, -largest, largest, -largest})) << bits << rounding;
    }
  }
}
TEST(ScaledInteger, StochasticRoundingIsUnbiased) {
  const auto op = make_operator<double>("scaled_integer", settings(1, 32, "stochastic"));
  const std::vector<double> x(4000, -2.3);
  const Sent<double> sent(*op, x, whole_vector(x.size()));
  double mean = 0;
  for (const double c : sent.c) {
    ASSERT_TRUE(c == -2 || c == -3);
    mean += c / 4000;
  }
  EXPECT_NEAR(mean, -2.3, 6 * std::sqrt(0.21 / 4000));
}
// The integers of several clients may be added before decoding.
TEST(ScaledInteger, SumOfLevelsIsLevelOfTheSum) {
  const auto op = make_operator<double>("scaled_integer", settings(1024, 32, "nearest"));
  const std::vector<double> x{0.3, -1.7, 2.9}, y{-0.9, 0.2, 5.1};
  const Sent<double> a(*op, x, whole_vector(3)), b(*op, y, whole_vector(3));
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ((a.message.level(j) + b.message.level(j)) / 1024.0, a.c[j] + b.c[j]);
  EXPECT_TRUE(op->contract(whole_vector(3)).linear);
}
TEST(ScaledInteger, OtherWidthsAreRefused) {
  EXPECT_THROW((void)make_operator<double>("scaled_integer", settings(1, 12, "nearest")), ConfigError);
  EXPECT_THROW((void)make_operator<double>("scaled_integer", settings(0, 8, "nearest")), ConfigError);
}

}  // namespace
}  // namespace fl::test
