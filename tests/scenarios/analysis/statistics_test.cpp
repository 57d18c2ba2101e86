#include "scenarios/analysis/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fl {
namespace {

using Values = std::vector<double>;

// Extra hours of sleep of ten patients under two drugs (Cushny and Peebles 1905; Student's own example of 1908).
const Values kFirstDrug = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const Values kSecondDrug = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

// Two-sided 95% and 99% points of Student's t from printed tables.
TEST(Statistics, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(1), 12.7062047362, 1e-8);
  EXPECT_NEAR(student_quantile(2), 4.3026527297, 1e-8);
  EXPECT_NEAR(student_quantile(3), 3.1824463053, 1e-8);
  EXPECT_NEAR(student_quantile(4), 2.7764451052, 1e-8);
  EXPECT_NEAR(student_quantile(9), 2.2621571628, 1e-8);
  EXPECT_NEAR(student_quantile(30), 2.0422724563, 1e-8);
  EXPECT_NEAR(student_quantile(4, 0.99), 4.6040948714, 1e-8);
  EXPECT_NEAR(student_quantile(1'000'000), 1.9599663568, 1e-8);  // scipy 1.10: stats.t.ppf(0.975, 1e6)
}

TEST(Statistics, QuantilesFallWithTheDegrees) {
  for (int degrees = 1; degrees < 300; ++degrees) EXPECT_GT(student_quantile(degrees), student_quantile(degrees + 1));
}

TEST(Statistics, MeanAndHalfWidth) {
  const MeanAndHalfWidth result = mean_and_half_width(Values{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(result.mean, 3);
  EXPECT_NEAR(result.half_width, 2.7764451052 * std::sqrt(2.5 / 5), 1e-8);
  EXPECT_EQ(mean_and_half_width(Values{7, 7, 7}).half_width, 0);
}

TEST(Statistics, TooFewValues) {
  EXPECT_EQ(mean_and_half_width(Values{7}).mean, 7);
  EXPECT_TRUE(std::isnan(mean_and_half_width(Values{7}).half_width));
  EXPECT_TRUE(std::isnan(mean_and_half_width(Values{}).mean));
  EXPECT_TRUE(std::isnan(mean_and_half_width(Values{1, NAN, 2}).mean));
}

// Two-sided p-values of scipy 1.10: 2 * stats.t.sf(t, df).
TEST(Statistics, PValues) {
  EXPECT_NEAR(student_p_value(4, 2), 0.1161165235168155, 1e-13);
  EXPECT_NEAR(student_p_value(3, -5), 0.015392438073302296, 1e-13);
  EXPECT_NEAR(student_p_value(1, 1), 0.5, 1e-13);
  EXPECT_EQ(student_p_value(7, 0), 1);
  EXPECT_NEAR(student_p_value(9, 1e9), 0, 1e-15);
}

TEST(Statistics, NormalQuantiles) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.0001), -3.7190164854556804, 1e-12);
  EXPECT_NEAR(normal_probability(normal_quantile(0.3)), 0.3, 1e-14);
}

// scipy 1.10: ttest_rel gives p = 0.00283289; the t interval is (0.70011, 2.45989), the BCa interval (1.06, 2.66).
TEST(Statistics, PairedDifferenceOfTheSleepData) {
  const PairedDifference result = paired_difference(kSecondDrug, kFirstDrug);
  EXPECT_NEAR(result.difference.mean, 1.58, 1e-12);
  EXPECT_NEAR(result.difference.student.low, 0.7001142367452713, 1e-9);
  EXPECT_NEAR(result.difference.student.high, 2.4598857632547286, 1e-9);
  EXPECT_NEAR(result.p_value, 0.00283289019738427, 1e-10);
  EXPECT_NEAR(result.difference.bootstrap.low, 1.06, 0.03);
  EXPECT_NEAR(result.difference.bootstrap.high, 2.66, 0.06);
  EXPECT_TRUE(result.is_claim());
  EXPECT_TRUE(result.has_spread);
  EXPECT_NEAR(result.variance_ratio, 0.20984495885090776, 1e-12);  // numpy.var(..., ddof=1)
}

TEST(Statistics, TheVarianceRatioIsUnknownForTooFewOrEqualValues) {
  EXPECT_TRUE(std::isnan(paired_difference(Values{1}, Values{2}).variance_ratio));
  EXPECT_TRUE(std::isnan(paired_difference(Values{1, 1}, Values{2, 2}).variance_ratio));
  EXPECT_DOUBLE_EQ(paired_difference(Values{1, 2, 4}, Values{5, 5, 5}).variance_ratio, 1);
}

// Skewed values, where BCa and percentile intervals part: scipy gives (2.0, 16.6) for BCa and (1.8, 13.2) for percentile.
TEST(Statistics, BootstrapIntervalIsBiasCorrectedAndAccelerated) {
  const Interval interval = bootstrap_interval(Values{1, 2, 3, 4, 20});
  EXPECT_NEAR(interval.low, 2.0, 0.21);
  EXPECT_NEAR(interval.high, 16.6, 0.41);
}

// Values that differ by a constant, as a loss and its gap do, have intervals that differ by it, however the sums are rounded. The
// accuracies are multiples of 1/10000, so that resamples of different values have the same mean.
TEST(Statistics, BootstrapIntervalMovesWithTheValues) {
  for (const Values& values : {Values{0.0311, 0.0527, 0.0418, 0.0377, 0.0471}, Values{0.0101, 0.0103, 0.0105, 0.0107, 0.0109}}) {
    const Interval interval = bootstrap_interval(values);
    for (const double shift : {0.1, 0.3, 0.693147, 17.0, -2.9}) {
      Values moved;
      for (const double value : values) moved.push_back((value + shift) - shift);
      EXPECT_NEAR(bootstrap_interval(moved).low, interval.low, 1e-12) << shift;
      EXPECT_NEAR(bootstrap_interval(moved).high, interval.high, 1e-12) << shift;
    }
  }
}

TEST(Statistics, BootstrapIsDeterministicAndKnowsItsLimits) {
  const Values values = {0.3, 0.1, 0.4, 0.15};
  const Interval one = bootstrap_interval(values), two = bootstrap_interval(values);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  EXPECT_LT(one.low, one.high);
  EXPECT_EQ(bootstrap_interval(Values{7, 7, 7}).low, 7);
  EXPECT_FALSE(bootstrap_interval(Values{7}).is_known());
  EXPECT_FALSE(bootstrap_interval(Values{7, NAN}).is_known());
}

TEST(Statistics, NoClaimWhereAnIntervalContainsZeroOrThereIsTooLittle) {
  EXPECT_FALSE(paired_difference(Values{1, -1, 2, -1.5}, Values{0, 0, 0, 0}).is_claim());
  EXPECT_FALSE(paired_difference(Values{5}, Values{1}).is_claim());
  EXPECT_EQ(paired_difference(Values{5}, Values{1}).p_value, 1);
  const PairedDifference equal = paired_difference(Values{3, 4}, Values{3, 4});
  EXPECT_EQ(equal.p_value, 1);
  EXPECT_FALSE(equal.is_claim());
  // Differences without spread, up to rounding, test nothing.
  for (const double rounding : {0.0, 1e-15}) {
    const PairedDifference constant = paired_difference(Values{4, 5 + rounding, 9}, Values{3, 4, 8});
    EXPECT_EQ(constant.p_value, 1);
    EXPECT_FALSE(constant.has_spread);
    EXPECT_FALSE(constant.is_claim());
  }
  PairedDifference corrected = paired_difference(kSecondDrug, kFirstDrug);
  corrected.p_holm = 0.06;
  EXPECT_FALSE(corrected.is_claim());
}

// By hand: sorted 0.005, 0.01, 0.03, 0.04 are multiplied by 4, 3, 2, 1; the last, 0.04, may not fall below 0.06.
TEST(Statistics, HolmsCorrection) {
  const Values adjusted = holm_adjusted(Values{0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(adjusted[0], 0.03, 1e-15);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[3], 0.02, 1e-15);
  EXPECT_EQ(holm_adjusted(Values{0.7, 0.9}), (Values{1, 1}));
  EXPECT_TRUE(holm_adjusted(Values{}).empty());
}

}  // namespace
}  // namespace fl
