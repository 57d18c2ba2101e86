// Tests the sentences that plans and reports say of data and of step sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/results/data_text.hpp"
#include "scenarios/results/step_theorems.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(DataText, CountsWhatThereIs) {
  EXPECT_EQ(data_text("mushrooms", 8124, 112, 2, 0), "mushrooms: 8,124 rows, 112 features, 2 classes");
  EXPECT_EQ(data_text("", 1, 1, 0, 1234567), "1 row, 1 feature; 1,234,567 test rows");
}

RunRecord run_with(const std::string& rule, const std::string& promise) {
  RunRecord record;
  record.scenario = "name = \"x\"\n\n[local]\nkind = \"gradient\"\nlearning_rate = " + rule + "\n\n[server]\nlearning_rate = \"theory\"\n";
  record.constants = {{promise, 1}};
  return record;
}

TEST(StepTheorems, WarnWhereClassesHaveStepsFromDifferentBounds) {
  EXPECT_THAT(step_theorems_of({run_with("0.1", "promised_delta"), run_with("\"1/L\"", "promised_kappa")}).sentences(), IsEmpty());
  EXPECT_THAT(step_theorems_of({run_with("\"tight\"", "promised_delta"), run_with("\"tight\"", "promised_delta")}).sentences(),
              ElementsAre(HasSubstr("tight step of EF and EF21, Thomsen")));
  EXPECT_THAT(
      step_theorems_of({run_with("\"0.5*theory\"", "promised_delta"), run_with("\"theory\"", "promised_kappa")}).sentences(),
      ElementsAre(HasSubstr("the feedback's own theorem"), HasSubstr("says nothing about the operators unless both step sizes are tuned")));
}

}  // namespace
}  // namespace fl
