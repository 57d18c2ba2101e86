// Tests that a run that reads the rows of all minibatches from a file has the same bytes as the run that wrote the file.
#include "clients/learning/sample_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::run_text;
using test::ScenarioText;
using testing::HasSubstr;
using testing::Not;

class SampleFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_samples_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] static Cell cell_of(const std::string& text) { return parse_cells(text, "test.toml").at(0); }
  [[nodiscard]] static RunResult run(const Cell& cell, const MachineOptions& machine = {}) {
    CellRunner runner(DataCatalog(""), machine);
    return runner.run(cell, {});
  }
  // The result, with its samples in file().
  [[nodiscard]] RunResult record(const Cell& cell, int threads) {
    RunResult result = run(cell, {.threads = threads, .samples = folder_});
    file_ = sample_file_of(folder_, result.record.run);
    return result;
  }
  [[nodiscard]] std::string file() const { return file_.string(); }
  [[nodiscard]] std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) {
    file_ = folder_ / "written.csv";
    std::ofstream(file_) << text;
  }
  [[nodiscard]] Cell replaying(const Cell& cell) const { return with_option(cell, "local.sample_file", Value{file()}); }
  [[nodiscard]] std::string refusal(const Cell& cell) const {
    try {
      (void)run(replaying(cell));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_, file_;
};

void expect_same(const RunResult& result, const RunResult& expected) {
  EXPECT_EQ(result.record.checksum, expected.record.checksum);
  ASSERT_EQ(result.rows.size(), expected.rows.size());
  // Bytes, so that numbers that were not measured are equal. NOLINTBEGIN(bugprone-suspicious-memory-comparison)
  for (std::size_t r = 0; r < result.rows.size(); ++r) ASSERT_TRUE(same_bits(result.rows[r], expected.rows[r])) << "round " << r;
  // NOLINTEND(bugprone-suspicious-memory-comparison)
}

class EveryMethodFromItsSamples : public SampleFileTest, public testing::WithParamInterface<test::Method> {};

TEST_P(EveryMethodFromItsSamples, HasTheSameBytes) {
  const Cell cell = cell_of(test::text_of(GetParam(), "float64"));
  const RunResult expected = run(cell), written = record(cell, 3);
  expect_same(written, expected);
  const std::string first = text();
  EXPECT_TRUE(first.starts_with("round,client,step,rows\n")) << first.substr(0, 99);  // some methods begin with full gradients
  expect_same(run(replaying(cell)), expected);
  (void)record(replaying(cell), 1);
  EXPECT_EQ(text(), first);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethodFromItsSamples, testing::ValuesIn(test::methods()),
                         [](const auto& method) { return method.param.label; });

ScenarioText study_of_local(const std::string& local) {
  ScenarioText s = test::mushrooms(5);
  s.rounds = 4;
  s.local = local;
  s.evaluate = "every = 1\noptimum = false\ngradient = 'never'";
  return s;
}

// Minibatches of every kind; with another sampling seed nothing but the file can give the same rows.
TEST_F(SampleFileTest, TheFileDecidesAndNotTheSeed) {
  for (const char* local : {"kind = 'gradient'\nbatch = 4", "kind = 'sgd'\nbatch = 4\nsteps = 3", "kind = 'sgd'\nbatch = 7\nepochs = 2",
                            "kind = 'sgd'\nbatch = 4\nsteps = 3\nreplacement = false"}) {
    const Cell cell = cell_of(study_of_local(local).str());
    const RunResult expected = record(cell, 1);
    const Cell other = with_option(cell, "seeds.sampling", Value{std::int64_t{99}});
    EXPECT_NE(run(other).record.checksum, expected.record.checksum) << local;
    EXPECT_EQ(run(replaying(other)).record.checksum, expected.record.checksum) << local;
  }
}

// The older form, a row per round and client, says the same as a line for each.
TEST_F(SampleFileTest, TheOlderFormIsStillRead) {
  const Cell cell = cell_of(study_of_local("kind = 'gradient'\nbatch = 1").str());
  std::string columns, lines = "round,client,step,rows\n";
  for (int round = 1; round <= 4; ++round)
    for (int client = 0; client < 5; ++client) {
      const int row = (7 * round + client) % 20;
      columns += std::to_string(row) + (client == 4 ? "\n" : ",");
      lines += std::to_string(round) + "," + std::to_string(client) + ",0," + std::to_string(row) + "\n";
    }
  write(columns);
  const RunResult from_columns = run(replaying(cell));
  EXPECT_THAT(refusal(cell_of(study_of_local("kind = 'sgd'\nepochs = 1\nbatch = 1").str())), HasSubstr("epochs take all of them"));
  EXPECT_THAT(refusal(cell_of(study_of_local("kind = 'gradient'\nbatch = 2").str())), HasSubstr("batch must be 1"));
  write(lines);
  expect_same(run(replaying(cell)), from_columns);
}

TEST_F(SampleFileTest, EveryMistakeIsNamed) {
  const Cell cell = cell_of(study_of_local("kind = 'sgd'\nbatch = 2\nsteps = 2").str());
  (void)record(cell, 1);
  const std::string good = text();
  const auto with = [&](const std::string& more) {
    write(good + more);
    return refusal(cell);
  };
  EXPECT_THAT(with("9,0,0,5 x\n"), HasSubstr("written.csv:42: expected \"round,client,step,rows\""));
  EXPECT_THAT(with("9,0,0\n"), HasSubstr("expected"));
  EXPECT_THAT(with("9,0,0,\n"), HasSubstr("expected"));
  EXPECT_THAT(with("0,0,0,1\n"), HasSubstr("rounds are counted from 1"));
  EXPECT_THAT(with("9,5,0,1\n"), HasSubstr("client 5, but clients are 0 to 4"));
  EXPECT_THAT(with("9,0,0,99999\n"), HasSubstr("row 99999 was asked for"));
  EXPECT_THAT(with("1,0,0,1 2\n"), HasSubstr("step 0 of client 0 in round 1 stands there twice"));
  write(good.substr(0, good.find("\n4,2,1,") + 1));
  EXPECT_THAT(refusal(cell), HasSubstr("has no rows for step 1 of client 2 in round 4"));
  write("");
  EXPECT_THAT(refusal(cell_of(study_of_local("kind = 'gradient'").str())), HasSubstr("the file ends after 0 rounds"));
}

// A column too many was left out without a word, and a pipe was waited for.
TEST_F(SampleFileTest, WhatIsNoListOfSamplesIsRefused) {
  const Cell cell = cell_of(study_of_local("kind = 'gradient'\nbatch = 1").str());
  write("1,2,3,4,5,6\n1,2,3,4,5\n1,2,3,4,5\n1,2,3,4,5\n");
  EXPECT_THAT(refusal(cell), HasSubstr("written.csv:1: 5 row numbers are expected, one per client, and more follow: \"6\""));
  write("round,client,step,rows\n1,0,0,\x1b[2J\n");
  EXPECT_THAT(refusal(cell), HasSubstr("is \"1,0,0,.[2J\""));
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(refusal(cell), HasSubstr("local.sample_file: cannot read '" + file() + "': it is a pipe; an ordinary file is needed"));
  file_ = "/dev/zero";
  EXPECT_THAT(refusal(cell), HasSubstr("local.sample_file: cannot read '/dev/zero': it is a device"));
  file_ = folder_ / "large.csv";
  std::ofstream(file_) << "round";
  fs::resize_file(file_, std::uintmax_t{1} << 40);
  EXPECT_THAT(refusal(cell), HasSubstr("it has 1.0 TiB, and at most 1.0 GiB are read"));
}

// Where full gradients are sampled, no theorem speaks of the run.
TEST_F(SampleFileTest, SampledGradientsAreNotFull) {
  ScenarioText s = test::uneven_quadratics();
  s.rounds = 3;
  s.evaluate = "every = 1\ngradient = 'every'";
  s.local = "kind = 'gradient'\nlearning_rate = '1/(4*L)'";
  const Cell cell = cell_of(s.str());
  const RunResult full = record(cell, 1);
  const auto theorems = [](const RunResult& result) {
    return std::count_if(result.record.constants.begin(), result.record.constants.end(), [](const auto& c) { return c.name == "theorem"; });
  };
  EXPECT_EQ(theorems(full), 1);
  const RunResult replayed = run(replaying(cell));
  EXPECT_EQ(theorems(replayed), 0);
  expect_same(replayed, full);
}

}  // namespace
}  // namespace fl
