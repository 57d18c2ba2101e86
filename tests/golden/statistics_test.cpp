// Tests running statistics of batch normalisation over rounds: compares them with PyTorch's (tests/fixtures/statistics.txt, which
// make_statistics.py in the same folder writes), and tests that only their mean ever changes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "compressors/codec/codec.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/golden/statistics_study.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::kStatistics;
using test::kSteps;
using test::kUnits;
using test::kWeights;
using test::Method;
using test::OneRun;
using test::ScenarioText;

class RunningStatistics : public test::StatisticsStudy {};

TEST_F(RunningStatistics, AreThoseOfPyTorch) {
  ScenarioText s = study(1);
  expect_as_pytorch(s, "a gradient of one client");
  s = study();
  s.local = "kind = 'gradient'\nlearning_rate = 1.6";
  s.server = "kind = 'sgd'\nmomentum = 0.9";
  expect_as_pytorch(s, "gradients of uneven clients under server momentum");
  s.local = "kind = 'gradient'\nlearning_rate = 1";
  s.server = "kind = 'adam'\nlearning_rate = 0.1";
  expect_as_pytorch(s, "gradients of uneven clients under adam");
  s.local = kSteps;
  expect_as_pytorch(s, "two local steps under adam");
  s.server = "kind = 'sgd'";
  expect_as_pytorch(s, "two local steps");
  s.local = "kind = 'sgd'\nsteps = 2\nlearning_rate = 0.3\nweight_decay = 0.1";
  s.server = "kind = 'sgd'\nmomentum = 0.9";
  expect_as_pytorch(s, "two local steps with weight decay under server momentum");
}

// Their mean is the same whatever steps the server takes along the weights, after a round from the same start.
TEST_F(RunningStatistics, AreNoServersToStepAlong) {
  ScenarioText s = study();
  s.local = kSteps;
  const std::vector<double> mean = statistics_after(s, 1);
  for (const std::string server : {"kind = 'adam'", "kind = 'yogi'", "kind = 'sign_sgd'\nlearning_rate = 0.01",
                                   "kind = 'sgd'\nlearning_rate = 3", "kind = 'sgd'\nweight_decay = 0.1\nnesterov = 'code'"}) {
    s.server = server;
    EXPECT_EQ(statistics_after(s, 1), mean) << server;
  }
}

// Unnormalised weights of a cohort: the statistics are a mean all the same.
TEST_F(RunningStatistics, AreAMeanWhateverTheWeights) {
  ScenarioText s = study();
  s.participation = "kind = 'uniform'\nclients = 2";
  const std::vector<double> normalised = statistics_after(s, 1);
  s.participation += "\nestimate = 'unbiased'";
  const std::vector<double> unbiased = statistics_after(s, 1);
  for (std::size_t j = 0; j < kStatistics; ++j) EXPECT_NEAR(unbiased[j], normalised[j], 1e-14);
}

// Clipping leaves them alone: they are not part of the vector that is clipped, and not counted in its norm.
TEST_F(RunningStatistics, AreNotClipped) {
  const auto after = [this](const std::string& more) {
    ScenarioText s = study();
    s.local = kSteps;
    s.more = more;
    OneRun<double> run(s.str());
    run.play(1, 1);
    return run.model();
  };
  const std::vector<double> plain = after("");
  for (const std::string side : {"client", "server"}) {
    const std::vector<double> clipped = after("[postprocessor]\nkind = 'norm_clipping'\nlimit = 1e-3\nside = '" + side + "'\n");
    EXPECT_EQ(statistics_of(clipped), statistics_of(plain)) << side;
    EXPECT_NE(clipped.front(), plain.front()) << side;
  }
  // One client: its statistics move by about 1, which the norm of its update would show.
  ScenarioText one = study(1);
  one.local = kSteps;
  OneRun<double> before(one.str());
  const std::vector<double> start = before.model();
  one.more = "[postprocessor]\nkind = 'norm_clipping'\nlimit = 1e-3\n";
  OneRun<double> run(one.str());
  run.play(1, 1);
  double moved = 0;
  for (std::size_t j = 0; j < kWeights; ++j) moved += (run.model()[j] - start[j]) * (run.model()[j] - start[j]);
  EXPECT_NEAR(std::sqrt(moved), 1e-3, 1e-12);
}

// ---- full gradients move them ----

// MARINA whose coin always falls on the full gradient, and the first round of MVR, are gradients of all rows.
TEST_F(RunningStatistics, MoveWithFullGradientsThatClientsSend) {
  ScenarioText s = study();
  const std::string gamma = "\nlearning_rate = 0.5";
  s.local = "kind = 'gradient'" + gamma;
  const std::vector<double> one = statistics_after(s, 1), four = statistics_after(s, 4);
  EXPECT_NE(one, four);
  s.local = "kind = 'gradient_difference'\nbatch = 2" + gamma;
  s.feedback = "kind = 'marina'\np = 1";
  const std::vector<double> marina = statistics_after(s, 4);
  for (std::size_t j = 0; j < kStatistics; ++j) EXPECT_NEAR(marina[j], four[j], 1e-14) << "statistic " << j;
  s.local = "kind = 'mvr'\nbatch = 2" + gamma;
  s.feedback = "kind = 'dasha'";
  EXPECT_EQ(statistics_after(s, 1), one);
}

// ---- no operator and no memory sees them ----

std::vector<Method> methods_of_networks() {
  std::vector<Method> methods = test::methods();
  std::erase_if(methods, [](const Method& m) {
    return m.local.find("optimum") != std::string::npos || m.local.find("batch = 1") != std::string::npos;  // a variance needs two rows
  });
  const auto replace = [](std::string& keys, const std::string& from, const std::string& by) {
    if (const std::size_t at = keys.find(from); at != std::string::npos) keys.replace(at, from.size(), by);
  };
  for (Method& m : methods) {
    if (m.local.find("epochs") != std::string::npos) replace(m.local, "batch = 3", "batch = 4");  // no minibatch of one row
    replace(m.up, "k = 60", "k = 9");                                                             // of 39 weights
  }
  methods.push_back({"lsvrg", "kind = 'ef14'", "kind = 'lsvrg'\nbatch = 2\np = 0.5\nlearning_rate = 0.05", test::kTop, ""});
  methods.push_back({"hard_threshold", "kind = 'ef14'", test::kGradient, "kind = 'hard_threshold'\nthreshold = 0.001", ""});
  methods.push_back({"perturbed", "kind = 'power_ef'\nsteps = 2\nperturbation = 0.1", test::kGradient, test::kTop, ""});
  methods.push_back({"buckets", "kind = 'ef14'", test::kGradient, "kind = 'qsgd'\nscaled = true\nscope = 'bucket'\nbucket = 7", ""});
  methods.push_back(
      {"tensors", "kind = 'ef21'", test::kGradient, "kind = 'top_k'\nratio = 0.5\nscope = 'tensor'\nexclude = ['1.dense.bias']", ""});
  return methods;
}

class StatisticsOfMethods : public RunningStatistics, public testing::WithParamInterface<Method> {
 protected:
  [[nodiscard]] ScenarioText text() const {
    const Method& m = GetParam();
    ScenarioText s = study();
    s.local = m.local;
    s.up = m.up;
    s.feedback = m.feedback;
    if (const std::string all = "[participation]\n"; m.more.starts_with(all)) {
      s.participation = "kind = 'uniform'\nclients = 2";
      const std::size_t next = m.more.find('[', 1);
      s.more = next == std::string::npos ? "" : m.more.substr(next);
    } else if (m.more.starts_with("[server]")) {
      s.server = m.more.substr(9);
    } else {
      s.more = m.more;
    }
    s.rounds = 6;
    return s;
  }
};

TEST_P(StatisticsOfMethods, LeaveNoTraceInMessagesStateAndEstimates) {
  OneRun<double> run(text().str());
  std::vector<double> before = run.model();
  for (std::uint32_t r = 1; r <= 6; ++r) {
    run.play(r, r);
    for (std::size_t c = 0; c < run->exchange().channels.size(); ++c) {
      const Scope& scope = run->exchange().channels[c].scope;
      EXPECT_EQ(scope.segments.back().end <= kWeights && (scope.excluded.empty() || scope.excluded.back().end <= kWeights), true);
      EXPECT_EQ(scope.unshared.size(), 2u);
    }
    for (std::size_t j = kWeights; j < kWeights + kStatistics; ++j) EXPECT_EQ(run->round().estimate()[j], 0) << "round " << r;
    const std::vector<double> after = run.model();
    EXPECT_TRUE(std::all_of(after.begin(), after.end(), [](double x) { return std::isfinite(x); }));
    for (std::size_t u = kWeights + kUnits; u < after.size(); ++u) EXPECT_GT(after[u], 0) << "a variance";
    before = after;
  }
  const std::string more[] = {"error", "shift",   "velocity",  "momentum",    "control",
                              "moved", "tracker", "last_sent", "accumulated", "correction"};
  for (const std::string& slot : more) {
    if (!run->clients().has_slot(slot)) continue;
    for (std::uint32_t client = 0; client < 3; ++client) {
      const std::span<const double> row = run->clients().of_client(slot, client);
      for (std::size_t j = kWeights; j < row.size() && row.size() == kWeights + kStatistics; ++j)
        EXPECT_EQ(row[j], 0) << slot << " of client " << client;
    }
  }
}

TEST_P(StatisticsOfMethods, AreTheSameThroughTheWireOnAnyThreadsAndAfterAStop) {
  const std::string text = this->text().str();
  const RunResult plain = test::run_text(text, {.threads = 1}).front();
  for (const MachineOptions& machine :
       {MachineOptions{.threads = 3, .block = 1}, MachineOptions{.threads = 2, .block = 2, .materialise = true}}) {
    const RunResult other = test::run_text(text, machine).front();
    EXPECT_EQ(other.record.checksum, plain.record.checksum);
    EXPECT_EQ(other.record.bits_up, plain.record.bits_up);
    EXPECT_EQ(other.record.bits_down, plain.record.bits_down);
  }
  CheckpointPlan plan;
  plan.file = folder_ / "run.checkpoint";
  CellRunner runner(DataCatalog(""), {});
  const Cell cell = parse_cells(text, "test.toml").at(0);
  (void)runner.run(
      cell, [](const RoundRow& row) { return row.round != 3; }, plan);
  plan.resume = true;
  EXPECT_EQ(runner.run(cell, {}, plan).record.checksum, plain.record.checksum);
}

INSTANTIATE_TEST_SUITE_P(Methods, StatisticsOfMethods, testing::ValuesIn(methods_of_networks()),
                         [](const auto& one) { return one.param.label; });

// ---- what they cost ----

TEST_F(RunningStatistics, CostTheirRawBitsBesideTheMessage) {
  ScenarioText s = study();
  s.up = "kind = 'top_k'\nk = 5";
  s.feedback = "kind = 'ef14'";
  OneRun<double> run(s.str());
  run.play(1, 1);
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const codec::Channel<double> channel{run->runner().payload(0, i), &run->exchange().channels[0].scope};
    const std::uint64_t of_weights = codec::encoded_bits<double>(std::span(&channel, 1));
    EXPECT_EQ(channel.payload->num_sent, 5u) << "one segment: the weights";
    EXPECT_EQ(codec::encoded_bits<double>(std::span(&channel, 1), {}, kStatistics), of_weights + 64 * kStatistics);
    EXPECT_EQ(run->runner().averaged(i).size(), kStatistics);
    bits += of_weights + 64 * kStatistics;
  }
  EXPECT_EQ(run->round().ledger().total_up().bits, bits);
  const Ledger& ledger = run->round().ledger();
  EXPECT_EQ(ledger.total_up_bits(UpCause::averaged), 3 * 64 * kStatistics);
  EXPECT_EQ(ledger.total_up_bits(UpCause::headers), bits - 3 * 64 * kStatistics - ledger.total_channel_bits()[0]);
  EXPECT_LT(ledger.total_up_bits(UpCause::headers), 3u * 24);
  EXPECT_EQ(run->round().ledger().total_up().elements, 3 * (5 + kStatistics));
}

// Slots and memories that are sent have no numbers at the statistics' places.
TEST_F(RunningStatistics, AreNoPartOfSlotsAndMemoriesThatAreSent) {
  ScenarioText s = study();
  s.local = "kind = 'scaffold'\nsteps = 2\nlearning_rate = 0.1";
  s.feedback = "kind = 'scaffold'";
  OneRun<double> run(s.str());
  run.play(1, 2);
  EXPECT_EQ(run->round().ledger().total_down_bits(DownCause::slots), 2 * 3 * 64 * kWeights);
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  s.feedback = "kind = 'ef14'";
  s.up = "kind = 'top_k'\nk = 2";
  s.participation = "kind = 'cyclic'\nclients = 2\nabsent = 'server'";
  OneRun<double> other(s.str());
  other.play(1, 5);
  const Ledger& ledger = other->round().ledger();
  EXPECT_EQ(ledger.total_up_bits(UpCause::absence), 5 * 2 * 64 * kWeights);
  EXPECT_GT(ledger.total_down_bits(DownCause::absence), 0u);
  EXPECT_EQ(ledger.total_down_bits(DownCause::absence) % (64 * kWeights), 0u);
}

TEST_F(RunningStatistics, OfSilentClientsStayWithThem) {
  ScenarioText s = study();
  s.feedback = "kind = 'lag'\nxi = 1e9";
  OneRun<double> run(s.str());
  run.play(1, 3);
  const std::vector<double> before = statistics_of(run.model());
  const std::uint64_t bits = run->round().ledger().total_up().bits;
  run.play(4, 4);
  EXPECT_EQ(run->round().ledger().total_up().bits - bits, 3u * 8) << "a header each";
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(run->runner().averaged(i).empty());
  EXPECT_EQ(statistics_of(run.model()), before);
}

TEST_F(RunningStatistics, ArriveExactlyThroughACompressedDownlink) {
  for (const std::string down : {"kind = 'top_k'\nk = 3", "kind = 'identity'\nformat = 'fp16'", "kind = 'qsgd'"}) {
    ScenarioText s = study();
    s.more = "[compressor.down]\n" + down + "\n";
    OneRun<double> run(s.str());
    run.play(1, 4);
    const std::vector<double> mean = statistics_of(run.model());
    run.play(5, 5);
    const std::span<const double> w = run->downlink().reference();
    EXPECT_EQ(std::vector<double>(w.begin() + kWeights, w.end()), mean) << down;
  }
}

TEST_F(RunningStatistics, ThatAreNotFiniteRefuseTheClient) {
  ScenarioText s = study();
  std::ostringstream rows;
  for (const char* row :
       {"0 1:1e170", "1 1:-1e170", "2 1:1e170", "0 1:1", "1 1:1 2:1", "0 2:2", "1 2:-1 3:1", "2 3:2", "2 1:1 3:1", "1 1:-2"})
    rows << row << '\n';
  write("rows", rows.str());
  s.rounds = 2;
  s.partition = "kind = 'contiguous'\nclients = 2";
  const RunResult result = test::run_text(s.str()).front();
  EXPECT_EQ(result.rows[1].refused, 1u);
  OneRun<double> run(s.str());
  run.play(1, 2);
  for (const double x : run.model()) EXPECT_TRUE(std::isfinite(x));
}

// The drift of clients is that of their weights.
TEST_F(RunningStatistics, AreNoPartOfTheDissimilarityOfUpdates) {
  ScenarioText s = study();
  s.local = kSteps;
  s.rounds = 1;
  s.evaluate += "\nupdates_every = 1";
  const RunResult result = test::run_text(s.str()).front();
  OneRun<double> run(s.str());
  run->runner().keep_updates(true);
  run.play(1, 1);
  const BatchView<const double> updates = run->runner().updates(3, kWeights + kStatistics);
  for (std::uint32_t k = 0; k < 3; ++k)
    for (std::size_t j = kWeights; j < kWeights + kStatistics; ++j) EXPECT_EQ(updates.row(k)[j], 0);
  EXPECT_GT(result.rows[1].update_dissimilarity, 1);
}

}  // namespace
}  // namespace fl
