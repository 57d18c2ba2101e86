#include "scenarios/file/bit_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fl {
namespace {

// Tries values until the search ends; returns how many.
template <class Bits>
int search_all(BitSearch& search, const Bits& bits) {
  int steps = 0;
  for (; search.goes_on(); ++steps) search.observe({bits(search.value())});
  return steps;
}

TEST(BitSearch, FindsAThresholdWithinTwoPercent) {
  BitSearch search({1e6});
  const int steps = search_all(search, [](double threshold) { return 1e6 / (0.3 + threshold * 7); });  // at 0.1
  EXPECT_TRUE(search.matched().is_matched());
  EXPECT_LE(std::fabs(search.matched().deviation), kMatchTolerance);
  EXPECT_NEAR(search.value(), 0.1, 0.01);
  EXPECT_LE(steps, 10);
}

TEST(BitSearch, FindsAThresholdFarAway) {
  for (const double scale : {1e-20, 1e15}) {
    BitSearch search({1e6});
    const int steps = search_all(search, [scale](double threshold) { return 2e6 / (1 + threshold / scale); });
    EXPECT_TRUE(search.matched().is_matched()) << scale;
    EXPECT_LE(steps, 25) << scale;
  }
}

// A format that changes at 0.05: 900 bits above it, 1,200 below.
TEST(BitSearch, StopsAtALeapAndKeepsTheNearest) {
  BitSearch search({1000});
  const int steps = search_all(search, [](double threshold) { return threshold > 0.05 ? 900.0 : 1200.0; });
  EXPECT_FALSE(search.matched().is_matched());
  EXPECT_NEAR(search.matched().deviation, -0.1, 1e-12);
  EXPECT_GT(search.value(), 0.05);
  EXPECT_LE(steps, 20) << "the resolution ends it, not the number of steps";
}

// Silence costs a header: no threshold sends fewer than 700 bits.
TEST(BitSearch, StopsWhereBitsNeverCrossTheTarget) {
  BitSearch search({500});
  const int steps = search_all(search, [](double threshold) { return std::max(700.0, 900 - 1e5 * threshold); });
  EXPECT_FALSE(search.matched().is_matched());
  EXPECT_NEAR(search.matched().deviation, 0.4, 1e-12);
  EXPECT_LE(steps, 15);
  EXPECT_EQ(search.value(), 0.01) << "the first of those that are as near";
}

// Two standard errors of the mean difference: differences -30, 0, 30 + 35 have a mean of 35/3 and a deviation of 48.6.
TEST(BitSearch, TheToleranceIsThatOfTheSeeds) {
  BitSearch search({1000, 1000, 1000});
  search.observe({970, 1000, 1065});
  EXPECT_NEAR(search.matched().deviation, 35.0 / 3000, 1e-12);
  EXPECT_NEAR(search.matched().tolerance, 2 * 48.5626743 / std::sqrt(3.0) / 1000, 1e-6);
  BitSearch same({1000, 2000});
  same.observe({1010, 2010});
  EXPECT_EQ(same.matched().tolerance, kMatchTolerance) << "differences that agree have no error";
}

}  // namespace
}  // namespace fl
