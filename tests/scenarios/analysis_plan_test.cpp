#include "scenarios/file/analysis_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fl_core/config/error.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kPlanText = "contrasts = [\"a:b\"]\nmargins = [\"1.1x\"]\n";
constexpr const char* kPlanHash = "fc05b441060acd83f2df41037a31e469c9c81f6f3a2b851e609bf1ce4f564b36";  // sha256sum

std::string plan_refusal(const std::string& text) {
  try {
    (void)parse_plan(text, "plan.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AnalysisPlan, IsReadWithItsHash) {
  const AnalysisPlan plan = parse_plan(
      kPlanText +
          "classes = ['x', 'y']\nwindow = 0.3\nheterogeneity = 'order'\nlevels = ['1', '0']\nslope_test = 'sign-flip'\nchance = 0\n"
          "between = ['feedback.up=x:y']\n",
      "folder/plan.toml");
  EXPECT_EQ(plan.file, "plan.toml");
  EXPECT_THAT(plan.contrasts, testing::ElementsAre("a:b"));
  EXPECT_THAT(plan.classes, testing::ElementsAre("x", "y"));
  EXPECT_THAT(plan.between, testing::ElementsAre("feedback.up=x:y"));
  EXPECT_EQ(plan.window, 0.3);
  EXPECT_EQ(plan.chance, 0);
  EXPECT_EQ(parse_plan(kPlanText, "plan.toml").sha256, kPlanHash);
}

TEST(AnalysisPlan, ProblemsHavePlaceAndWayOut) {
  EXPECT_THAT(plan_refusal("contrast = ['a:b']\n"), HasSubstr("plan.toml:1:1"));
  EXPECT_THAT(plan_refusal("contrast = ['a:b']\n"), HasSubstr("did you mean \"contrasts\"?"));
  EXPECT_THAT(plan_refusal("window = 0.2\n"), HasSubstr("contrasts: is required"));
  EXPECT_THAT(plan_refusal("contrasts = ['ab']\n"), HasSubstr("\"ab\" must be two methods as A:B"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b', 'a:b']\n"), HasSubstr("twice"));
  EXPECT_THAT(plan_refusal("contrasts = 'a:b'\n"), HasSubstr("contrasts: must be a list"));
  for (const char* between : {"ef14:ef21", "feedback.up=ef14", "=a:b", "k=:b", "k=a:"})
    EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nbetween = ['" + std::string(between) + "']\n"), HasSubstr("KEY=A:B")) << between;
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nclasses = ['x']\n"), HasSubstr("classes: must be two names, has 1"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nmargins = ['1.1']\n"), HasSubstr("margins: \"1.1\" must be a ratio"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nlevels = ['1']\n"), HasSubstr("levels: must be two levels or more"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nheterogeneity = 'zeta'\n"), HasSubstr("must be one of \"optimum\", \"start\", \"order\""));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nwindow = 0\n"), HasSubstr("window: must be a number above 0 and at most 1, is 0"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nwindow = nan\n"), HasSubstr("window: must be a number above 0"));
  EXPECT_THAT(plan_refusal("contrasts = ['a:b']\nchance = 1.5\n"), HasSubstr("chance: must be a number between 0 and 1"));
}

TEST(AnalysisPlan, TravelsWithTheRun) {
  RunRecord record{.run = "abc", .status = RunStatus::done};
  EXPECT_FALSE(plan_of(record).has_value());
  record.constants = plan_constants(parse_plan(kPlanText, "plan.toml"));
  EXPECT_EQ(plan_hash(record), kPlanHash);
  ASSERT_TRUE(plan_of(record).has_value());
  EXPECT_EQ(plan_of(record)->text, kPlanText);
  EXPECT_EQ(plan_of(record)->file, "plan.toml");
  for (const ResolvedConstant& constant : record.constants) EXPECT_TRUE(is_plan_constant(constant));
  record.constants[1].name += "# changed\n";
  EXPECT_THROW((void)plan_of(record), ConfigError);
}

TEST(AnalysisPlan, AChangedPlanIsRefused) {
  RunRecord with{.run = "abc", .status = RunStatus::done};
  with.constants = plan_constants(parse_plan(kPlanText, "plan.toml"));
  const RunRecord without{.run = "def", .status = RunStatus::done};
  EXPECT_NO_THROW(refuse_changed_plan({with, without}, kPlanHash));
  EXPECT_THROW(refuse_changed_plan({without, with}, ""), ConfigError);
  EXPECT_THROW(refuse_changed_plan({with}, std::string(64, '0')), ConfigError);
  with.status = RunStatus::interrupted;  // is repeated or continued under the new plan
  EXPECT_NO_THROW(refuse_changed_plan({with}, std::string(64, '0')));
}

class PlanFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_plan_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::vector<Cell> cells(const std::string& plan) const {
    std::ofstream(folder_ / "plan.toml") << plan;
    std::ofstream(folder_ / "study.toml")
        << "name = 'planned'\nrounds = 4\ndata = { name = 'mushrooms' }\npartition = { kind = 'shuffled', clients = 2 }\n"
           "model = { kind = 'logistic_regression' }\nlocal = { kind = 'gradient', learning_rate = 0.1 }\n"
           "[sweep]\nplan_file = 'plan.toml'\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{ label = 'a', "
           "kind = 'top_k', k = 2 }, { label = 'b', kind = 'identity' }]\n";
    return read_cells(folder_ / "study.toml");
  }
  [[nodiscard]] std::string refusal(const std::string& plan) const {
    try {
      (void)cells(plan);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  fs::path folder_;
};

// The plan is no part of what makes a run: its hash is the same with any plan.
TEST_F(PlanFile, IsRecordedWithEveryCellAndChangesNoHash) {
  const std::vector<Cell> one = cells(kPlanText), other = cells("contrasts = ['b:a']\n");
  ASSERT_EQ(one.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one[i].hash, other[i].hash);
    EXPECT_EQ(plan_hash({.constants = one[i].found}), kPlanHash);
    EXPECT_NE(plan_hash({.constants = other[i].found}), kPlanHash);
  }
}

TEST_F(PlanFile, ProblemsAreFoundBeforeAnythingRuns) {
  EXPECT_THAT(refusal("contrasts = ['a:c']\n"), HasSubstr("contrasts: no axis has the labels of \"a:c\""));
  EXPECT_THAT(refusal("contrasts = ['a:b']\nlevels = ['7', '8']\n"), HasSubstr("levels: no axis has the label \"7\""));
  EXPECT_THAT(refusal("contrasts = ['a:b']\nbetween = ['compressor.up=a:c']\n"), HasSubstr("between: no axis has the labels of"));
  EXPECT_EQ(refusal("contrasts = ['a:b']\nbetween = ['compressor.up=a:b']\n"), "accepted");
  EXPECT_THAT(refusal("contrasts = ['a:b']\nbaseline = 'c'\n"), HasSubstr("baseline: no axis has the label \"c\""));
  EXPECT_THAT(refusal("contrasts = [\n"), HasSubstr("plan.toml"));
  fs::remove(folder_ / "plan.toml");
  fs::create_directory(folder_ / "plan.toml");
  EXPECT_THAT(refusal(""), HasSubstr("sweep.plan_file"));
}

}  // namespace
}  // namespace fl
