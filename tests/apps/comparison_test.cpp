#include "apps/fedbits/comparison.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace fl {
namespace {

RunRecord make_run(const std::string& alpha, const std::string& compressor, std::uint64_t seed, double f_gap, std::uint64_t bits_up) {
  RunRecord run{.run = alpha + compressor + std::to_string(seed), .name = "x", .seed = seed, .status = RunStatus::done};
  run.f_gap = f_gap;
  run.bits_up = bits_up;
  run.bits_down = 1000;
  run.axes = {{"partition.alpha", alpha}, {"compressor.up", compressor}};
  return run;
}

std::vector<RunRecord> small_sweep() {
  std::vector<RunRecord> runs;
  for (const char* alpha : {"0.1", "100"})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      runs.push_back(make_run(alpha, "none", seed, 0.25, 32000 * seed));
      runs.push_back(make_run(alpha, "top-1%", seed, 0.5 + 0.01 * static_cast<double>(seed), 16000));
    }
  return runs;
}

std::string printed(const Table& table) {
  std::ostringstream out;
  print(table, out);
  return out.str();
}

// The half width of two values 0.51 and 0.52 is 12.706 * 0.00707 / sqrt(2) = 0.0635; the ratios 2 and 4 of the two seeds have mean 3.
TEST(Comparison, MeansOverSeedsAndPairedRatios) {
  EXPECT_EQ(printed(comparison_table(small_sweep())),
            "partition.alpha  compressor.up  runs           f_gap  bits up  bits down  fewer up\n"
            "---------------  -------------  ----  --------------  -------  ---------  --------\n"
            "0.1              none              2       0.25 +- 0  48 kbit     1 kbit        1x\n"
            "                 top-1%            2  0.515 +- 0.064  16 kbit     1 kbit        3x\n"
            "\n"
            "100              none              2       0.25 +- 0  48 kbit     1 kbit        1x\n"
            "                 top-1%            2  0.515 +- 0.064  16 kbit     1 kbit        3x\n");
}

TEST(Comparison, ACellWithADivergedRunHasNoMean) {
  std::vector<RunRecord> runs = small_sweep();
  runs[1].status = RunStatus::diverged;
  runs[4].status = RunStatus::interrupted;
  const Table table = comparison_table(runs);
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"", "top-1%", "1/2 diverged"}));
  EXPECT_EQ(table.rows[3], (std::vector<std::string>{"100", "none", "1/2 interrupted"}));
  EXPECT_EQ(table.rows[4].back(), "-");  // its baseline did not end
  EXPECT_EQ(table.rows[0].back(), "1x");
}

TEST(Comparison, UnmeasuredColumnsAndTheRatioAreLeftOut) {
  std::vector<RunRecord> runs = {make_run("0.1", "a", 1, kNotMeasured, 5), make_run("0.1", "b", 1, kNotMeasured, 5)};
  const Table table = comparison_table(runs);
  ASSERT_EQ(table.columns.size(), 5u);
  EXPECT_EQ(table.columns[2].title, "runs");
  EXPECT_EQ(table.columns[3].title, "bits up");
  runs[1].test_accuracy = 0.5;
  EXPECT_EQ(comparison_table(runs).columns[3].title, "test_accuracy");
  EXPECT_EQ(comparison_table(runs).rows[0][3], "-");
  EXPECT_EQ(comparison_table(runs, {.measures = {"nonsense", "rounds"}, .baseline = "b"}).columns.back().title, "fewer up");
}

TEST(Comparison, RunsWithoutAxesAndOfSeveralScenarios) {
  RunRecord one{.run = "1", .name = "one", .seed = 1, .status = RunStatus::done};
  RunRecord two{.run = "2", .name = "two", .seed = 1, .status = RunStatus::done};
  EXPECT_EQ(comparison_table({one}).rows[0][0], "one");
  const Table table = comparison_table({one, two});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1][0], "two");
  EXPECT_TRUE(comparison_table({}).rows.empty());
}

TEST(Comparison, TheSeedIsNoAxis) {
  std::vector<RunRecord> runs = {make_run("0.1", "a", 1, 1, 5), make_run("0.1", "a", 2, 3, 5)};
  runs[0].axes.push_back({"seed", "1"});
  runs[1].axes.push_back({"seed", "2"});
  const Table table = comparison_table(runs);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][2], "2");
}

}  // namespace
}  // namespace fl
