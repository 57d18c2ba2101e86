#include "scenarios/analysis/comparable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/sweep.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::ElementsAre;
using testing::HasSubstr;

struct TinyExperiment {
  std::string name = "demo", compressor = "kind = 'top_k'\nratio = 0.05", more{};
  int rounds = 40, seed = 1;
  std::string rate = "0.5";
};

std::string scenario_of(const TinyExperiment& e) {
  return "results_version = " + std::to_string(kLeastResultsVersion) + "\nname = '" + e.name + "'\nrounds = " + std::to_string(e.rounds) +
         "\nseed = " + std::to_string(e.seed) + "\n[partition]\nalpha = 0.1\n[local]\nlearning_rate = " + e.rate + "\n[compressor.up]\n" +
         e.compressor + "\n" + e.more;
}

RunRecord run_of(const TinyExperiment& e, const std::string& label = "top", std::vector<ResolvedConstant> constants = {}) {
  RunRecord record{.name = e.name, .seed = static_cast<std::uint64_t>(e.seed), .status = RunStatus::done};
  record.scenario = scenario_of(e);
  record.run = std::to_string(std::hash<std::string>{}(record.scenario));
  record.axes = {{"partition.alpha", "0.1"}, {"compressor.up", label}};
  record.constants = std::move(constants);
  return record;
}

std::vector<std::string> names_of(const std::vector<ComparableRuns>& studies) {
  std::vector<std::string> names;
  for (const ComparableRuns& study : studies) names.push_back(study.name + ": " + std::to_string(study.records.size()));
  return names;
}

TEST(ComparableRuns, ChangedRoundsAndStepSizesAreStudiesOfTheirOwn) {
  std::vector<RunRecord> records;
  for (const int seed : {1, 2, 3}) records.push_back(run_of({.seed = seed}));
  for (const int seed : {1, 2}) records.push_back(run_of({.rounds = 20, .seed = seed}));
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("rounds = 40: 3", "rounds = 20: 2"));
  records.push_back(run_of({.rate = "0.25"}));
  EXPECT_THAT(names_of(comparable_runs(records)),
              ElementsAre("rounds = 40, local.learning_rate = 0.5: 3", "rounds = 20, local.learning_rate = 0.5: 2",
                          "rounds = 40, local.learning_rate = 0.25: 1"));
}

// Among studies with equal numbers of runs, the one with the newest run comes first.
TEST(ComparableRuns, TheStudyWithMostRunsComesFirst) {
  const std::vector<RunRecord> records{run_of({}), run_of({.rounds = 500})};
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("rounds = 500: 1", "rounds = 40: 1"));
}

TEST(ComparableRuns, SeedsAndWhatAxesSetAreNoDifference) {
  std::vector<RunRecord> records;
  for (const int seed : {1, 2})
    for (const auto& [label, part] :
         {std::pair{"top", "kind = 'top_k'\nratio = 0.05"}, {"hard", "kind = 'hard_threshold'\nthreshold = 0.1"}})
      records.push_back(run_of({.compressor = part, .seed = seed}, label));
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("demo: 4"));
  RunRecord moved = run_of({.seed = 1, .rate = "0.5"});
  moved.scenario.replace(moved.scenario.find("seed = 1\n"), 9, "");
  moved.scenario += "[seeds]\ndata = 4\ninit = 9\nsampling = 4\ncompressor = 4\n";
  records.push_back(moved);
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("demo: 4", "seeds.init = seeds.data + 5: 1"));
}

// A seed's own test rows are no difference; a seed that was named for all runs is.
TEST(ComparableRuns, TestRowsOfAnotherSeedAreADifference) {
  const auto run = [](int seed, const std::string& test_seed) {
    return run_of({.more = "[data]\ntest_fraction = 0.2\n" + (test_seed.empty() ? "" : "test_seed = " + test_seed + "\n"), .seed = seed});
  };
  EXPECT_EQ(comparable_runs({run(1, ""), run(2, ""), run(3, "")}).size(), 1u);
  EXPECT_EQ(comparable_runs({run(1, ""), run(2, "1"), run(3, "1")}).size(), 1u);
  EXPECT_THAT(names_of(comparable_runs({run(1, ""), run(2, "1"), run(4, ""), run(5, "4")})),
              ElementsAre("data.test_seed = 4: 2", "data.test_seed = 1: 2"));
}

TEST(ComparableRuns, TwoValuesUnderOneLabelBecomeTwoLabels) {
  std::vector<RunRecord> records;
  for (const char* threshold : {"0.1", "0.2"})
    for (const int seed : {1, 2})
      records.push_back(run_of({.compressor = std::string("kind = 'hard_threshold'\nthreshold = ") + threshold, .seed = seed}, "hard"));
  const std::vector<ComparableRuns> studies = comparable_runs(records);
  ASSERT_EQ(studies.size(), 1u);
  EXPECT_EQ(studies[0].records[0].axes[1].label, "hard (threshold = 0.1)");
  EXPECT_EQ(studies[0].records[3].axes[1].label, "hard (threshold = 0.2)");
  EXPECT_THAT(studies[0].notes, ElementsAre(HasSubstr("the label 'hard' of compressor.up stands for 2 different values")));
}

// One axis sets the table, another one a value in it.
TEST(ComparableRuns, AnAxisInsideTheTableOfAnother) {
  std::vector<RunRecord> records;
  for (const char* rate : {"0.1", "0.2"}) {
    records.push_back(run_of({.rate = rate}));
    records.back().axes = {{"local", "gradient"}, {"local.learning_rate", rate}};
  }
  const std::vector<ComparableRuns> studies = comparable_runs(records);
  ASSERT_EQ(studies.size(), 1u);
  EXPECT_EQ(studies[0].records[1].axes[0].label, "gradient");
}

// Every sweep of the library is one study, with the labels of its file: an axis of kinds brings options with each kind.
TEST(ComparableRuns, EverySweepOfTheLibraryIsOneStudy) {
  std::size_t sweeps = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(FL_SOURCE_DIR) / "scenarios/library")) {
    if (entry.path().extension() != ".toml") continue;
    std::vector<RunRecord> records;
    for (const Cell& cell : read_cells(entry.path())) {
      RunRecord record{.run = to_hex(cell.hash), .name = cell.scenario.name, .seed = cell.scenario.seeds.data, .status = RunStatus::done};
      record.scenario = cell.resolved_toml;
      for (const auto& [key, label] : cell.axis_labels) record.axes.push_back({key, label});
      records.push_back(std::move(record));
    }
    const std::vector<ComparableRuns> studies = comparable_runs(records);
    EXPECT_EQ(studies.size(), 1u) << entry.path();
    EXPECT_TRUE(studies.front().notes.empty()) << entry.path() << studies.front().notes.front();
    EXPECT_EQ(studies.front().records.size(), records.size()) << entry.path();
    ++sweeps;
  }
  EXPECT_GT(sweeps, 10u);
}

TEST(ComparableRuns, AnAxisOfKindsHoldsTheOptionsOfEachKind) {
  std::vector<RunRecord> records{run_of({}), run_of({.more = "[data]\nname = 'x'\n"})};
  records[0].scenario = "name = 'demo'\n[partition]\nkind = 'contiguous'\nclients = 4\n";
  records[1].scenario = "name = 'demo'\n[partition]\nkind = 'sorted_by_label'\nclients = 4\npieces_per_client = 1\n";
  for (RunRecord& record : records) record.axes = {{"partition.kind", &record == records.data() ? "contiguous" : "sorted_by_label"}};
  EXPECT_EQ(comparable_runs(records).size(), 1u);
  records[1].scenario.replace(records[1].scenario.find("clients = 4"), 11, "clients = 5");
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("partition.clients = 5: 1", "partition.clients = 4: 1"));
}

// Methods have tuned values of their own, and a matched threshold differs by cell.
TEST(ComparableRuns, ValuesThatTuningFoundAreNoDifference) {
  const std::vector<ResolvedConstant> tuned{{"tuning_candidates:local.learning_rate", 4}},
      matched{{"matched_bits_key:compressor.up.threshold", 1}, {"matched_bits_deviation", 0.01}};
  std::vector<RunRecord> records{run_of({.rate = "0.5"}, "top", tuned),
                                 run_of({.compressor = "kind = 'identity'", .rate = "0.1"}, "none", tuned)};
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("demo: 2"));
  records.push_back(run_of({.rate = "0.5"}));  // a fixed step size is another study
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("local.learning_rate = tuned: 2", "local.learning_rate = 0.5: 1"));
  std::vector<RunRecord> levels;
  for (const char* threshold : {"0.1", "0.2"}) {
    levels.push_back(run_of({.compressor = std::string("kind = 'hard_threshold'\nthreshold = ") + threshold}, "hard", matched));
    levels.back().axes[0].label = threshold;  // the level
  }
  ASSERT_EQ(comparable_runs(levels).size(), 1u);
  EXPECT_EQ(comparable_runs(levels)[0].records[1].axes[1].label, "hard");
  for (RunRecord& record : levels) record.constants = {{"matched_bits_deviation", 0.01}};  // of an earlier build
  EXPECT_EQ(comparable_runs(levels)[0].records[1].axes[1].label, "hard");
}

TEST(ComparableRuns, OfACellThatWasTunedTwiceTheNewestValueRemains) {
  const std::vector<ResolvedConstant> tuned{{"tuning_candidates:local.learning_rate", 4}};
  std::vector<RunRecord> records;
  for (const char* rate : {"0.5", "0.25"})
    for (const int seed : {1, 2}) records.push_back(run_of({.seed = seed, .rate = rate}, "top", tuned));
  const std::vector<ComparableRuns> studies = comparable_runs(records);
  ASSERT_EQ(studies.size(), 1u);
  ASSERT_EQ(studies[0].records.size(), 2u);
  EXPECT_THAT(studies[0].records[0].scenario, HasSubstr("learning_rate = 0.25"));
  EXPECT_THAT(studies[0].notes, ElementsAre(HasSubstr("2 runs were left out")));
}

TEST(ComparableRuns, ABudgetOfBitsIsNoDifference) {
  const auto run = [](const std::string& bits, const std::string& level) {
    RunRecord record = run_of({.more = "[stop]\nbits_up = " + bits + "\n"}, "top", {{"budget_bits", std::stod(bits)}});
    record.axes[0].label = level;
    return record;
  };
  EXPECT_EQ(comparable_runs({run("1000.0", "0.1"), run("2000.0", "1")}).size(), 1u);
  RunRecord fixed = run("1000.0", "0.1");
  fixed.constants.clear();
  EXPECT_THAT(names_of(comparable_runs({run("1000.0", "0.1"), fixed})),
              ElementsAre("stop.bits_up = 1000.0: 1", "stop.bits_up = a method's budget: 1"));
}

TEST(ComparableRuns, ScenarioFilesOfOneStoreAreStudiesUnlessTheirNamesAreTheAxis) {
  std::vector<RunRecord> records{run_of({.name = "first"}), run_of({.name = "second", .rounds = 7})};
  for (RunRecord& record : records) record.axes.clear();
  EXPECT_THAT(names_of(comparable_runs(records)), ElementsAre("second: 1", "first: 1"));
  EXPECT_EQ(comparable_runs(records, true).size(), 1u);
}

// A store with 40 rounds for three seeds and 20 rounds for two was once reported as one cell with "3 pairs".
TEST(ComparableRuns, AStudyHoldsRunsOfOneExperiment) {
  MadeStore made;
  const auto add = [&](int rounds, int seed) {
    for (const double value : {1.0, 2.0}) {
      const std::string part = value == 1 ? "kind = 'top_k'" : "kind = 'sign'";
      test::MadeRun run{value == 1 ? "top" : "sign", "0.1", static_cast<std::uint64_t>(seed), RunStatus::done, {{0, 4}}};
      for (int r = 0; r < rounds; ++r) run.rounds.emplace_back(10, value + 0.01 * seed * seed * value);
      run.scenario = scenario_of({.compressor = part, .rounds = rounds, .seed = seed});
      made.add(run);
    }
  };
  for (const int seed : {1, 2, 3}) add(40, seed);
  for (const int seed : {1, 2}) add(20, seed);
  const Study study = read_study(made.store());
  EXPECT_EQ(study.name, "rounds = 40");
  ASSERT_EQ(study.store.studies.size(), 2u);
  EXPECT_EQ(study.runs.size(), 6u);
  EXPECT_DOUBLE_EQ(compare_at_equal_bits(study, 0, Against::bits_up).at(0).budget_bits.mean, 400) << "all three pairs have 40 rounds";
  const Study other = read_study(made.store(), {.study = "rounds = 20"});
  EXPECT_EQ(other.runs.size(), 4u);
  EXPECT_EQ(compare_at_equal_bits(other, 0, Against::bits_up).at(0).seeds.size(), 2u);
  EXPECT_THROW((void)read_study(made.store(), {.study = "rounds = 30"}), ConfigError);
  EXPECT_EQ(read_studies(made.store()).size(), 2u);
  EXPECT_EQ(read_studies(made.store(), {.study = "rounds = 20"}).size(), 1u);
}

}  // namespace
}  // namespace fl
