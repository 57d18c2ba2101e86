#include "apps/fedbits/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fl {
namespace {

// Two-sided 95% and 99% points of Student's t from printed tables.
TEST(Statistics, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(1), 12.7062047362, 1e-8);
  EXPECT_NEAR(student_quantile(2), 4.3026527297, 1e-8);
  EXPECT_NEAR(student_quantile(3), 3.1824463053, 1e-8);
  EXPECT_NEAR(student_quantile(4), 2.7764451052, 1e-8);
  EXPECT_NEAR(student_quantile(9), 2.2621571628, 1e-8);
  EXPECT_NEAR(student_quantile(30), 2.0422724563, 1e-8);
  EXPECT_NEAR(student_quantile(4, 0.99), 4.6040948714, 1e-8);
  EXPECT_NEAR(student_quantile(1'000'000), 1.9599639845, 5e-5);
}

TEST(Statistics, QuantilesFallWithTheDegrees) {
  for (int degrees = 1; degrees < 300; ++degrees) EXPECT_GT(student_quantile(degrees), student_quantile(degrees + 1));
}

TEST(Statistics, MeanAndHalfWidth) {
  const MeanAndHalfWidth result = mean_and_half_width({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(result.mean, 3);
  EXPECT_NEAR(result.half_width, 2.7764451052 * std::sqrt(2.5 / 5), 1e-8);
  EXPECT_EQ(mean_and_half_width({7, 7, 7}).half_width, 0);
}

TEST(Statistics, TooFewValues) {
  EXPECT_EQ(mean_and_half_width({7}).mean, 7);
  EXPECT_TRUE(std::isnan(mean_and_half_width({7}).half_width));
  EXPECT_TRUE(std::isnan(mean_and_half_width({}).mean));
  EXPECT_TRUE(std::isnan(mean_and_half_width({1, NAN, 2}).mean));
}

}  // namespace
}  // namespace fl
