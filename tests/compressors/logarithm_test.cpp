// Compares the portable logarithm with the C library's.
#include "compressors/support/logarithm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fl_core/random/random.hpp"

namespace fl {
namespace {

double units_in_the_last_place(double x) {
  const double exact = std::log(x), unit = std::nextafter(std::fabs(exact), HUGE_VAL) - std::fabs(exact);
  return std::fabs(portable_log(x) - exact) / unit;
}

TEST(PortableLog, IsWithinTwoUnitsInTheLastPlace) {
  RandomSequence random(11, Purpose::synthetic_data);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double magnitude = std::exp(300 * random.normal() / 3), near_one = 1 + 0.01 * random.normal();
    for (const double x : {magnitude, near_one, std::numeric_limits<double>::epsilon() + std::fabs(random.normal())})
      if (x > 0 && x < HUGE_VAL && x != 1) worst = std::max(worst, units_in_the_last_place(x));
  }
  EXPECT_LE(worst, 2);
}

TEST(PortableLog, KnowsTheEnds) {
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_log(0), -HUGE_VAL);
  EXPECT_EQ(portable_log(HUGE_VAL), HUGE_VAL);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_TRUE(std::isnan(portable_log(NAN)));
  EXPECT_NEAR(portable_log(std::numeric_limits<double>::denorm_min()), -744.4400719213812, 1e-12);
  EXPECT_NEAR(portable_log(std::numeric_limits<double>::max()), 709.782712893384, 1e-12);
  EXPECT_DOUBLE_EQ(portable_log(2), 0.6931471805599453);
  EXPECT_DOUBLE_EQ(portable_log(10), 2.302585092994046);
}

}  // namespace
}  // namespace fl
