#include "scenarios/analysis/survival.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Weeks of remission of the 21 patients under 6-mercaptopurine (Freireich et al., Blood 21, 1963): published median 23 weeks, with a
// log-log interval from 13 weeks on.
TEST(Survival, MedianAndIntervalOfThePublishedRemissions) {
  std::vector<ReachTime> patients;
  for (const double weeks : {6, 6, 6, 7, 10, 13, 16, 22, 23}) patients.push_back({weeks, true});
  for (const double weeks : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35}) patients.push_back({weeks, false});
  const ReachSummary summary = reach_summary(patients);
  EXPECT_EQ(summary.count, 21u);
  EXPECT_EQ(summary.reached, 9u);
  EXPECT_EQ(summary.median, 23);
  EXPECT_EQ(summary.interval.low, 13);
  EXPECT_EQ(summary.interval.high, kInfinity);
}

// By hand: S is 4/5, then 3/5 at 20, 3/5 * 2/3 = 2/5 at 40 (one is censored at 30).
TEST(Survival, CensoredRunsMoveTheMedian) {
  const ReachSummary censored = reach_summary(std::vector<ReachTime>{{10, true}, {20, true}, {25, false}, {40, true}, {50, true}});
  EXPECT_EQ(censored.median, 40);  // a mean over those that arrived would be 30
  const ReachSummary all = reach_summary(std::vector<ReachTime>{{10, true}, {20, true}, {25, true}, {40, true}, {50, true}});
  EXPECT_EQ(all.median, 25);
  EXPECT_EQ(all.interval.low, 10);
  EXPECT_EQ(all.interval.high, 50);
}

TEST(Survival, ARunThatDivergedNeverArrives) {
  const ReachSummary summary = reach_summary(std::vector<ReachTime>{{10, true}, {kInfinity, false}, {kInfinity, false}});
  EXPECT_EQ(summary.reached, 1u);
  EXPECT_EQ(summary.median, kInfinity);
}

TEST(Survival, NobodyArrivesOrNobodyIsThere) {
  EXPECT_EQ(reach_summary(std::vector<ReachTime>{{10, false}, {20, false}}).median, kInfinity);
  EXPECT_TRUE(std::isnan(reach_summary({}).median));
  const ReachSummary one = reach_summary(std::vector<ReachTime>{{10, true}});
  EXPECT_EQ(one.median, 10);
  EXPECT_FALSE(one.interval.is_known());
}

}  // namespace
}  // namespace fl
