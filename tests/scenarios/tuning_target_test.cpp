// Tests tuning by the bits to the level of a reference: sweep.tune.at = "target".
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "scenarios/results/trace.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/scenarios/tuning_case.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::HasSubstr;

const std::string kNone = "{label='none', kind='identity'}", kThreshold = "{label='hard', kind='hard_threshold'}";
const std::string kSteps = "{key='local.learning_rate', values=[0.1, 0.3, 0.9]}",
                  kThresholds = "{key='compressor.up.threshold', values=[0.002, 0.02, 0.2]}";

std::string to_target(const std::string& keys, const std::string& more = "margin = '2x'\n") {
  return "[sweep.tune]\nseeds = 2\nmeasure = 'f_gap'\nat = 'target'\n" + more + "keys = [" + keys + "]\n";
}

RunResult play(const Cell& cell) {
  CellRunner runner(DataCatalog(""), MachineOptions{});
  return runner.run(cell, {});
}

class TuningTarget : public TuningTest {
 protected:
  // Returns the places at which the tuning seeds of a cell reach a target, played here.
  [[nodiscard]] static std::vector<double> bits_of(const Cell& cell, double target) {
    std::vector<double> bits;
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      Cell one = with_later_seeds(cell, kTuningSeeds + seed);
      one.scenario.rounds *= kMostRounds;
      one.tune.reset();
      one.tuned_keys.clear();
      const RunTrace trace = make_trace(play(one).rows, "f_gap");
      bits.push_back(trace.first_reaching(Against::bits_up, target, Direction::lower_is_better));
    }
    return bits;
  }
  [[nodiscard]] static const TunedOption& find(const std::vector<TunedOption>& found, const std::string& method,
                                               const std::string& option) {
    for (const TunedOption& tuned : found)
      if (tuned.axis_labels[0].second == method && tuned.option == option) return tuned;
    throw Error("nothing was tuned for " + method);
  }
};

// Each method's best candidate, against all candidates played one by one.
TEST_F(TuningTarget, TheBestCandidateNeedsTheFewestBits) {
  const std::string text = study(kNone + "," + kThreshold, to_target(kSteps + "," + kThresholds));
  const std::vector<Cell> untuned = parse_cells(text, "study.toml");
  std::vector<Cell> cells = untuned;
  const std::vector<TunedOption> found = tune(cells);
  const double target = find(found, "none", "local.learning_rate").target;
  ASSERT_GT(target, 0);
  EXPECT_EQ(find(found, "hard", "compressor.up.threshold").target, target);
  for (const std::string method : {"none", "hard"}) {
    const Cell& cell = *std::ranges::find_if(untuned, [&](const Cell& c) { return c.axis_labels[0].second == method; });
    double least = std::numeric_limits<double>::infinity();
    for (const double step : {0.1, 0.3, 0.9})
      for (const double threshold : method == "none" ? std::vector<double>{0} : std::vector<double>{0.002, 0.02, 0.2}) {
        Cell candidate = with_option(cell, "local.learning_rate", Value{step});
        if (threshold > 0) candidate = with_option(candidate, "compressor.up.threshold", Value{threshold});
        const std::vector<double> bits = bits_of(candidate, target);
        least = std::min(least, std::sqrt(bits[0] * bits[1]));
      }
    const TunedOption& tuned = find(found, method, "local.learning_rate");
    EXPECT_LE(tuned.bits, least * (1 + 1e-9)) << method << ", grids may have been extended";
    EXPECT_EQ(tuned.missed, 0u);
    Cell chosen = with_option(cell, "local.learning_rate", tuned.value);
    if (method == "hard") chosen = with_option(chosen, "compressor.up.threshold", find(found, "hard", "compressor.up.threshold").value);
    const std::vector<double> bits = bits_of(chosen, target);
    EXPECT_NEAR(std::sqrt(bits[0] * bits[1]) / tuned.bits, 1, 1e-9) << method;
  }
}

TEST_F(TuningTarget, TheTargetIsTheTunedLevelOfTheReferenceTimesTheMargin) {
  const std::string text = study(kNone + ", {label='top', kind='top_k', k=12}", to_target(kSteps, "margin = '100x'\n"));
  const std::vector<TunedOption> at_rounds =
      tune(study(kNone, "[sweep.tune]\nseeds = 2\nmeasure = 'f_gap'\nat = 'rounds'\nkeys = [" + kSteps + "]\n"));
  std::vector<Cell> cells = parse_cells(text, "study.toml");
  const std::vector<TunedOption> found = tune(cells);
  EXPECT_DOUBLE_EQ(found[0].target, 100 * at_rounds[0].measure);
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.scenario.rounds, 160) << "the study's runs may take four times the rounds as well";
    EXPECT_EQ(cell.scenario.stop.f_gap, found[0].target);
    EXPECT_TRUE(
        std::ranges::any_of(cell.found, [&](const ResolvedConstant& c) { return c.name == "target_level" && c.value == found[0].target; }));
    EXPECT_FALSE(cell.needs_tuning());
    const RunResult result = play(cell);
    EXPECT_LE(result.record.f_gap, found[0].target);
    EXPECT_LT(result.record.rounds, 160u) << "and end where the level is reached";
  }
}

// A threshold that sends nothing sends the fewest bits, and never reaches the level.
TEST_F(TuningTarget, RunsThatNeverReachTheTargetAreCensored) {
  const std::string keys = "{key='local.learning_rate', values=[0.1, 0.3, 0.9]}, {key='compressor.up.threshold', values=[0.02, 1e6]}";
  const std::vector<TunedOption> found = tune(study(kNone + "," + kThreshold, to_target(keys)));
  EXPECT_LE(number(find(found, "hard", "compressor.up.threshold").value), 0.02);
  EXPECT_EQ(find(found, "hard", "compressor.up.threshold").missed, 0u);
  const std::string silent = "{key='local.learning_rate', values=[0.1, 0.3, 0.9]}, {key='compressor.up.threshold', values=[1e6]}";
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  std::vector<Cell> cells = parse_cells(study(kNone + "," + kThreshold, to_target(silent)), "study.toml");
  const std::vector<TunedOption> nothing = tune(cells);
  const TunedOption& never = find(nothing, "hard", "compressor.up.threshold");
  EXPECT_EQ(never.missed, 2u);
  EXPECT_TRUE(std::isnan(never.bits));
  EXPECT_TRUE(std::ranges::any_of(cells.back().found, [](const ResolvedConstant& c) {
    return c.name == "tuning_missed_target:compressor.up.threshold" && c.value == 2;
  })) << "recorded with the runs";
}

// The loss itself ends runs as the gap does; a margin in points is added to the level.
TEST_F(TuningTarget, ATrainingLossIsALevelToo) {
  const auto text = [](const std::string& margin) {
    std::string tune = to_target(kSteps, "margin = '" + margin + "'\n");
    tune.replace(tune.find("f_gap"), 5, "train_loss");
    return study(kNone + ", {label='top', kind='top_k', k=12}", tune);
  };
  std::vector<Cell> cells = parse_cells(text("1pt"), "study.toml");
  const double target = tune(cells).front().target;
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.scenario.stop.train_loss, target);
    const RunRecord record = play(cell).record;
    EXPECT_LE(record.train_loss, target);
    EXPECT_LT(record.rounds, 160u);
  }
}

TEST_F(TuningTarget, GoesOnWhereItWas) {
  const std::string text = study(kNone + "," + kThreshold, to_target(kSteps + "," + kThresholds));
  std::vector<Cell> first = parse_cells(text, "study.toml"), second = first, recalled = first;
  const std::vector<TuningEffort> efforts = expected_tuning(first);
  ASSERT_EQ(efforts.size(), 2u);
  EXPECT_EQ(efforts[0].runs, 2.0 * 3) << "the reference at the scenario's rounds";
  EXPECT_EQ(efforts[0].budget_runs, 2.0 * 3);
  EXPECT_EQ(efforts[1].budget_runs, 2.0 * 9);
  EXPECT_TRUE(recall_tuning(recalled, folder_).empty());
  (void)tune(first);
  const std::size_t runs = num_runs();
  (void)tune(second);
  EXPECT_EQ(num_runs(), runs) << "nothing is run twice";
  EXPECT_EQ(recall_tuning(recalled, folder_).size(), 3u);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].hash, second[i].hash);
    EXPECT_EQ(first[i].hash, recalled[i].hash);
  }
}

TEST_F(TuningTarget, RefusesBeforeAnythingRuns) {
  const auto with = [&](const std::string& more, const std::string& values = kNone + "," + kTop, const std::string& sweep = "") {
    return refusal(study(values, sweep + to_target(kSteps, more)));
  };
  EXPECT_THAT(with("target_of = 'nune'\n"), HasSubstr("sweep.tune.target_of: must be the label of a value of an axis"));
  EXPECT_THAT(with("target_of = 'nune'\n"), HasSubstr("did you mean \"none\"?"));
  EXPECT_THAT(with("margin = '0.9x'\n"), HasSubstr("does not reach a target that is better than its level"));
  EXPECT_THAT(with("margin = '1x'\n"), HasSubstr("a ratio above 1"));
  EXPECT_THAT(with("margin = 2\n"), HasSubstr("sweep.tune.margin: must be a ratio above 1"));
  EXPECT_THAT(with("budget_of = 'none'\n"), HasSubstr("sweep.tune.budget_of: has no effect with at = \"target\""));
  EXPECT_THAT(with("", kNone + "," + kTop + "," + kHard), HasSubstr("cannot have match_bits_of"));
  EXPECT_THAT(with("", kNone + "," + kTop, "to_bits_of = 'none'\n"), HasSubstr("sweep.tune.at: must be \"bits\""));
  EXPECT_THAT(refusal(study(kNone + "," + kTop, "[sweep.tune]\nat = 'target'\n")), HasSubstr("has no effect without a key"));
  EXPECT_THAT(refusal(study(kNone, "[sweep.tune]\nat = 'bits'\nmargin = '2x'\nkeys = [" + kSteps + "]\n")),
              HasSubstr("sweep.tune.margin: has no effect with at = \"bits\""));
  EXPECT_THAT(refusal(study(kNone + "," + kTop, to_target(kSteps), "[[sweep.exclude]]\ncompressor.up = 'none'\n")),
              HasSubstr("is excluded from the sweep, so it sends no bits and has no level"));
  const auto set = [&](const std::vector<std::string>& settings) {
    try {
      (void)parse_cells(study(kNone + "," + kTop, to_target(kSteps)), "study.toml", settings);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(set({"stop.f_gap=0.1"}), HasSubstr("drop that key of [stop]"));
  EXPECT_THAT(set({"local.schedule=cosine"}), HasSubstr("ends with the rounds"));
  EXPECT_THAT(set({"evaluate.every=20"}), HasSubstr("evaluate.every: must be at most"));
  EXPECT_EQ(set({"stop.train_loss=0.1"}), "accepted");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  // A sweep without methods has no reference.
  const std::string alone =
      "name = 'x'\nrounds = 40\n[data]\nkind = 'quadratics'\n[partition]\nkind = 'natural'\n[model]\nkind = 'quadratic'\n"
      "[evaluate]\nevery = 2\n[sweep]\n" +
      to_target(kSteps);
  EXPECT_THAT(refusal(alone), HasSubstr("sweep.tune.target_of: must be given as the label of a method"));
}

TEST_F(TuningTarget, AReferenceWithoutALevelIsRefused) {
  EXPECT_THAT(refusal(study(kNone + "," + kTop, to_target("{key='local.learning_rate', values=[1e9, 1e10]}"))), HasSubstr("has no level"));
  EXPECT_THAT(refusal(study(kNone + "," + kTop, to_target(kSteps, "margin = '1e9x'\n"))), HasSubstr("the start is as good as the target"));
}

TEST_F(TuningTarget, KeysWhoseGridsEndAreNamed) {
  const auto lines = [&](const std::string& keys) {
    return grids_that_end(parse_cells(study(kNone + "," + kTop + "," + kThreshold, to_target(keys)), "study.toml"));
  };
  EXPECT_TRUE(lines(kSteps + "," + kThresholds + ", {key='compressor.up.k', values=[1, 2, 4]}").empty()) << "k = 1 is a bound";
  EXPECT_THAT(lines("{key='local.learning_rate', values=[0.1]}"), testing::ElementsAre(HasSubstr("has one value, 0.1")));
  EXPECT_TRUE(lines("{key='server.momentum', values=[0.0, 0.5, 0.9]}").empty()) << "0 is a bound, and so is 1";
  EXPECT_THAT(lines("{key='local.learning_rate', values=['1/L', '1/L+1']}"),
              testing::ElementsAre(HasSubstr("cannot be extended beyond"), HasSubstr("no ratio that is known before the run")));
}

}  // namespace
}  // namespace fl
