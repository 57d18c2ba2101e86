// Tests studies as programs run them: several in one process, the order of what happens, requests to stop, and that nothing is printed.
#include "study/driver/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kAxis = "[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up.k'\nvalues = [2, 5]\n";
constexpr const char* kTune = "[sweep.tune]\nseeds = 2\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\n";

std::string quadratics(int rounds, const std::string& more) {
  test::ScenarioText text = test::quadratics();
  text.rounds = rounds;
  text.up = "kind = 'top_k'\nk = 3";
  text.feedback = "kind = 'ef14'";
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.evaluate = "every = 1";
  text.more = more;
  return text.str();
}

class SimulationTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // A study that plays its runs in turn, or in parallel threads.
  [[nodiscard]] StudySettings settings(const std::string& text, const std::string& out) const {
    StudySettings asked;
    asked.text = ScenarioText{.text = text, .name = "test.toml", .folder = {}};
    asked.out = path(out);
    if (GetParam())
      asked.play = PlayInParallel{.jobs = 2};
    else
      asked.play = PlayInTurn{.threads = 2};
    return asked;
  }

 private:
  const fs::path folder_ = fs::path(testing::TempDir()) / ("simulation-" + std::to_string(::getpid()));
};

// Keeps a word for everything that happens, and does something at every round.
class Heard final : public StudyEvents {
 public:
  std::function<void(const RunProgress& at)> at_round;
  std::vector<std::string> words, warnings;
  std::size_t num_reached = 0;

  void note(Note kind, const std::string& text) override {
    if (kind == Note::warning) warnings.push_back(text);
    if (kind == Note::tuning) words.push_back(text.substr(0, 5));
  }
  void tuning() override { words.emplace_back("tuning"); }
  void begin_tuning(const std::string& purpose, const std::vector<Cell>&, const std::vector<std::size_t>&, int,
                    const std::string&) override {
    words.push_back("tune " + purpose);
    is_tuning_ = true;
  }
  void end_tuning() override { is_tuning_ = false; }
  void begin(const Simulation& study, const std::vector<std::size_t>& pending, int) override {
    words.push_back("begin " + std::to_string(pending.size()) + " of " + std::to_string(study.size()));
  }
  void stored(std::size_t cell, const RunRecord&) override { words.push_back("stored " + std::to_string(cell)); }
  void began(std::size_t cell, int) override {
    if (!is_tuning_) words.push_back("began " + std::to_string(cell));
  }
  void reached(std::size_t, const RunProgress& at) override {
    ++num_reached;
    if (at_round) at_round(at);
  }
  void ended(std::size_t cell, const RunRecord& record) override {
    if (!is_tuning_) words.push_back(std::string(to_string(record.status)) + " " + std::to_string(cell));
  }

 private:
  bool is_tuning_ = false;
};

std::vector<std::string> checksums(const StudyOutcome& outcome) {
  std::vector<std::string> all;
  for (const RunRecord& record : outcome.records) all.push_back(record.run + " " + record.checksum);
  return all;
}

// ---- several studies

TEST_P(SimulationTest, StudiesOfOneProcessRunStopAndFailApart) {
  const std::string text = quadratics(30, kAxis), endless = quadratics(100'000'000, "");
  StudyEvents nobody;
  const StudyOutcome alone = Simulation::open(settings(text, "alone")).run(nobody);

  StopRequest stop;
  StudyOutcome stopped, undisturbed;
  std::string failure;
  std::atomic<bool> has_begun = false;
  std::thread one([&] {
    Heard heard;
    heard.at_round = [&](const RunProgress& at) { has_begun = has_begun || at.round > 0; };
    stopped = Simulation::open(settings(endless, "stopped")).run(heard, stop.token());
  });
  while (!has_begun) std::this_thread::yield();
  std::thread other([&] {
    try {
      StudyEvents unheard;
      StudySettings nowhere = settings(text, "");
      nowhere.out = "/dev/null/out";
      (void)Simulation::open(nowhere).run(unheard);
    } catch (const Error& error) {
      failure = error.what();
    }
  });
  std::thread third([&] {
    StudyEvents unheard;
    undisturbed = Simulation::open(settings(text, "undisturbed")).run(unheard);
  });
  other.join();
  third.join();
  EXPECT_THAT(failure, HasSubstr("/dev/null/out"));
  EXPECT_EQ(undisturbed.end, StudyEnd::done);
  EXPECT_EQ(checksums(undisturbed), checksums(alone));
  stop.ask();
  one.join();
  EXPECT_EQ(stopped.end, StudyEnd::stopped);
  ASSERT_EQ(stopped.records.size(), 1U);
  EXPECT_EQ(stopped.records[0].status, RunStatus::interrupted);
}

// ---- the order of what happens

TEST_P(SimulationTest, RunsAreToldInTheOrderInWhichTheyHappen) {
  Heard first, again;
  {
    Simulation study = Simulation::open(settings(quadratics(30, "[sweep]\nseeds = 1\n"), "out"));
    EXPECT_EQ(study.run(first).end, StudyEnd::done);
    EXPECT_EQ(study.store().rows(study.hash(0)).size(), 31U);
    EXPECT_EQ(study.rounds(0), 30U);
    EXPECT_EQ(study.title(0), "test");
  }
  EXPECT_THAT(first.words, ElementsAre("begin 1 of 1", "began 0", "done 0"));
  EXPECT_GT(first.num_reached, 0U);
  StudySettings more = settings(quadratics(30, kAxis), "out");
  more.checkpoints.resume = true;
  const StudyOutcome outcome = Simulation::open(more).run(again);
  EXPECT_EQ(outcome.records.size(), 4U);
  ASSERT_GE(again.words.size(), 1U);
  EXPECT_EQ(again.words[0], "begin 4 of 4") << "the runs of the axis have other values";
  Heard third;
  EXPECT_EQ(checksums(Simulation::open(more).run(third)), checksums(outcome));
  EXPECT_THAT(third.words, ElementsAre("begin 0 of 4", "stored 0", "stored 1", "stored 2", "stored 3"));
}

TEST_P(SimulationTest, TuningComesBeforeTheRuns) {
  Heard heard;
  EXPECT_EQ(Simulation::open(settings(quadratics(20, kTune), "out")).run(heard).end, StudyEnd::done);
  ASSERT_GE(heard.words.size(), 5U);
  EXPECT_EQ(heard.words[0], "tuning");
  EXPECT_THAT(heard.words[1], StartsWith("tune "));
  EXPECT_THAT(std::vector(heard.words.end() - 4, heard.words.end()), ElementsAre("tuned", "begin 1 of 1", "began 0", "done 0"));
}

TEST_P(SimulationTest, AFolderWithAPartOfTheRunsIsRefusedInParallelAlone) {
  StudyEvents nobody;
  StudySettings one = settings(quadratics(10, "[sweep]\nseeds = 1\n"), "out"),
                two = settings(quadratics(10, "[sweep]\nseeds = 2\n"), "out");
  (void)Simulation::open(one).run(nobody);
  if (!GetParam()) {
    EXPECT_EQ(Simulation::open(two).run(nobody).records.size(), 2U);
    return;
  }
  EXPECT_THROW((void)Simulation::open(two).run(nobody), ConfigError);
  two.checkpoints.resume = true;
  EXPECT_EQ(Simulation::open(two).run(nobody).records.size(), 2U);
}

// ---- requests to stop

TEST_P(SimulationTest, AStudyThatIsAskedBeforeItsFirstRoundWritesNothing) {
  StopRequest stop;
  stop.ask();
  StudyEvents nobody;
  Simulation study = Simulation::open(settings(quadratics(10, ""), "out"));
  EXPECT_THROW((void)study.run(nobody, stop.token()), Stopped);
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_P(SimulationTest, AStudyThatIsStoppedWhileTuningGoesOnLater) {
  StopRequest stop;
  Heard heard;
  heard.at_round = [&stop](const RunProgress&) { stop.ask(); };
  const StudySettings asked = settings(quadratics(2000, kTune), "out");
  EXPECT_EQ(Simulation::open(asked).run(heard, stop.token()).end, StudyEnd::stopped_while_tuning);
  EXPECT_THAT(heard.warnings, ElementsAre(HasSubstr("interrupted while tuning")));
  StudyEvents nobody;
  EXPECT_EQ(Simulation::open(asked).run(nobody).end, StudyEnd::done);
}

TEST_P(SimulationTest, AStoppedRunGoesOnFromItsCheckpoint) {
  StudyEvents nobody;
  StudySettings asked = settings(quadratics(50'000, ""), "out");
  const StudyOutcome whole = Simulation::open(settings(quadratics(50'000, ""), "whole")).run(nobody);
  StopRequest stop;
  Heard heard;
  heard.at_round = [&stop](const RunProgress& at) {
    if (at.round > 3) stop.ask();
  };
  const StudyOutcome stopped = Simulation::open(asked).run(heard, stop.token());
  ASSERT_EQ(stopped.end, StudyEnd::stopped);
  ASSERT_EQ(stopped.records.size(), 1U) << "it is recorded although constants of its theorems are still to be computed";
  EXPECT_EQ(stopped.records[0].status, RunStatus::interrupted);
  EXPECT_THROW((void)Simulation::open(asked).run(nobody), ConfigError) << "it would be begun anew";
  asked.checkpoints.resume = true;
  EXPECT_EQ(checksums(Simulation::open(asked).run(nobody)), checksums(whole));
}

// ---- what a library does not do

TEST_P(SimulationTest, NothingIsPrinted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Heard heard;
  (void)Simulation::open(settings(quadratics(20, kTune), "out")).run(heard);
  StopRequest stop;
  heard.at_round = [&stop](const RunProgress&) { stop.ask(); };
  (void)Simulation::open(settings(quadratics(5000, "[sweep]\nseeds = 2\n"), "more")).run(heard, stop.token());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_P(SimulationTest, CheckWritesNothingAndNamesAllProblems) {
  Simulation study = Simulation::open(settings(quadratics(10, ""), "out"));
  study.check();
  EXPECT_FALSE(fs::exists(path("out")));
  try {
    Simulation::open(settings(quadratics(10, "[sweep]\nseeds = 1\n[[sweep.axis]]\nkey = 'compressor.up.k'\nvalues = [0, -1]\n"), "out"))
        .check();
    FAIL() << "k = 0 and k = -1 were accepted";
  } catch (const ConfigError& error) {
    EXPECT_GE(error.problems().size(), 2U) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SimulationTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) { return info.param ? "InParallel" : "InTurn"; });

}  // namespace
}  // namespace fl
