// Tests sweeps whose runs share the GPU: each run gives the same result as alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "fl_core/memory/cuda/memory.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = R"(
name = 'shared'
rounds = 3
[data]
name = 'mushrooms'
rows = 120
test = 'none'
[partition]
kind = 'shuffled'
clients = 4
[model]
kind = 'mlp'
hidden = [5]
[local]
kind = 'sgd'
batch = 6
steps = 2
learning_rate = 0.1
[feedback.up]
kind = 'ef14'
[evaluate]
every = 1
[sweep]
seeds = 2
[[sweep.axis]]
key = 'compressor.up'
values = [{ label = 'none', kind = 'identity' }, { label = 'hard', kind = 'hard_threshold', threshold = 0.02 }, { label = 'top', kind = 'top_k', ratio = 0.1 }]
)";

std::vector<Cell> cells() { return parse_cells(kText, "test.toml"); }

TEST(GpuSweep, RunsThatShareTheDeviceGiveWhatTheyGiveAlone) {
  FL_NEED_DATA(path, "libsvm/mushrooms");
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const DataCatalog catalog("");
  std::map<std::string, std::string> alone;
  CellRunner runner(catalog, {.threads = 1, .device = Device::cuda});
  for (const Cell& cell : cells()) {
    const RunRecord record = runner.run(cell, {}).record;
    alone[record.run] = record.checksum;
  }
  const fs::path folder = fs::path(testing::TempDir()) / "fedbits-gpu-sweep";
  fs::remove_all(folder);
  RunStore store = RunStore::open(folder.string(), RunStore::Mode::create);
  SweepRunner sweep(cells(), catalog, {.workers = 3, .device = Device::cuda, .checkpoints = {}});
  sweep.check();
  EXPECT_EQ(sweep.fit_device(cuda::free_bytes_of_device()), 3);
  std::map<std::string, std::string> together;
  SweepEvents events;
  events.ended = [&](std::size_t, const RunRecord& record) {
    EXPECT_EQ(record.status, RunStatus::done) << record.message;
    together[record.run] = record.checksum;
  };
  sweep.run({0, 1, 2, 3, 4, 5}, store, events);
  EXPECT_EQ(together.size(), alone.size());
  for (const auto& [run, checksum] : alone)
    EXPECT_TRUE(test::same_value({.what = "run " + run, .on_first = "alone", .on_second = "beside others"}, "checksum of the model",
                                 checksum, together[run]));
  EXPECT_THROW((void)sweep.fit_device(1000), ConfigError) << "a GPU without memory";
  fs::remove_all(folder);
}

TEST(GpuSweep, TakesAsManyRunsAsFit) {
  FL_NEED_DATA(path, "libsvm/mushrooms");
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const auto fitting = [](double runs) {
    SweepRunner sweep(cells(), DataCatalog(""), {.workers = 3, .device = Device::cuda, .checkpoints = {}});
    sweep.check();
    EXPECT_THROW((void)sweep.try_out({0}, 0.01, {}), Error) << "in processes that would share the GPU";
    const DeviceNeed& need = sweep.device_need();
    EXPECT_GT(need.data_bytes, 10'000u) << "held once by all runs";
    const double bytes = static_cast<double>(need.data_bytes) + runs * static_cast<double>(need.own_bytes());
    return sweep.fit_device(static_cast<std::uint64_t>(bytes / 0.9) + 16);
  };
  EXPECT_EQ(fitting(1), 1);
  EXPECT_EQ(fitting(2.9), 2);
  EXPECT_EQ(fitting(3), 3);
  EXPECT_EQ(fitting(30), 3);
  EXPECT_THROW((void)fitting(0.9), ConfigError);
}

}  // namespace
}  // namespace fl
