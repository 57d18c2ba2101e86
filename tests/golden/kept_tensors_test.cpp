// Tests tensors that stay with the clients (model.keep): what each client has after a round, what is sent, and what the server's model has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fl_core/config/error.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/golden/statistics_study.hpp"

namespace fl {
namespace {

using test::kStatistics;
using test::kWeights;
using test::OneRun;
using test::ScenarioText;

constexpr std::size_t kFirst = 16, kHead = 15;  // parameters of the first dense layer, and of the last one, which ends at kWeights
const std::vector<std::string> kUpdates = {"kind = 'gradient'\nlearning_rate = 0.5", "kind = 'gradient'\nbatch = 4\nlearning_rate = 0.05",
                                           "kind = 'sgd'\nbatch = 3\nsteps = 3\nlearning_rate = 0.2",
                                           "kind = 'sgd'\nbatch = 3\nsteps = 3\nlearning_rate = 0.2\nmomentum = 0.5\nproximal_mu = 0.3\n"
                                           "weight_decay = 0.1"};

class KeptTensors : public test::StatisticsStudy {
 protected:
  static void keep(ScenarioText& s, const std::string& patterns) { s.model += "\nkeep = [" + patterns + "]"; }
  [[nodiscard]] static std::vector<double> own_model(OneRun<double>& run, std::uint32_t client) {
    const std::vector<double> x = run.model();
    return run->process().probe().own_model(client, x);
  }
  [[nodiscard]] static std::vector<double> part(const std::vector<double>& x, std::size_t begin, std::size_t size) {
    return {x.begin() + static_cast<std::ptrdiff_t>(begin), x.begin() + static_cast<std::ptrdiff_t>(begin + size)};
  }
};

// With one client it makes no difference who has a parameter.
TEST_F(KeptTensors, OfOneClientAreThoseOfThePlainRun) {
  for (const std::string& local : kUpdates)
    for (const std::string patterns : {"'4.dense.*'", "'1.dense.*', '4.dense.*'", "'*.batch_norm.*'", "'1.*', '2.*.*s*'"}) {
      ScenarioText s = study(1);
      s.local = local;
      OneRun<double> plain(s.str());
      plain.play(1, 5);
      keep(s, patterns);
      OneRun<double> kept(s.str());
      ASSERT_FALSE(kept->round().ledger().total_up().bits > 0);
      kept.play(1, 5);
      const std::vector<double> own = own_model(kept, 0), expected = plain.model(), of_server = kept.model();
      for (std::size_t j = 0; j < own.size(); ++j) {
        EXPECT_NEAR(own[j], expected[j], 1e-12) << patterns << " with " << local << ", parameter " << j;
        EXPECT_NEAR(of_server[j], own[j], 1e-12) << "the mean of one client, parameter " << j;
      }
    }
}

// In the first round all clients begin at the same model, so that each one's kept tensors move as the plain run's update says.
TEST_F(KeptTensors, MoveByTheClientsOwnWork) {
  for (const std::string& local : kUpdates) {
    ScenarioText s = study(3);
    s.local = local;
    OneRun<double> plain(s.str());
    plain->process().probe().keep_updates(true);
    const std::vector<double> start = plain.model();
    plain.play(1, 1);
    const BatchView<const double> updates = plain->process().probe().updates(3, start.size());
    const double step = local.starts_with("kind = 'sgd'") ? 1 : plain->step_size();

    keep(s, "'1.dense.*', '4.dense.*'");
    OneRun<double> kept(s.str());
    kept.play(1, 1);
    std::vector<double> mean(start.size());
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::vector<double> own = own_model(kept, i);
      for (std::size_t j = 0; j < kWeights; ++j) {
        const bool stays = j < kFirst || j >= kWeights - kHead;
        if (stays) {
          EXPECT_NEAR(own[j], start[j] - step * updates.row(i)[j], 1e-13) << local << ", client " << i << ", parameter " << j;
        }
        mean[j] += kept.problem().weights()[i] * own[j];
      }
    }
    const std::vector<double> of_server = kept.model(), of_plain = plain.model();
    for (std::size_t j = 0; j < start.size(); ++j)
      EXPECT_NEAR(of_server[j], j < kWeights ? mean[j] : of_plain[j], 1e-13) << local << ", parameter " << j;
    kept.play(2, 4);
    std::set<double> values;
    for (std::uint32_t i = 0; i < 3; ++i) values.insert(own_model(kept, i)[0]);
    EXPECT_EQ(values.size(), 3u) << "every client has its own";
  }
}

TEST_F(KeptTensors, TakeNoBitsAndAreInNoMessage) {
  for (const std::string down : {"", "[compressor.down]\nsend = 'model'\n", "[compressor.down]\nkind = 'qsgd'\n"}) {
    ScenarioText s = study();
    s.more = down;
    OneRun<double> plain(s.str());
    plain.play(1, 2);
    keep(s, "'1.dense.*', '4.dense.*'");
    OneRun<double> kept(s.str());
    kept.play(1, 2);
    const Ledger &with = kept->round().ledger(), &without = plain->round().ledger();
    EXPECT_EQ(with.total_up().elements + 2 * 3 * (kFirst + kHead), without.total_up().elements) << down;
    EXPECT_LE(with.total_up().bits + 2 * 3 * 64 * (kFirst + kHead), without.total_up().bits + 2 * 3 * 16) << down;
    EXPECT_EQ(with.total_up_bits(UpCause::averaged), without.total_up_bits(UpCause::averaged)) << down;
    EXPECT_LT(with.round_down_bits(), without.round_down_bits()) << down;
    for (std::size_t j = 0; j < kFirst; ++j) EXPECT_EQ(kept->round().estimate()[j], 0) << down;
  }
}

TEST_F(KeptTensors, AreTheSameThroughTheWireOnAnyThreadsAndAfterAStop) {
  for (const std::string participation : {"kind = 'full'", "kind = 'uniform'\nclients = 2"}) {
    ScenarioText s = study();
    keep(s, "'1.dense.*', '*.weight'");
    s.local = kUpdates.back();
    s.up = "kind = 'top_k'\nk = 3";
    s.feedback = "kind = 'ef14'";
    s.participation = participation;
    s.rounds = 8;
    s.evaluate = "every = 1\noptimum = false\ngradient = 'every'\nclients_every = 1";
    const RunResult plain = test::run_text(s.str(), {.threads = 1}).front();
    const std::uint64_t least = OneRun<double>(s.str())->clients().least_bytes();
    for (const MachineOptions& machine :
         {MachineOptions{.threads = 3, .block = 1}, MachineOptions{.threads = 2, .block = 2, .materialise = true},
          MachineOptions{.threads = 2, .paging = {.memory_bytes = least, .file = {.folder = folder_}}}}) {
      const RunResult other = test::run_text(s.str(), machine).front();
      EXPECT_EQ(other.record.checksum, plain.record.checksum);
      EXPECT_EQ(other.record.bits_up, plain.record.bits_up);
      EXPECT_EQ(other.record.bits_down, plain.record.bits_down);
      EXPECT_EQ(other.rows.back().client_accuracy_mean, plain.rows.back().client_accuracy_mean);
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
    EXPECT_EQ(resumed.rows.back().client_accuracy_mean, plain.rows.back().client_accuracy_mean);
  }
}

// The gradient's norm is that of the shared parameters.
TEST_F(KeptTensors, AreNoPartOfTheGradientsNorm) {
  ScenarioText s = study(1);
  s.rounds = 1;
  s.evaluate = "every = 1\noptimum = false\ngradient = 'every'";
  OneRun<double> plain(s.str());
  plain->process().probe().keep_updates(true);
  plain.play(1, 1);
  const BatchView<const double> gradient = plain->process().probe().updates(1, kWeights + kStatistics);
  double expected = 0;
  for (std::size_t j = kFirst; j < kWeights - kHead; ++j) expected += gradient.row(0)[j] * gradient.row(0)[j];
  keep(s, "'1.dense.*', '4.dense.*'");
  EXPECT_NEAR(test::run_text(s.str()).front().rows.front().global_grad_norm_sq, expected, 1e-12 * expected);
}

TEST_F(KeptTensors, AreRefusedWhereTheyCannotBe) {
  const auto why = [this](const std::string& patterns, const std::string& local) -> std::string {
    ScenarioText s = study();
    keep(s, patterns);
    if (!local.empty()) s.local = local;
    try {
      OneRun<double> run(s.str());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why("'4.dens'", ""), testing::AllOf(testing::HasSubstr("model.keep"), testing::HasSubstr("4.dense.weight")));
  EXPECT_THAT(why("'*'", ""), testing::HasSubstr("model.keep: no tensor is left"));
  const std::string lsvrg = "kind = 'lsvrg'\nbatch = 2\nlearning_rate = 0.1";
  EXPECT_THAT(why("'4.dense.*'", lsvrg), testing::AllOf(testing::HasSubstr("model.keep"), testing::HasSubstr("\"sgd\" or \"gradient\"")));
  EXPECT_EQ(why("'*.running_*'", lsvrg), "") << "a running average is no weight";
}

}  // namespace
}  // namespace fl
