// Compares whole runs with operators on the GPU and clients on the CPU with the same runs on the CPU: the bytes are equal for every method.
// Skipped without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/same_runs.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/overflowing.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::Method;
using test::same_value;
using test::Where;

RunResult run_on(Device device, const std::string& text, std::uint32_t block, bool materialise = false, bool keeps_managed = false) {
  return test::run_text(text, {.threads = 2,
                               .block = block,
                               .materialise = materialise,
                               .device = device,
                               .trains_on_cpu = true,
                               .keeps_managed = keeps_managed})
      .at(0);
}

class GpuRun : public testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    const bool is_cheap = GetParam().label == "none" || GetParam().label == "ef14_sampled" || GetParam().label == "drive" ||
                          GetParam().label == "variance_based" || GetParam().label == "powersgd" || GetParam().label == "accordion";
    if (test::kSanitized && !is_cheap) GTEST_SKIP() << "under the sanitizers a few kinds of methods";
  }
};

Where of_method(const std::string& precision, const std::string& more) {
  return {.what = "method " + GpuRun::GetParam().label, .precision = precision, .more = more};
}

// Products of matrices alone differ by rounding.
void expect_same(const Where& where, const RunResult& result, const RunResult& expected) {
  if (!test::is_of_matrices(GpuRun::GetParam())) {
    EXPECT_TRUE(same_run(where, expected, result));
    return;
  }
  EXPECT_EQ(result.record.status, RunStatus::done) << result.record.message;
  EXPECT_TRUE(same_value(where, "bits_up", expected.record.bits_up, result.record.bits_up));
  EXPECT_TRUE(near_value(where, "train_loss", expected.record.train_loss, result.record.train_loss, 1e-5 * expected.record.train_loss));
}

TEST_P(GpuRun, GivesTheBytesOfTheCpu) {
  for (const std::string precision : {"float32", "float64"}) {
    if (test::kSanitized && precision == "float64") continue;
    const std::string text = test::text_of(GetParam(), precision);
    const RunResult expected = run_on(Device::cpu, text, 2);
    expect_same(of_method(precision, "one block"), run_on(Device::cuda, text, 0), expected);
    if (!test::kSanitized)
      expect_same(of_method(precision, "managed memory, blocks of 3"), run_on(Device::cuda, text, 3, false, true), expected);
  }
}

TEST_P(GpuRun, GoesOnFromDecodedBytes) {
  const std::string text = test::text_of(GetParam(), "float32");
  expect_same(of_method("float32", "decoded messages"), run_on(Device::cuda, text, 0, true), run_on(Device::cpu, text, 2));
}

// Clients that train on the GPU may differ from the CPU's in what is measured, not in messages and model.
void expect_same_model(const Where& where, const RunResult& result, const RunResult& expected) {
  EXPECT_EQ(result.record.status, RunStatus::done) << result.record.message;
  EXPECT_TRUE(same_value(where, "checksum of the model", expected.record.checksum, result.record.checksum));
  EXPECT_TRUE(same_value(where, "bits_up", expected.record.bits_up, result.record.bits_up));
}

// Messages that are not finite are refused on the GPU as they are on the CPU.
TEST(GpuRuns, RefuseTheMessagesThatTheCpuRefuses) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / ("fedbits-overflowing-" + std::to_string(::getpid()));
  for (const test::Overflowing& study : test::overflowing()) {
    std::ofstream(file) << test::rows_of(study);
    const std::string text = test::text_of(study, file.string());
    const RunResult expected = run_on(Device::cpu, text, 2);
    for (const bool materialise : {false, true}) {
      const RunResult result = run_on(Device::cuda, text, materialise ? 3 : 0, materialise);
      expect_same_model({.what = "messages that overflow, " + study.label, .more = materialise ? "decoded messages" : ""}, result,
                        expected);
      for (std::size_t r = 1; r < result.rows.size(); ++r) EXPECT_EQ(result.rows[r].refused, 1U);
    }
  }
  std::filesystem::remove(file);
}

// Tensors that are excluded from compression are also sent from the GPU: beside the entries, or beside their code.
TEST(GpuRuns, SendExcludedTensorsLikeTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const std::string operation : {"top_k'\nratio = 0.1", "drive'\nscale = 'min_error'", "ef_sign'"}) {
    const std::string text =
        "name = 'excluded'\nrounds = 4\n[data]\nkind = 'synthetic'\nclients = 7\nfeatures = 13\nclasses = 4\n[partition]\nkind = "
        "'natural'\nclients = 7\n[model]\nkind = 'mlp'\nhidden = [6]\n[local]\nbatch = 3\nlearning_rate = 0.1\n[participation]\nkind = "
        "'uniform'\nclients = 4\n[feedback.up]\nkind = 'ef14'\n[compressor.up]\nexclude = ['1.dense.bias', '3.dense.weight']\nkind = '" +
        operation + "\n";
    const RunResult expected = run_on(Device::cpu, text, 2);
    for (const bool materialise : {false, true}) {
      const RunResult result = run_on(Device::cuda, text, materialise ? 3 : 0, materialise);
      expect_same_model({.what = "tensors excluded from " + operation, .more = materialise ? "decoded messages" : ""}, result, expected);
    }
  }
}

// Clients that train on the GPU write down the samples that the CPU's do, and take them from a file.
TEST(GpuRuns, WriteAndTakeSamplesLikeTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("gpu_samples" + std::to_string(::getpid()));
  const auto text_of = [](const fs::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const std::string local :
       {"kind = 'gradient'\nbatch = 3", "kind = 'sgd'\nbatch = 3\nsteps = 2", "kind = 'sgd'\nbatch = 5\nepochs = 2"}) {
    const Where where{.what = "samples of " + local};
    const std::string text =
        "name = 'samples'\nrounds = 3\n[data]\nname = 'mushrooms'\nrows = 100\n[partition]\nclients = 5\n[model]\nkind = 'mlp'\nhidden = "
        "[6]\n[local]\n" +
        local + "\n[evaluate]\noptimum = false\n";
    const Cell cell = parse_cells(text, "test.toml").at(0);
    const auto run = [](const Cell& one, const MachineOptions& machine) { return CellRunner(DataCatalog(""), machine).run(one, {}); };
    const RunResult on_cpu = run(cell, {.samples = folder / "cpu"}),
                    on_gpu = run(cell, {.device = Device::cuda, .samples = folder / "gpu"});
    const fs::path file = sample_file_of(folder / "gpu", on_gpu.record.run);
    EXPECT_TRUE(same_words(where, "sample file", text_of(sample_file_of(folder / "cpu", on_cpu.record.run)), text_of(file)));
    const Cell other = with_option(cell, "seeds.sampling", Value{std::int64_t{9}});
    EXPECT_NE(run(other, {.device = Device::cuda}).record.checksum, on_gpu.record.checksum);
    const Cell replayed = with_option(other, "local.sample_file", Value{file.string()});
    EXPECT_TRUE(same_value(where.between("drawn", "from the file"), "checksum of the model", on_gpu.record.checksum,
                           run(replayed, {.device = Device::cuda}).record.checksum));
  }
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Methods, GpuRun, testing::ValuesIn(test::methods()), [](const auto& method) { return method.param.label; });

}  // namespace
}  // namespace fl
