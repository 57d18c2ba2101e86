// Tests many processes that write into one folder at the same time.
#include <gmock/gmock.h>

#include <memory>
#include <set>

#include "scenarios/results/run_store.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

constexpr int kTogether = 16;

class TogetherTest : public test::BinaryTest {
 protected:
  // Starts 16 processes of `run small.toml` at once; all must end well. `own` gives the words that one of them has besides.
  void run_together(const std::vector<std::string>& common, const std::function<std::vector<std::string>(int)>& own) const {
    write_small();
    std::vector<std::unique_ptr<test::Process>> processes;
    for (int i = 0; i < kTogether; ++i) {
      const std::filesystem::path place = folder_ / ("process" + std::to_string(i));
      std::filesystem::create_directories(place);
      std::vector<std::string> arguments = {"run", "../small.toml", "--out", "../out", "--threads", "1"};
      arguments.insert(arguments.end(), common.begin(), common.end());
      for (std::string& word : own(i)) arguments.push_back(std::move(word));
      processes.push_back(std::make_unique<test::Process>(place, std::move(arguments)));
    }
    for (const auto& process : processes) {
      const test::Outcome outcome = process->wait();
      EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
  }
  [[nodiscard]] std::set<std::string> names_in(const std::string& folder) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / folder)) names.insert(entry.path().filename().string());
    return names;
  }
};

TEST_F(TogetherTest, RunsOfManySeedsAllArrive) {
  run_together({}, [](int i) { return std::vector<std::string>{"--set", "seed=" + std::to_string(i)}; });
  const RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::read);
  std::set<std::uint64_t> seeds;
  for (const RunRecord& record : store.list()) {
    seeds.insert(record.seed);
    EXPECT_EQ(store.rows(record.run).size(), record.rounds + 1);
  }
  EXPECT_EQ(seeds.size(), static_cast<std::size_t>(kTogether));
  EXPECT_EQ(names_in("out"), std::set<std::string>{RunStore::kFileName});
}

// Its checkpoints, its model and its samples have one name each.
TEST_F(TogetherTest, TheSameRunManyTimes) {
  run_together({"--set", "rounds=60", "--checkpoint-rounds", "1", "--save-model", "../models", "--save-samples", "../samples", "--again"},
               [](int) { return std::vector<std::string>{}; });
  const RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::read);
  ASSERT_EQ(store.list().size(), 1u);
  const std::string run = store.list().front().run;
  EXPECT_EQ(store.rows(run).size(), 61u);
  EXPECT_EQ(names_in("models"), std::set<std::string>{run + ".safetensors"});
  EXPECT_EQ(names_in("samples"), std::set<std::string>{run + ".csv"});
  EXPECT_TRUE(names_in("out/checkpoints").empty()) << *names_in("out/checkpoints").begin();
}

}  // namespace
}  // namespace fl
