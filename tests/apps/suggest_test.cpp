// Tests `fedbits suggest`: conversions between k and lambda, from numbers or from a scenario.
#include <gmock/gmock.h>

#include "tests/support/binary.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;

class SuggestTest : public test::BinaryTest {};

TEST_F(SuggestTest, TurnsKIntoLambdaAndBack) {
  const Outcome there = fedbits({"suggest", "--k", "11174", "--d", "11173962"});
  EXPECT_EQ(there.code, 0) << there.err;
  EXPECT_THAT(there.out, HasSubstr("lambda = 0.00473 "));
  EXPECT_THAT(there.out, HasSubstr("k = 11174 }"));
  const Outcome back = fedbits({"suggest", "--lambda", "0.00473", "--d", "11173962"});
  EXPECT_THAT(back.out, HasSubstr("0.1% of the parameters"));
  const Outcome error = fedbits({"suggest", "--epsilon", "5e-12", "--d", "500", "--gamma", "3.3564e-8"});
  EXPECT_THAT(error.out, HasSubstr("lambda = 2.979 "));
}

// The scenario accepts the values that the command prints for it.
TEST_F(SuggestTest, ReadsDimensionStepSizeAndHeterogeneityFromAScenario) {
  write_small("[feedback.up]\nkind = 'ef14'\n");
  const Outcome outcome = fedbits({"suggest", "small.toml", "--ratio", "0.05"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("d = 113 parameters"));
  EXPECT_THAT(outcome.out, HasSubstr("(zeta measured at the start)"));
  const std::string mark = "in a scenario:  ";
  const std::string part = outcome.out.substr(outcome.out.find(mark) + mark.size());
  write_small("[feedback.up]\nkind = 'ef14'\n[compressor]\nup = " + part);
  EXPECT_EQ(fedbits({"plan", "small.toml"}).code, 0) << part;
}

// The measured threshold sends what Top-k sends, in the scenario's own runs.
TEST_F(SuggestTest, MeasuresTheThresholdThatSendsAsManyBits) {
  write_small("[feedback.up]\nkind = 'ef14'\n");
  const Outcome outcome = fedbits({"suggest", "small.toml", "--k", "9", "--measure", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(": sends as many bits as Top-k"));
  EXPECT_THAT(outcome.out, HasSubstr("equal worst cases, if clients are alike"));
  const std::string mark = "in a scenario:  ";
  const std::string part = outcome.out.substr(outcome.out.find(mark) + mark.size());
  const auto bits = [&](const std::string& up) {
    write_small("[feedback.up]\nkind = 'ef14'\n[compressor]\nup = " + up);
    const Outcome run = fedbits({"run", "small.toml", "--set", "rounds=5", "--out", "of-" + std::to_string(up.size())});
    const std::size_t at = run.out.find("bits_up ");
    return at == std::string::npos ? 0.0 : std::stod(run.out.substr(at + 8));
  };
  const double top = bits("{ kind = 'top_k', k = 9 }"), hard = bits(part);
  ASSERT_GT(top, 0);
  EXPECT_NEAR(hard / top, 1, 0.05) << part;
}

// The unit of the scenario decides what a threshold means: for updates only a measured one is offered, and "lambda" is for steps alone.
TEST_F(SuggestTest, NamesTheUnitOfTheScenario) {
  const auto asked = [this](const std::string& local, const std::string& unit, const std::vector<std::string>& more) {
    write_small("[feedback.up]\nkind = 'ef14'\n[local]\n" + local + "\n[compressor.up]\nkind = 'top_k'\nk = 9\n" + unit);
    std::vector<std::string> arguments = {"suggest", "small.toml", "--k", "9"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string sgd = "kind = 'sgd'\nsteps = 5\nbatch = 10\nlearning_rate = 0.1", gradient = "kind = 'gradient'\nlearning_rate = 0.1";
  const std::string none = asked(sgd, "", {});
  EXPECT_THAT(none, HasSubstr("none of these numbers is a threshold for them"));
  EXPECT_THAT(none, testing::Not(HasSubstr("on steps")));
  const std::string measured = asked(sgd, "", {"--measure", "5"});
  EXPECT_THAT(measured, HasSubstr("measured on updates (unit = \"update\")"));
  EXPECT_THAT(measured, testing::Not(HasSubstr("rule = \"lambda\"")));
  EXPECT_THAT(asked(gradient, "unit = 'gradient'", {}), HasSubstr("# for gradients (unit = \"gradient\")"));
  EXPECT_THAT(asked(gradient, "unit = 'step'", {"--measure", "5"}), HasSubstr("lambda = "));
}

TEST_F(SuggestTest, SaysWhatIsMissingOrWrong) {
  const auto refused = [this](const std::vector<std::string>& arguments, const char* why) {
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused({"suggest"}, "give one of --k");
  refused({"suggest", "--ratio", "0.1"}, "--d: the number of parameters is needed");
  refused({"suggest", "--epsilon", "1e-3", "--d", "10"}, "--gamma: the step size is needed");
  refused({"suggest", "--k", "20", "--d", "10"}, "--k: must be at most d = 10");
  refused({"suggest", "--lambda", "-1"}, "--lambda: must be a positive number");
  refused({"suggest", "--k", "2", "--sigma", "-1"}, "--sigma");
  refused({"suggest", "--k", "2", "--measure", "5"}, "--measure: runs a scenario: give its file");
}

}  // namespace
}  // namespace fl
