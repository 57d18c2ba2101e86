#include "scenarios/analysis/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl_core/config/error.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const RunStore& store, const StudyOptions& options) {
  try {
    (void)read_study(store, options);
  } catch (const ConfigError& error) {
    std::string all;
    for (const Problem& problem : error.problems()) all += problem.where + ": " + problem.message + "\n";
    return all;
  }
  return {};
}

TEST(Study, CellsByMethodAndLevelSeedsInOrder) {
  MadeStore made;
  for (const char* level : {"0.1", "100"})
    for (const std::uint64_t seed : {2, 1})
      for (const char* method : {"none", "top"}) made.add({method, level, seed, RunStatus::done, {{0, 1}, {10, 0.5}}});
  const Study study = read_study(made.store());
  EXPECT_EQ(study.axes.method, "compressor.up");
  EXPECT_EQ(study.axes.level, "partition.alpha");
  EXPECT_THAT(study.methods, ElementsAre("none", "top"));
  EXPECT_THAT(study.measures, ElementsAre("f_gap"));  // the others were not measured
  ASSERT_EQ(study.panels.size(), 2u);
  EXPECT_EQ(study.panels[1].title(study.axes.level), "partition.alpha = 100");
  const StudyCell* cell = study.find(study.panels[1], 1);
  ASSERT_NE(cell, nullptr);
  ASSERT_EQ(cell->runs.size(), 2u);
  EXPECT_EQ(study.runs[cell->runs[0]].record.seed, 1u);
  EXPECT_EQ(study.runs[cell->runs[1]].record.seed, 2u);
  EXPECT_TRUE(study.notes.empty());
}

TEST(Study, ARunOfTheSamePlaceAndSeedReplacesTheEarlierOne) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}});
  made.add({"none", "1", 1, RunStatus::done, {{0, 1}, {10, 0.25}}});
  const Study study = read_study(made.store());
  ASSERT_EQ(study.cells.size(), 1u);
  EXPECT_THAT(study.cells[0].runs, ElementsAre(1u));
  EXPECT_EQ(study.cells[0].num_repeated, 1u);
  EXPECT_THAT(study.notes, ElementsAre(HasSubstr("1 runs were left out")));
}

TEST(Study, ACellWithADivergedRunIsCountedAndHasNoMean) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}});
  made.add({"none", "1", 2, RunStatus::diverged, {{0, 1}, {10, 1e30}}});
  const Study study = read_study(made.store());
  EXPECT_EQ(study.runs_text(study.cells[0]), "1/2 diverged");
  EXPECT_TRUE(study.traces(study.cells[0], 0).empty());
  EXPECT_TRUE(std::isnan(study.estimate(study.cells[0], [](const StudyRun& run) { return run.record.f_gap; }).mean));
}

TEST(Study, SeveralAxesMayBeTheMethodAndAxesWithTheSameLabelsAreOne) {
  MadeStore made;
  for (const char* level : {"0.1", "100"})
    for (const char* feedback : {"none", "ef14"})
      for (const char* method : {"top", "sign"}) {
        test::MadeRun run{method, level, 1, RunStatus::done, {{0, 1}, {10, 0.5}}};
        run.more_axes = {{"feedback.up", feedback}, {"local", feedback}, {"data", level}};
        made.add(run);
      }
  const Study one = read_study(made.store(), {.baseline = "top"});
  EXPECT_EQ(one.panels.size(), 4u);
  EXPECT_EQ(one.panels[0].title(one.axes.level), "partition.alpha = 0.1, feedback.up=none");
  const Study both = read_study(made.store(), {.baseline = "top + ef14", .method_axis = "compressor.up,feedback.up"});
  EXPECT_EQ(both.axes.method, "compressor.up + feedback.up");
  EXPECT_THAT(both.methods, ElementsAre("top + none", "sign + none", "top + ef14", "sign + ef14"));
  ASSERT_EQ(both.panels.size(), 2u);
  EXPECT_EQ(both.panels[1].title(both.axes.level), "partition.alpha = 100");
  EXPECT_THAT(message_of(made.store(), {.method_axis = "compressor.up,taste"}), HasSubstr("no run has an axis 'taste'"));
  EXPECT_THAT(message_of(made.store(), {.method_axis = "local,local"}), HasSubstr("'local' is named more than once"));
}

// Zipped axes, as of local updates and the feedbacks that go with them: with the one in the panel no two methods would meet.
TEST(Study, AnAxisThatMovesWithTheMethodIsPartOfIt) {
  MadeStore made;
  for (const char* epochs : {"1", "5"})
    for (const std::string method : {"none", "scaffold", "feddyn"}) {
      test::MadeRun run{"identity", "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}};
      run.axes = {
          {"local", method == "none" ? "FedAvg" : method}, {"feedback.up", method == "feddyn" ? "none" : method}, {"local.epochs", epochs}};
      made.add(run);
    }
  const Study study = read_study(made.store());
  EXPECT_EQ(study.axes.method, "local + feedback.up");
  EXPECT_THAT(study.methods, ElementsAre("FedAvg + none", "scaffold", "feddyn + none"));
  ASSERT_EQ(study.panels.size(), 2u);
  EXPECT_EQ(study.panels[1].title(study.axes.level), "local.epochs=5");
  EXPECT_EQ(study.panels[1].cells.size(), 3u);
}

TEST(Study, EveryProblemOfTheOptionsAtOnce) {
  MadeStore made;
  EXPECT_THAT(message_of(made.store(), {}), HasSubstr("no runs"));
  made.add({"none", "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}});
  const std::string message = message_of(made.store(), {.measures = {"beauty"}, .method_axis = "brand", .level_axis = "height"});
  EXPECT_THAT(message, HasSubstr("'beauty' is not a measured column"));
  EXPECT_THAT(message, HasSubstr("no run has an axis 'brand'; there are 'partition.alpha', 'compressor.up'"));
  EXPECT_THAT(message, HasSubstr("no run has an axis 'height'"));
  EXPECT_THAT(message_of(made.store(), {.baseline = "nil"}), HasSubstr("'nil' is no label of compressor.up; there are 'none'"));
  EXPECT_THAT(message_of(made.store(), {.measures = {"test_loss"}}), HasSubstr("has measured 'test_loss'"));
}

TEST(Study, WithoutTheUsualLabelTheFirstMethodIsTheBaseline) {
  MadeStore made;
  for (const char* method : {"fp16", "top"}) made.add({method, "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}});
  const Study study = read_study(made.store());
  EXPECT_EQ(study.references.baseline, 0u);
  EXPECT_THAT(study.notes, ElementsAre(HasSubstr("compared with 'fp16'")));
}

// The one that sends the fewest bits, or at most a tenth more and stands before it; not one that diverged somewhere.
TEST(Study, TheBaselineIsAMethodThatCompressesAndSendsFewBits) {
  const auto study_of = [](std::uint64_t matched_bits, RunStatus status) {
    MadeStore made;
    for (const char* level : {"0.1", "100"})
      for (const auto& [method, bits] : std::vector<std::pair<std::string, std::uint64_t>>{
               {"none", 320}, {"fp16", 160}, {"hard", matched_bits}, {"top", 10}, {"bad", 1}})
        made.add({method, level, 1, method == "bad" ? status : RunStatus::done, {{0, 1}, {bits, 0.5}}});
    return read_study(made.store());
  };
  const Study matched = study_of(11, RunStatus::diverged);
  EXPECT_EQ(matched.methods[matched.references.baseline], "hard");
  EXPECT_EQ(matched.references.is_reference, (std::vector<bool>{true, false, false, false, false}));
  EXPECT_FALSE(matched.is_alternative(0));
  EXPECT_FALSE(matched.is_alternative(2));
  EXPECT_TRUE(matched.is_alternative(3));
  const Study dearer = study_of(12, RunStatus::diverged);
  EXPECT_EQ(dearer.methods[dearer.references.baseline], "top");
  const Study all_done = study_of(12, RunStatus::done);
  EXPECT_EQ(all_done.methods[all_done.references.baseline], "bad");
}

// With one method that compresses there is nothing but `none` to compare it with.
TEST(Study, AnUncompressedMethodIsTheBaselineOfASingleAlternative) {
  MadeStore made;
  for (const char* method : {"top", "none"}) made.add({method, "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}});
  const Study study = read_study(made.store());
  EXPECT_EQ(study.methods[study.references.baseline], "none");
  EXPECT_EQ(study.references.is_reference, (std::vector<bool>{false, false}));
}

// A promise to lose nothing makes a reference, whatever the label; what is asked for is a baseline all the same.
TEST(Study, ReferencesAreMethodsThatPromiseToLoseNothing) {
  MadeStore made;
  for (const std::string method : {"raw", "top", "hard"}) {
    test::MadeRun run{method, "1", 1, RunStatus::done, {{0, 1}, {10, 0.5}}};
    run.constants = {{"promised_delta", method == "raw" ? 1 : 0.5}};
    made.add(run);
  }
  EXPECT_EQ(read_study(made.store()).references.is_reference, (std::vector<bool>{true, false, false}));
  const Study asked = read_study(made.store(), {.baseline = "raw"});
  EXPECT_EQ(asked.references.is_reference, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(asked.references.baseline, 0u);
}

// Rounds 1 and 2 cost 10 and 5 bits up, and twice that down; round 1 was not measured.
TEST(RunTrace, HoldsTheLastMeasuredValue) {
  std::vector<RoundRow> rows(3);
  for (std::size_t r = 0; r < 3; ++r) rows[r].round = r;
  rows[0].f_gap = 4;
  rows[1].bits_up = 10, rows[1].bits_down = 20;
  rows[2].bits_up = 5, rows[2].bits_down = 10;
  rows[2].f_gap = 1;
  const RunTrace trace = make_trace(rows, "f_gap");
  EXPECT_THAT(trace.places(Against::bits_up), ElementsAre(0, 15));
  EXPECT_THAT(trace.places(Against::bits_both), ElementsAre(0, 45));
  EXPECT_EQ(trace.value_at(Against::bits_up, 14.9), 4);
  EXPECT_EQ(trace.value_at(Against::bits_up, 15), 1);
  EXPECT_TRUE(std::isnan(trace.value_at(Against::bits_up, -1)));
  EXPECT_EQ(trace.first_reaching(Against::round, 2, Direction::lower_is_better), 2);
  EXPECT_EQ(trace.first_reaching(Against::bits_both, 2, Direction::higher_is_better), 0);
  EXPECT_TRUE(std::isinf(trace.first_reaching(Against::round, 0.5, Direction::lower_is_better)));
  EXPECT_THROW((void)make_trace(rows, "bits_up"), ConfigError);
}

// Two runs that end after 30 and 20 bits: the mean ends at 20, where it is (1 + 3) / 2.
TEST(Study, MeanCurvesEndWithTheShortestRun) {
  MadeStore made;
  made.add({"none", "1", 1, RunStatus::done, {{0, 8}, {10, 4}, {10, 1}, {10, 0.5}}});
  made.add({"none", "1", 2, RunStatus::done, {{0, 6}, {5, 5}, {15, 3}}});
  const Study study = read_study(made.store());
  const auto traces = study.traces(study.cells[0], 0);
  const auto curve = mean_curve(traces, Against::bits_up, {0, 5, 10, 25, 30});
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve[0].y.mean, 7);
  EXPECT_EQ(curve[1].y.mean, 6.5);
  EXPECT_EQ(curve[2].y.mean, 4.5);
  EXPECT_EQ(curve[3].x, 20);
  EXPECT_EQ(curve[3].y.mean, 2);
  const auto grid = curve_grid(study, study.panels[0], Against::bits_up, 3);
  ASSERT_EQ(grid.size(), 3u);
  EXPECT_EQ(grid.front(), 5);
  EXPECT_NEAR(grid[1], std::sqrt(5 * 30.0), 1e-9);
  EXPECT_THAT(curve_grid(study, study.panels[0], Against::round, 10), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace fl
