// Tests lambda for k and k for lambda: the paper's table of thresholds, and the two directions against each other.
#include "scenarios/analysis/equivalent_threshold.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fl {
namespace {

// k of 0.1% of a network's parameters and the threshold that the paper's scripts use for it.
TEST(EquivalentThreshold, ThePapersNetworks) {
  EXPECT_NEAR(rule_lambda(11174), 4.73e-3, 5e-6);  // ResNet-18
  EXPECT_NEAR(rule_lambda(6166), 6.37e-3, 5e-6);   // GoogLeNet
  EXPECT_NEAR(rule_lambda(6258), 6.32e-3, 5e-6);
  EXPECT_NEAR(rule_k(rule_lambda(11174)), 11174, 1e-6);
}

// madelon: epsilon = 5e-12 at gamma = 3.3564e-8 in 500 dimensions is a threshold of 1e-7 on steps, lambda = 2.98.
TEST(EquivalentThreshold, ThePapersLogisticRegression) {
  const double lambda = epsilon_lambda(5e-12, 500, 3.3564e-8);
  EXPECT_NEAR(lambda, 2.98, 0.005);
  EXPECT_NEAR(lambda * 3.3564e-8, 1e-7, 1e-12);
  EXPECT_NEAR(epsilon_of(lambda, 500, 3.3564e-8) / 5e-12, 1, 1e-12);
}

// Where the bounds of theorems 6 and 7 are alike: 2 L^2 d lambda^2 gamma^2 = 8 (1-delta) gamma^2 L^2 / delta ((2/delta + M) zeta^2 +
// sigma^2).
TEST(EquivalentThreshold, BoundsAreEqual) {
  for (const NoiseAndSpread& noise : {NoiseAndSpread{0, 1, 0}, NoiseAndSpread{2, 0.1, 3}, NoiseAndSpread{0, 0, 0.5}})
    for (const double k : {1.0, 10.0, 99.0}) {
      constexpr double d = 100;
      const double lambda = equal_bounds_lambda(k, d, noise), delta = k / d;
      const double top_k = 8 * (1 - delta) / delta * ((2 / delta + noise.M) * noise.zeta * noise.zeta + noise.sigma * noise.sigma);
      EXPECT_NEAR(2 * d * lambda * lambda / top_k, 1, 1e-12);
      EXPECT_NEAR(equal_bounds_k(lambda, d, noise) / k, 1, 1e-9);
    }
  EXPECT_EQ(equal_bounds_lambda(100, 100, {}), 0) << "Top-d loses nothing";
  EXPECT_NEAR(equal_bounds_lambda(1000, 1e9, {}) / rule_lambda(1000), 1, 1e-6) << "few entries of many, sigma = 1/4";
}

}  // namespace
}  // namespace fl
