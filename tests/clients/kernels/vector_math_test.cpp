#include "clients/kernels/vector_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fl::kernels {
namespace {

double one_exp(double x) { return exp(broadcast(x))[0]; }
double one_log1p(double t) { return log1p_unit(broadcast(t))[kLanes - 1]; }

// |value - exact| in units of the last place of `exact`.
double ulps(double value, long double exact) {
  const double nearest = static_cast<double>(exact);
  const double ulp = std::nextafter(std::abs(nearest), std::numeric_limits<double>::infinity()) - std::abs(nearest);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact)) / ulp;
}

TEST(VectorMath, ExpIsBelowTwoUlp) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    const double x = -708 + 1417.0 * i / 400000 + 1e-7 * i;
    if (x < 709.7) worst = std::max(worst, ulps(one_exp(x), std::exp(static_cast<long double>(x))));
  }
  for (int i = -50000; i <= 50000; ++i) worst = std::max(worst, ulps(one_exp(i * 1e-5), std::exp(static_cast<long double>(i * 1e-5))));
  EXPECT_LT(worst, 2);
}

TEST(VectorMath, ExpAtTheEdges) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(one_exp(0), 1);
  EXPECT_EQ(one_exp(-0.0), 1);
  EXPECT_EQ(one_exp(infinity), infinity);
  EXPECT_EQ(one_exp(-infinity), 0);
  EXPECT_EQ(one_exp(710), infinity);
  EXPECT_EQ(one_exp(1e300), infinity);
  EXPECT_EQ(one_exp(-1e300), 0);
  EXPECT_TRUE(std::isnan(one_exp(std::nan(""))));
  EXPECT_NEAR(one_exp(-740) / std::exp(-740.0), 1, 1e-2) << "gradual underflow";
  EXPECT_LT(ulps(one_exp(709.78), std::exp(static_cast<long double>(709.78))), 2);
}

TEST(VectorMath, Log1pIsBelowTwoUlpOnTheUnitInterval) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    const double t = static_cast<double>(i) / 400000;
    if (i > 0) worst = std::max(worst, ulps(one_log1p(t), std::log1p(static_cast<long double>(t))));
  }
  for (double t = 1; t > 1e-300; t *= 0.993) worst = std::max(worst, ulps(one_log1p(t), std::log1p(static_cast<long double>(t))));
  EXPECT_LT(worst, 2);
  EXPECT_EQ(one_log1p(0), 0);
  EXPECT_TRUE(std::isnan(one_log1p(std::nan(""))));
}

TEST(VectorMath, LanesDoNotMix) {
  VecD x{};
  for (int i = 0; i < kLanes; ++i) x[i] = -0.7 * i + 0.1;
  const VecD y = exp(x);
  double total = 0;
  for (int i = 0; i < kLanes; ++i) {
    EXPECT_EQ(y[i], one_exp(x[i]));
    total += x[i];
  }
  EXPECT_NEAR(sum(x), total, 1e-12);
}

}  // namespace
}  // namespace fl::kernels
