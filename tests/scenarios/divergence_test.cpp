// Tests runs that play all of their rounds and end far above their start: they count as diverged, and the record states the reason.
#include <gmock/gmock.h>

#include "fl_core/config/error.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

// One row: f(x) = (x - 1)^2 / 2 from x = 0, so f(0) = 1/2. A step of 2.5 multiplies x - 1 by -1.5 and f by 2.25.
class Divergence : public test::DataFolderTest {
 protected:
  RunResult run(int rounds, const std::string& evaluate = "", const std::string& rate = "2.5") {
    write("row", "1 1:1\n");
    test::ScenarioText s;
    s.rounds = rounds;
    s.data = "path = '" + (folder_ / "row").string() + "'\ntest = 'none'\nlabels = 'target'";
    s.partition = "kind = 'contiguous'\nclients = 1";
    s.model = "kind = 'linear_regression'\nbias = false";
    s.local = "kind = 'gradient'\nlearning_rate = " + rate;
    s.evaluate = "every = 1\ngradient = 'never'\n" + evaluate;
    return test::run_text(s.str()).front();
  }
};

TEST_F(Divergence, IsALossThatEndsAboveTenTimesItsStart) {
  const RunResult below = run(2), above = run(3);
  EXPECT_DOUBLE_EQ(below.record.train_loss, 0.5 * 2.25 * 2.25);  // 5.06 times the start
  EXPECT_EQ(below.record.status, RunStatus::done);
  EXPECT_EQ(below.record.message, "");
  EXPECT_DOUBLE_EQ(above.record.train_loss, 0.5 * 2.25 * 2.25 * 2.25);  // 11.4 times
  EXPECT_EQ(above.record.status, RunStatus::diverged);
  EXPECT_EQ(above.record.rounds, 3u);
  EXPECT_EQ(above.record.message, "train_loss ended at 5.695, more than 10 times its 0.5 at the start (evaluate.divergence_factor)");
  EXPECT_NE(above.record.checksum, "");
}

TEST_F(Divergence, TheFactorIsAKey) {
  EXPECT_EQ(run(3, "divergence_factor = 12").record.status, RunStatus::done);
  EXPECT_EQ(run(2, "divergence_factor = 5").record.status, RunStatus::diverged);
  EXPECT_THAT(run(3, "divergence_factor = 12").record.constants,
              testing::Contains(testing::Field(&ResolvedConstant::name, "divergence_factor")));
  EXPECT_THROW((void)run(3, "divergence_factor = 1"), ConfigError);
}

TEST_F(Divergence, IsNotJudgedWithoutALoss) { EXPECT_EQ(run(3, "train_loss = false\noptimum = false").record.status, RunStatus::done); }

TEST_F(Divergence, ANumberThatIsNotFiniteSaysWhereItAppeared) {
  const RunResult result = run(500, "", "1e200");
  EXPECT_EQ(result.record.status, RunStatus::diverged);
  EXPECT_THAT(result.record.message, HasSubstr("not finite in round "));
}

// Keys that a scenario leaves out leave its text, and the hash of the run, as they were.
TEST_F(Divergence, AnUnsetFactorIsNoPartOfTheScenario) {
  EXPECT_THAT(run(2).record.scenario, testing::Not(HasSubstr("divergence_factor")));
  EXPECT_THAT(run(2, "divergence_factor = 5").record.scenario, HasSubstr("divergence_factor = 5"));
}

}  // namespace
}  // namespace fl
