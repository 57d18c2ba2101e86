// Tests that losses that are measured late give the end points that they give in their rounds.
#include "scenarios/experiment/late_losses.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "scenarios/results/end_point.hpp"
#include "scenarios/results/trace.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {
namespace {

// Messages whose length changes from round to round, minibatches, and clients that are absent.
std::string scenario(const std::string& compressor, const std::string& more = "") {
  return "name = 'late'\nrounds = 150\nprecision = 'float64'\n[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = "
         "'shuffled'\nclients = "
         "5\n"
         "[model]\nkind = 'logistic_regression'\nl2 = 'L/1e3'\n[local]\nkind = 'sgd'\nbatch = 8\nsteps = 2\nlearning_rate = '1/L'\n"
         "[participation]\nkind = 'uniform'\nfraction = 0.6\n[feedback.up]\nkind = 'ef14'\n[compressor.up]\n" +
         compressor + "\n[evaluate]\nevery = 2\ngradient = 'start'\n" + more;
}

RunResult run(const std::string& text, bool late, const CheckpointPlan& plan = {}, std::uint64_t stop_after = ~std::uint64_t{0}) {
  Cell cell = parse_cells(text, "late.toml").at(0);
  cell.scenario.evaluate.test_set = false;
  cell.scenario.evaluate.late_losses = late;
  CellRunner runner(DataCatalog(""), {.threads = 1});
  return runner.run(
      cell, [=](const RoundRow& row) { return row.round != stop_after; }, plan);
}

std::size_t num_measured(const RunResult& result) {
  return static_cast<std::size_t>(std::ranges::count_if(result.rows, [](const RoundRow& row) { return std::isfinite(row.train_loss); }));
}

void expect_same_end(const RunResult& late, const RunResult& usual, double budget, Against against) {
  for (const char* measure : {"train_loss", "f_gap"}) {
    const RunTrace a = make_trace(late.rows, measure, kDivergenceFactor), b = make_trace(usual.rows, measure, kDivergenceFactor);
    const EndPoint x = end_point(a, against, std::min(budget, a.end_of(against))),
                   y = end_point(b, against, std::min(budget, b.end_of(against)));
    EXPECT_EQ(x.value, y.value) << measure << ", " << to_string(against);
    EXPECT_EQ(x.last, y.last);
    EXPECT_EQ(x.deviation, y.deviation);
    EXPECT_EQ(x.net_change, y.net_change);
    EXPECT_EQ(x.num_evaluations, y.num_evaluations);
    EXPECT_EQ(x.oscillates, y.oscillates);
    EXPECT_EQ(x.diverges, y.diverges);
    EXPECT_TRUE(std::isfinite(x.value));
  }
}

constexpr const char* kHard = "kind = 'hard_threshold'\nthreshold = 0.05";

TEST(LateLosses, GiveTheSameEndPoints) {
  for (const char* compressor : {kHard, "kind = 'top_k'\nratio = 0.05", "kind = 'identity'"}) {
    const RunResult usual = run(scenario(compressor), false), late = run(scenario(compressor), true);
    EXPECT_EQ(late.record.checksum, usual.record.checksum);
    EXPECT_EQ(late.record.bits_up, usual.record.bits_up);
    EXPECT_EQ(late.record.train_loss, usual.record.train_loss) << "of the last round";
    EXPECT_EQ(late.record.f_gap, usual.record.f_gap);
    EXPECT_EQ(num_measured(usual), 76u);
    EXPECT_LT(num_measured(late), 40u);
    for (const Against against : {Against::round, Against::bits_up, Against::bits_both}) expect_same_end(late, usual, INFINITY, against);
  }
}

TEST(LateLosses, GiveTheSameEndPointsAtALimitOfBits) {
  const auto all = static_cast<double>(run(scenario(kHard), false).record.bits_up);
  for (const double share : {0.2, 0.5, 0.9}) {
    const std::string stop = "[stop]\nbits_up = " + std::to_string(share * all) + "\n";
    const RunResult usual = run(scenario(kHard, stop), false), late = run(scenario(kHard, stop), true);
    EXPECT_EQ(late.record.rounds, usual.record.rounds);
    EXPECT_LT(late.record.rounds, 150u);
    expect_same_end(late, usual, share * all, Against::bits_up);
    expect_same_end(late, usual, INFINITY, Against::bits_up);
  }
}

TEST(LateLosses, OfARunThatIsInterruptedAreMeasuredThen) {
  const std::filesystem::path folder = testing::TempDir() + "/fedbits_late_" + std::to_string(::getpid());
  CheckpointPlan plan;
  plan.file = folder / "run.checkpoint";
  EXPECT_EQ(run(scenario(kHard), true, plan, 137).record.status, RunStatus::interrupted);
  plan.resume = true;
  const RunResult resumed = run(scenario(kHard), true, plan), usual = run(scenario(kHard), false);
  EXPECT_EQ(resumed.record.status, RunStatus::done);
  for (const Against against : {Against::round, Against::bits_up, Against::bits_both}) expect_same_end(resumed, usual, INFINITY, against);
  std::filesystem::remove_all(folder);
}

TEST(LateLosses, OfAModelThatDivergesEndTheRunAsDiverged) {
  const std::string text = scenario("kind = 'identity'", "divergence_factor = 2\n");
  const std::string large = std::string(text).replace(text.find("'1/L'"), 5, "'400/L'");
  EXPECT_EQ(run(large, false).record.status, RunStatus::diverged);
  EXPECT_EQ(run(large, true).record.status, RunStatus::diverged);
}

// Two models of 12 MB are more than a run keeps: both are measured at once.
TEST(LateLosses, ManyLargeModelsAreNotKept) {
  std::size_t times = 0;
  LateLosses<double> late(
      {}, [&](std::span<const double> x) { return static_cast<double>(++times) + x[0]; }, 0.5);
  std::vector<RoundRow> rows;
  const std::vector<double> model(1'500'000, 7.0);
  for (std::uint64_t r = 0; r < 2; ++r) {
    rows.push_back({.round = r});
    late.keep(rows, {.rounds = static_cast<double>(r), .bits_up = 1, .bits = 1}, model);
    EXPECT_EQ(times, r == 0 ? 0u : 2u);
  }
  EXPECT_EQ(rows[1].train_loss, 9);
  EXPECT_EQ(rows[1].f_gap, 8.5);
  EXPECT_EQ(late.measure_all(rows), "");
  EXPECT_EQ(times, 2u);
}

}  // namespace
}  // namespace fl
