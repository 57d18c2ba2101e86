// Tests which labels of an axis are said to change nothing.
#include "scenarios/analysis/idle_axes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RunRecord run(const std::vector<std::pair<std::string, std::string>>& axes, std::uint64_t seed, const std::string& checksum) {
  RunRecord record{.run = "run", .name = "made", .seed = seed, .status = RunStatus::done};
  for (const auto& [key, label] : axes) record.axes.push_back({key, label});
  record.checksum = checksum;
  return record;
}

std::vector<std::string> idle_in(const std::vector<RunRecord>& records) { return idle_axes(group_by_axes(records)); }

TEST(IdleAxes, LabelsWhoseRunsAreEqualForEverySeedAreNamedTogether) {
  std::vector<RunRecord> records;
  for (const std::uint64_t seed : {1u, 2u})
    for (const char* steps : {"1", "5", "20"}) records.push_back(run({{"local.steps", steps}}, seed, "model" + std::to_string(seed)));
  EXPECT_THAT(idle_in(records), ElementsAre("local.steps: 1, 5 and 20 give the same runs, bit for bit, for every seed (4 pairs): between "
                                            "them nothing was compared"));
}

TEST(IdleAxes, OneSeedThatDiffersIsEnough) {
  EXPECT_THAT(idle_in({run({{"a", "x"}}, 1, "same"), run({{"a", "y"}}, 1, "same"), run({{"a", "x"}}, 2, "p"), run({{"a", "y"}}, 2, "q")}),
              IsEmpty());
}

TEST(IdleAxes, AnAxisThatChangesRunsInOneCombinationOfTheOthersIsNotIdle) {
  std::vector<RunRecord> records;
  for (const char* method : {"none", "top"})
    for (const char* steps : {"1", "5"})
      records.push_back(run({{"method", method}, {"steps", steps}}, 1, std::string(method) == "none" ? "same" : steps));
  EXPECT_THAT(idle_in(records), IsEmpty()) << "steps matter to top";
  records.back().checksum = "1";
  EXPECT_THAT(idle_in(records),
              ElementsAre("steps: 1 and 5 give the same runs, bit for bit, for every seed (2 pairs): between them nothing "
                          "was compared"));
}

TEST(IdleAxes, LabelsWithoutASeedInCommonAreNotCompared) {
  EXPECT_THAT(idle_in({run({{"a", "x"}}, 1, "same"), run({{"a", "y"}}, 2, "same")}), IsEmpty());
}

TEST(IdleAxes, RunsThatHaveNotFinishedAreTheSameAsNone) {
  std::vector<RunRecord> records = {run({{"a", "x"}}, 1, "same"), run({{"a", "y"}}, 1, "same")};
  records[1].status = RunStatus::interrupted;
  EXPECT_THAT(idle_in(records), IsEmpty());
}

TEST(IdleAxes, OtherLabelsOfTheAxisMayDiffer) {
  EXPECT_THAT(idle_in({run({{"a", "x"}}, 1, "p"), run({{"a", "y"}}, 1, "q"), run({{"a", "z"}}, 1, "p")}),
              ElementsAre("a: x and z give the same runs, bit for bit, for every seed (1 pair): between them nothing was compared"));
}

}  // namespace
}  // namespace fl
