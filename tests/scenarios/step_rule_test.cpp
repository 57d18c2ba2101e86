// Tests thresholds and grids that follow the step size of local steps: rule = "gamma" and "gamma_steps" for unit = "update".
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/results/broken_contracts.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

// Four local steps of size 1/8 with five clients, so that gamma and gamma H are powers of two and products with them are exact.
std::string followed_study(const std::string& compressor, const std::string& more_of_local = "", int rounds = 12) {
  return "name = 'followed'\nrounds = " + std::to_string(rounds) +
         "\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 5\ndimension = 20\nzeta_sq = 1.0\n"
         "[partition]\nkind = 'natural'\nclients = 5\n[model]\nkind = 'quadratic'\n"
         "[local]\nkind = 'sgd'\nsteps = 4\nlearning_rate = 0.125\n" +
         more_of_local + "[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 1\ngradient = 'start'\n[compressor.up]\n" + compressor;
}

RunResult played(const std::string& text) {
  CellRunner runner(DataCatalog(""), MachineOptions{});
  return runner.run(parse_cells(text, "followed.toml").at(0), {});
}

std::string refused(const std::string& text) {
  try {
    (void)played(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct FollowingOperator {
  const char* options;  // without the number and the rule
  const char* number;   // its name
  double at_steps;      // the number in units of the update
  bool divides = false;
};
const std::vector<FollowingOperator> kFollowing = {{"kind = 'hard_threshold'\n", "threshold", 0.25},
                                                   {"kind = 'absolute_rounding'\n", "step", 0.125},
                                                   {"kind = 'sz'\n", "error_bound", 0.0625},
                                                   {"kind = 'zfp'\n", "error_bound", 0.0625},
                                                   {"kind = 'dqsgd'\n", "levels_per_unit", 4, true}};

std::string with_number(const FollowingOperator& op, double number, const std::string& rule) {
  return op.options + std::string(op.number) + " = " + std::to_string(number) + "\n" + (rule.empty() ? "" : "rule = '" + rule + "'\n");
}

TEST(StepRule, MultipliesByTheStepSizeOfLocalSteps) {
  for (const FollowingOperator& op : kFollowing) {
    const auto in_units_of = [&op](double factor) { return op.divides ? op.at_steps * factor : op.at_steps / factor; };
    const std::string plain = played(followed_study(with_number(op, op.at_steps, ""))).record.checksum;
    EXPECT_EQ(played(followed_study(with_number(op, in_units_of(0.125), "gamma"))).record.checksum, plain) << op.options;
    EXPECT_EQ(played(followed_study(with_number(op, in_units_of(0.5), "gamma_steps"))).record.checksum, plain) << op.options;
    EXPECT_NE(played(followed_study(with_number(op, op.at_steps, "gamma"))).record.checksum, plain) << op.options;
    EXPECT_NE(played(followed_study(with_number(op, op.at_steps, "gamma_steps"))).record.checksum, plain) << op.options;
  }
}

// Up to the first decay of gamma a followed threshold is the fixed one; afterwards it is half as large and more is sent.
TEST(StepRule, FollowsAStepSizeThatDecays) {
  const std::string decay = "schedule = 'step'\ndecay_rounds = 6\ndecay_factor = 0.5\n";
  const RunResult followed = played(followed_study(with_number(kFollowing[0], 2, "gamma"), decay));
  const RunResult fixed = played(followed_study(with_number(kFollowing[0], 0.25, ""), decay));
  ASSERT_EQ(followed.rows.size(), fixed.rows.size());
  for (std::size_t i = 0; i < fixed.rows.size(); ++i) {
    if (fixed.rows[i].round > 6) break;
    EXPECT_EQ(followed.rows[i].bits_up, fixed.rows[i].bits_up) << fixed.rows[i].round;
  }
  EXPECT_GT(followed.record.bits_up, fixed.record.bits_up);
}

// The bound that is watched in a run is that of the round's step size. Here it is twice as large as at step size 1, and messages come near
// it.
TEST(StepRule, TheBoundFollowsToo) {
  for (const FollowingOperator& op : kFollowing) {
    std::string text = followed_study(with_number(op, op.divides ? 0.5 : 2, "gamma_steps"));
    text.replace(text.find("steps = 4"), 9, "steps = 16");
    text.replace(text.find("every = 1"), 9, "every = 1\nmeasure_every = 1");
    const RunResult run = played(text);
    EXPECT_TRUE(broken_contracts(run.record).empty()) << op.options << broken_text(std::vector<const RunRecord*>{&run.record});
  }
}

TEST(StepRule, NeedsUpdatesAndANumberOfSteps) {
  const std::string threshold = with_number(kFollowing[0], 0.25, "gamma_steps");
  EXPECT_THAT(refused(followed_study(threshold, "", 2)), "");
  std::string epochs = followed_study(threshold, "", 2);
  epochs.replace(epochs.find("steps = 4"), 9, "epochs = 2");
  EXPECT_THAT(refused(epochs), HasSubstr("take rule = \"gamma\""));
  std::string steps = followed_study(threshold + "unit = 'step'\n", "", 2);
  steps.replace(steps.find("kind = 'sgd'\nsteps = 4"), 22, "kind = 'gradient'");
  EXPECT_THAT(refused(steps), HasSubstr("take rule = \"lambda\""));
  EXPECT_THAT(refused(followed_study(with_number(kFollowing[0], 0.25, "lambda"), "", 2)), HasSubstr("\"gamma_steps\""));
}

}  // namespace
}  // namespace fl
