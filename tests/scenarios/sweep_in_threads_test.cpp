// Tests sweeps on the CPU whose workers are threads of this process, for programs that must not fork.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_runner.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = R"(
name = 'threads'
rounds = 6
[data]
name = 'mushrooms'
[partition]
kind = 'shuffled'
clients = 4
[model]
kind = 'logistic_regression'
l2 = 0.01
[local]
kind = 'gradient'
batch = 8
learning_rate = 0.5
[feedback.up]
kind = 'ef14'
[sweep]
seeds = 3
[[sweep.axis]]
key = 'compressor.up'
values = [{ label = 'none', kind = 'identity' }, { label = 'top', kind = 'top_k', ratio = 0.1 }]
)";

SweepSettings settings_of(Workers kind, int workers, int threads) {
  SweepSettings settings;
  settings.kind = kind;
  settings.workers = workers;
  settings.threads = threads;
  return settings;
}

// Returns the checksum of each run's final model, by the hash of the run.
std::map<std::string, std::string> checksums(Workers kind, int workers, int threads) {
  const fs::path folder = fs::path(testing::TempDir()) / "fedbits-sweep-in-threads";
  fs::remove_all(folder);
  RunStore store = RunStore::open(folder, RunStore::Mode::create);
  SweepRunner sweep(parse_cells(kText, "test.toml"), DataCatalog(""), settings_of(kind, workers, threads));
  sweep.check();
  std::vector<std::size_t> all(sweep.cells().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  sweep.run(all, store, {});
  std::map<std::string, std::string> found;
  for (const RunRecord& record : store.list()) {
    EXPECT_EQ(record.status, RunStatus::done) << record.message;
    found[record.run] = record.checksum;
  }
  return found;
}

TEST(SweepInThreads, ResultsAreThoseOfProcesses) {
  const std::map<std::string, std::string> expected = checksums(Workers::processes, 2, 1);
  EXPECT_EQ(expected.size(), 6u);
  EXPECT_EQ(checksums(Workers::threads, 1, 1), expected);
  EXPECT_EQ(checksums(Workers::threads, 3, 2), expected);
}

TEST(SweepInThreads, ThreadsAreNeverTriedBeforeTheyRun) {
  SweepRunner sweep(parse_cells(kText, "test.toml"), DataCatalog(""), settings_of(Workers::threads, 4, 1));
  sweep.check();
  EXPECT_EQ(sweep.fit(std::uint64_t{1} << 40), 4);
  EXPECT_EQ(sweep.fit(1), 1);  // one run may always start
}

TEST(SweepInThreads, CellsAreTriedInThreads) {
  SweepRunner sweep(parse_cells(kText, "test.toml"), DataCatalog(""), settings_of(Workers::threads, 2, 1));
  sweep.check();
  const std::vector<Trial> trials = sweep.try_out({0, 3}, 0.05, {});
  ASSERT_EQ(trials.size(), 2u);
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.failure, "");
    EXPECT_EQ(trial.calibration.total_rounds, 6u);
    EXPECT_GT(trial.calibration.bits_up, 0);
    EXPECT_GE(trial.peak_bytes, trial.start_bytes);
  }
  EXPECT_GT(trials[0].calibration.bits_up, trials[1].calibration.bits_up);
}

}  // namespace
}  // namespace fl
