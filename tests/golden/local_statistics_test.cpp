// Tests running statistics that stay with the clients (server.statistics = "local"): compares them with PyTorch's, and tests their cost and
// which of them change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/measures/measure_statistics.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/golden/statistics_study.hpp"

namespace fl {
namespace {

using test::kStatistics;
using test::kSteps;
using test::kWeights;
using test::OneRun;
using test::ScenarioText;
using test::Trained;

const std::string kLocal = "kind = 'sgd'\nstatistics = 'local'";

class LocalStatistics : public test::StatisticsStudy {
 protected:
  [[nodiscard]] static std::vector<double> own_of(OneRun<double>& run, std::uint32_t client) {
    std::vector<double> x(kWeights + kStatistics);
    run->process().probe().put_kept(client, x.data());
    return statistics_of(x);
  }
};

TEST_F(LocalStatistics, AreThoseOfPyTorch) {
  for (const bool steps : {false, true}) {
    const std::string name = std::string("statistics of two clients stay with them, ") + (steps ? "two local steps" : "gradients");
    ScenarioText s = study(2);
    s.local = steps ? kSteps : "kind = 'gradient'\nlearning_rate = 1.6";
    s.server = steps ? kLocal : kLocal + "\nmomentum = 0.9";
    expect_as_pytorch(s, name);
    const Trained target = test::trained_by_pytorch(name);
    OneRun<double> run(s.str());
    run.play(1, static_cast<std::uint32_t>(target.losses.size()) - 1);
    std::vector<double> own = own_of(run, 0);
    const std::vector<double> second = own_of(run, 1);
    own.insert(own.end(), second.begin(), second.end());
    ASSERT_EQ(own.size(), target.own.size());
    for (std::size_t j = 0; j < own.size(); ++j) EXPECT_NEAR(own[j], target.own[j], 1e-11) << name << ", statistic " << j;

    s.rounds = static_cast<int>(target.losses.size()) - 1;
    s.evaluate += "\nclients_every = 1";
    const RoundRow row = test::run_text(s.str()).front().rows.back();
    const Spread accuracy = spread_of(target.accuracy);
    EXPECT_DOUBLE_EQ(row.client_accuracy_mean, accuracy.mean) << name;
    EXPECT_DOUBLE_EQ(row.client_accuracy_worst, accuracy.smallest) << name;
  }
}

TEST_F(LocalStatistics, TakeNoBitsAfterTheFirstModel) {
  for (const std::string down : {"", "[compressor.down]\nsend = 'model'\n", "[compressor.down]\nkind = 'qsgd'\n"}) {
    ScenarioText s = study();
    s.up = "kind = 'top_k'\nk = 5";
    s.feedback = "kind = 'ef14'";
    s.more = down;
    std::vector<std::uint64_t> up, first_down, next_down;
    for (const std::string& server : {kLocal, std::string("kind = 'sgd'")}) {
      s.server = server;
      OneRun<double> run(s.str());
      run.play(1, 1);
      const Ledger& ledger = run->round().ledger();
      up.push_back(ledger.total_up().bits);
      EXPECT_EQ(ledger.total_up_bits(UpCause::averaged), server == kLocal ? 0 : 3 * 64 * kStatistics);
      EXPECT_EQ(ledger.total_up().elements, 3 * (5 + (server == kLocal ? 0 : kStatistics)));
      EXPECT_LT(ledger.total_up_bits(UpCause::headers), 3u * 24);
      first_down.push_back(ledger.total_down_bits());
      run.play(2, 2);
      next_down.push_back(ledger.round_down_bits());
    }
    EXPECT_EQ(up[0] + 3 * 64 * kStatistics, up[1]) << down;
    EXPECT_NEAR(static_cast<double>(first_down[0]), static_cast<double>(first_down[1]), 3 * 8) << down << ": a header";
    EXPECT_LE(next_down[0] + 3 * 64 * kStatistics, next_down[1] + 3 * 8) << down;
  }
}

// Coordinates that are not sent to anyone do not count as changed.
TEST_F(LocalStatistics, AreNoChangesOfTheModel) {
  ScenarioText s = study();
  s.up = "kind = 'top_k'\nk = 1";
  s.server = kLocal;
  OneRun<double> run(s.str());
  run.play(1, 1);
  const std::uint64_t before = run->round().ledger().total_down_bits();
  run.play(2, 2);
  EXPECT_LE(run->round().ledger().total_down_bits() - before, 3u * (3 * (64 + 6) + 24)) << "at most three weights moved";
}

TEST_F(LocalStatistics, OfAbsentClientsStay) {
  ScenarioText s = study();
  s.server = kLocal;
  s.local = kSteps;
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  const std::vector<double> start = statistics_of(run.model());
  std::vector<std::vector<double>> before(3, start);
  std::size_t absent = 0;
  for (std::uint32_t round = 1; round <= 8; ++round) {
    run.play(round, round);
    const std::vector<std::uint32_t>& cohort = run->round().plan().cohort;
    std::vector<double> mean(kStatistics);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const bool there = std::ranges::find(cohort, i) != cohort.end();
      const std::vector<double> now = own_of(run, i);
      EXPECT_EQ(now == before[i], !there) << "client " << i << ", round " << round;
      absent += there ? 0 : 1;
      before[i] = now;
      for (std::size_t j = 0; j < kStatistics; ++j) mean[j] += run.problem().weights()[i] * now[j];
    }
    const std::vector<double> of_model = statistics_of(run.model());
    for (std::size_t j = 0; j < kStatistics; ++j) EXPECT_NEAR(of_model[j], mean[j], 1e-14) << "round " << round;
  }
  EXPECT_EQ(absent, 8u);
}

TEST_F(LocalStatistics, OfRefusedClientsStay) {
  ScenarioText s = study();
  std::ostringstream rows;
  for (const char* row :
       {"0 1:1e170", "1 1:-1e170", "2 1:1e170", "0 1:1", "1 1:1 2:1", "0 2:2", "1 2:-1 3:1", "2 3:2", "2 1:1 3:1", "1 1:-2"})
    rows << row << '\n';
  write("rows", rows.str());
  s.partition = "kind = 'contiguous'\nclients = 2";
  s.server = kLocal;
  OneRun<double> run(s.str());
  const std::vector<double> start = statistics_of(run.model());
  run.play(1, 2);
  EXPECT_EQ(run->round().refused(), 1u);
  EXPECT_EQ(own_of(run, 0), start);
  EXPECT_NE(own_of(run, 1), start);
}

// A client that says nothing has computed all the same.
TEST_F(LocalStatistics, OfSilentClientsMove) {
  ScenarioText s = study();
  s.server = kLocal;
  s.feedback = "kind = 'lag'\nxi = 1e9";
  OneRun<double> run(s.str());
  run.play(1, 3);
  const std::vector<double> before = own_of(run, 1);
  run.play(4, 4);
  EXPECT_EQ(run->round().ledger().round_up().elements, 0u);
  EXPECT_NE(own_of(run, 1), before);
}

TEST_F(LocalStatistics, AreTheSameThroughTheWireOnAnyThreadsAndAfterAStop) {
  for (const std::string participation : {"kind = 'full'", "kind = 'uniform'\nclients = 2"}) {
    ScenarioText s = study();
    s.server = kLocal;
    s.local = kSteps;
    s.up = "kind = 'top_k'\nk = 5";
    s.feedback = "kind = 'ef14'";
    s.participation = participation;
    s.rounds = 8;
    s.evaluate += "\nclients_every = 1";
    const RunResult plain = test::run_text(s.str(), {.threads = 1}).front();
    const std::uint64_t least = OneRun<double>(s.str())->clients().least_bytes();
    for (const MachineOptions& machine :
         {MachineOptions{.threads = 3, .block = 1}, MachineOptions{.threads = 2, .block = 2, .materialise = true},
          MachineOptions{.threads = 2, .paging = {.memory_bytes = least, .file = {.folder = folder_}}}}) {
      const RunResult other = test::run_text(s.str(), machine).front();
      EXPECT_EQ(other.record.checksum, plain.record.checksum);
      EXPECT_EQ(other.record.bits_up, plain.record.bits_up);
      EXPECT_EQ(other.record.bits_down, plain.record.bits_down);
    }
    CheckpointPlan plan;
    plan.file = folder_ / "run.checkpoint";
    CellRunner runner(DataCatalog(""), {});
    const Cell cell = parse_cells(s.str(), "test.toml").at(0);
    (void)runner.run(
        cell, [](const RoundRow& row) { return row.round != 3; }, plan);
    plan.resume = true;
    const RunResult resumed = runner.run(cell, {}, plan);
    EXPECT_EQ(resumed.record.checksum, plain.record.checksum);
    EXPECT_EQ(resumed.record.bits_down, plain.record.bits_down);
    EXPECT_EQ(resumed.rows.back().client_accuracy_mean, plain.rows.back().client_accuracy_mean);
    EXPECT_EQ(resumed.rows.back().train_loss, plain.rows.back().train_loss);
  }
}

TEST_F(LocalStatistics, AreRefusedForModelsWithoutAny) {
  ScenarioText s = study();
  s.start = "kind = 'zero'";
  s.model = "kind = 'neural_network'\nlayers = ['dense(4)', 'tanh', 'dense(classes)']\nloss = 'softmax_cross_entropy'";
  for (const std::string value : {"local", "average"}) {
    s.server = "kind = 'sgd'\nstatistics = '" + value + "'";
    try {
      OneRun<double> run(s.str());
      ADD_FAILURE() << value << " was taken";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("server.statistics"), testing::HasSubstr("batch_norm")));
    }
  }
}

}  // namespace
}  // namespace fl
