// Tests rules over the problem's constants: the allowed names, the location of an error about an unknown name, and the value of mu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/file/scenario_reader.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    (void)parse_scenario(text, "file.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string line_of(const std::string& text, const std::string& part) {
  return std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(part)), '\n'));
}

TEST(Rules, UnknownNamesAreReportedWithPlaceKeyAndTheNearestName) {
  test::ScenarioText s = test::logistic("name = 'mushrooms'", 5);
  s.local = "kind = 'gradient'\nlearning_rate = '1/(Lmax+l2)'";
  EXPECT_THAT(error_of(s.str()), HasSubstr("file.toml:" + line_of(s.str(), "learning_rate") +
                                           ":17: local.learning_rate: \"1/(Lmax+l2)\": unknown name \"Lmax\"; did you mean \"L_max\"?"));
  s = test::logistic("name = 'mushrooms'", 5);
  s.up = "kind = 'hard_threshold'\nthreshold = '1/(2*sqrt(kk))'";
  EXPECT_THAT(error_of(s.str()), HasSubstr(":13: compressor.up.threshold: \"1/(2*sqrt(kk))\": unknown name \"kk\"; did you mean \"k\"?"));
  s = test::logistic("name = 'mushrooms'", 5);
  s.model = "kind = 'logistic_regression'\nl2 = 'mu/2'";
  EXPECT_THAT(error_of(s.str()), HasSubstr(":6: model.l2: \"mu/2\": unknown name \"mu\""))
      << "mu depends on the regulariser, so the regulariser's rule cannot name it";
}

TEST(Rules, ANameThatIsAnOptionOfItsOwnIsRequired) {
  test::ScenarioText s = test::logistic("name = 'mushrooms'", 5);
  s.up = "kind = 'hard_threshold'\nthreshold = '1/(2*sqrt(k))'";
  EXPECT_THAT(error_of(s.str()), HasSubstr("compressor.up.k: is required, because threshold = \"1/(2*sqrt(k))\" names it"));
  s.up += "\nk = 10";
  EXPECT_EQ(error_of(s.str()), "");
}

TEST(Rules, MuCountsAnL2ThatIsARuleItself) {
  FL_NEED_DATA(mushrooms, "libsvm/mushrooms");
  test::ScenarioText s = test::logistic("name = 'mushrooms'\nrows = 400", 5);
  s.model = "kind = 'logistic_regression'\nl2 = 'L/1e4'";
  s.local = "kind = 'gradient'\nlearning_rate = '1/(L+mu)'";
  test::OneRun<double> run(s.str());
  const double L = run.problem().resolved().at("L"), l2 = run.problem().resolved().at("l2");
  EXPECT_DOUBLE_EQ(l2, L / 1e4);
  EXPECT_DOUBLE_EQ(run.problem().resolved().at("mu"), l2) << "the logistic loss is convex and no more";
  EXPECT_DOUBLE_EQ(run->step_size(), 1 / (L + l2));
}

TEST(Rules, TheNonconvexWeightHasAName) {
  FL_NEED_DATA(mushrooms, "libsvm/mushrooms");
  test::ScenarioText s = test::logistic("name = 'mushrooms'\nrows = 400", 5);
  s.model = "kind = 'logistic_regression'\nl2 = 0.01\nnonconvex = 0.1";
  s.local = "kind = 'gradient'\nlearning_rate = '1/(L+l2+2*nonconvex)'";
  test::OneRun<double> run(s.str());
  EXPECT_DOUBLE_EQ(run->step_size(), 1 / (run.problem().resolved().at("L") + 0.21));
}

// A rule that does not name L asks nothing of the model: networks have no smoothness constant.
TEST(Rules, AModelWithoutSmoothnessIsRefusedOnlyWhereTheRuleNeedsIt) {
  FL_NEED_DATA(mushrooms, "libsvm/mushrooms");
  test::ScenarioText s = test::logistic("name = 'mushrooms'\nrows = 400", 5);
  s.model = "kind = 'mlp'\nhidden = [4]";
  s.local = "kind = 'gradient'\nlearning_rate = '1/n'";
  s.start = "kind = 'auto'";
  EXPECT_DOUBLE_EQ(test::OneRun<double>(s.str())->step_size(), 0.2);
  s.local = "kind = 'gradient'\nlearning_rate = '1/L'";
  try {
    test::OneRun<double> run(s.str());
    FAIL() << "L is not known";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("local.learning_rate: \"1/L\" needs the smoothness constant L"));
  }
}

}  // namespace
}  // namespace fl
