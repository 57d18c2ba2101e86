// Tests a sweep under faults: disks that fail at any write of the store, kills at any moment, other sweeps, stores of another version,
// clocks that run backwards, folders that vanish, lack of memory. The store then holds whole runs, and `--resume` ends with the same bytes
// as an undisturbed sweep.
#include <gmock/gmock.h>

#include <random>

#include "scenarios/results/sqlite.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/study.hpp"

// Not defined in a build without a shared library, which has no plug-ins.
#if !defined(FL_PLUGINS)
#define FL_PLUGINS ""
#endif

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::count_of;
using test::Outcome;
using test::Process;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class SweepFaults : public test::StudyTest {
 protected:
  // Every run has all the rows that it says it has; one that failed has none.
  void expect_whole_runs(const std::string& out) const {
    if (!exists(out + "/results.sqlite")) return;
    const RunStore store = RunStore::open(folder_ / out, RunStore::Mode::read);
    for (const RunRecord& run : store.list())
      EXPECT_EQ(store.rows(run.run).size(), run.status == RunStatus::failed ? 0 : run.rounds + 1) << run.run;
  }
  // `--resume` completes the study, to the same bytes as the undisturbed one.
  void expect_resumed(const std::string& out, const std::string& expected) const {
    const Outcome resumed = sweep({"--resume"}, out);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(exported(out), expected);
    EXPECT_TRUE(!exists(out + "/checkpoints") || fs::is_empty(folder_ / out / "checkpoints")) << "finished runs keep none";
  }
  // Returns the number of runs that a sweep with -v has reported. Querying its store instead would block its writes.
  [[nodiscard]] std::size_t told() const { return count_of(read("stderr.txt"), "  done  rounds"); }
  // Returns the bytes of a study whose sweep was not disturbed.
  [[nodiscard]] std::string in_peace() const {
    const Outcome outcome = sweep({"--checkpoint-minutes", "0"}, "peace");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return exported("peace");
  }
};

// ---- a disk that fails -------------------------------------------------------------------------------------------------------

struct DiskFault {
  std::string kind;  // of tests/plugins/failing_disk.cpp
  std::string message;
};
void PrintTo(const DiskFault& fault, std::ostream* out) { *out << fault.kind; }

class FailingDisk : public SweepFaults, public testing::WithParamInterface<DiskFault> {
 protected:
  void SetUp() override {
    SweepFaults::SetUp();
    if (std::string(FL_PLUGINS).empty()) GTEST_SKIP() << "this build holds everything in one file and loads no plug-in";
  }
  // A sweep whose n-th change to a store goes wrong.
  [[nodiscard]] Outcome sweep_on_failing_disk(int n, const std::string& out) const {
    return Process(folder_, {"sweep", "study.toml", "--out", out, "--jobs", "1", "--plugin", std::string(FL_PLUGINS) + "/failing_disk.so"},
                   test::Surroundings{.environment = {{"FEDBITS_FAILING_DISK", GetParam().kind + " " + std::to_string(n)}}})
        .wait();
  }
  // Fails at the first change, the (1+step)-th, ... until a sweep ends before the disk fails. Returns how many sweeps failed.
  int fail_at_every_change(int step) const {
    const std::string expected = in_peace();
    int failed = 0;
    for (int n = 1;; n += step, ++failed) {
      const std::string out = "out" + std::to_string(n);
      const Outcome outcome = sweep_on_failing_disk(n, out);
      if (outcome.code == 0 && outcome.err.find("the disk fails") == std::string::npos) return failed;
      SCOPED_TRACE("change " + std::to_string(n));
      EXPECT_EQ(outcome.code, GetParam().kind == "killed" ? -SIGKILL : 1) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
      expect_whole_runs(out);
      expect_resumed(out, expected);
      if (HasFailure()) return failed;
    }
  }
};

TEST_P(FailingDisk, AtEveryChangeOfTheStore) {
  write_study(1, 40);
  constexpr int kStep = test::kSanitized ? 11 : 1;
  EXPECT_GT(fail_at_every_change(kStep), 20 / kStep) << "two transactions: a journal, pages, syncs, a deletion each";
}

TEST_P(FailingDisk, WhileTuning) {
  write_study(1, 400, "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\n");
  EXPECT_GT(fail_at_every_change(test::kSanitized ? 71 : 19), 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailingDisk,
                         testing::Values(DiskFault{"full", "results.sqlite: database or disk is full; free some space"},
                                         DiskFault{"flaky", "results.sqlite: disk I/O error"},
                                         DiskFault{"dead", "results.sqlite: disk I/O error"}, DiskFault{"killed", ""}),
                         [](const auto& one) { return one.param.kind; });

// ---- kills -------------------------------------------------------------------------------------------------------------------

struct KilledStudy {
  std::string label;
  std::size_t seeds, rounds;
};
void PrintTo(const KilledStudy& study, std::ostream* out) { *out << study.label; }

// Kills of the whole sweep and of single workers, at moments spread over the time that a sweep takes.
class RandomKills : public SweepFaults, public testing::WithParamInterface<KilledStudy> {
 protected:
  static constexpr int kMoments = test::kSanitized ? 16 : 100;
  std::mt19937 random_{17};
  int moments_ = 0, killed_workers_ = 0, failed_runs_ = 0;

  // Goes on with a sweep and kills at random until it ends. Returns its exit code.
  int disturb(const std::string& out, std::chrono::microseconds longest_pause) {
    Process process(folder_, {"sweep", "study.toml", "--out", out, "--jobs", "2", "--resume", "--checkpoint-rounds", "20"},
                    test::whose_children_are_killed());
    for (; moments_ < kMoments; ++moments_) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<std::uint64_t>(longest_pause.count())));
      if (process.has_ended()) break;
      const std::vector<pid_t> workers = process.children();
      if (workers.empty() || random_() % 3 == 0)
        process.signal(SIGKILL);
      else
        killed_workers_ += ::kill(workers[random_() % workers.size()], SIGKILL) == 0 ? 1 : 0;
    }
    const Outcome outcome = process.wait();
    failed_runs_ += static_cast<int>(count_of(outcome.err, "killed by signal 9"));
    EXPECT_THAT(outcome.code, AnyOf(0, 1, -SIGKILL)) << outcome.err;
    return outcome.code;
  }
};

TEST_P(RandomKills, OfSweepsAndWorkers) {
  write_study(GetParam().seeds, GetParam().rounds);
  const auto begin = std::chrono::steady_clock::now();
  const std::string expected = in_peace();
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  int study = 0;
  const auto folder = [&study] { return "out" + std::to_string(study); };
  while (moments_ < kMoments) {
    if (disturb(folder(), whole / 2) != 0) continue;
    EXPECT_EQ(exported(folder()), expected);
    ++study;
  }
  expect_whole_runs(folder());
  expect_resumed(folder(), expected);
  if (test::kSanitized) return;  // of so few moments any may have hit neither
  EXPECT_GT(killed_workers_, kMoments / 10);
  EXPECT_GT(failed_runs_, 0);
  EXPECT_LE(failed_runs_, killed_workers_) << "a worker costs its run alone";
}

INSTANTIATE_TEST_SUITE_P(Studies, RandomKills,
                         testing::Values(KilledStudy{"ManyRuns", 12, 60}, KilledStudy{"LongRunsWithCheckpoints", 1, 2500}),
                         [](const auto& one) { return one.param.label; });

// A sweep that was killed after it stored a run and before it took its checkpoint away.
TEST_F(SweepFaults, CheckpointsOfFinishedRunsAreTakenAway) {
  write_study(1, 10);
  const std::string expected = in_peace(), hash = sweep({"--list"}, "peace").out.substr(0, 16);
  fs::create_directory(folder_ / "peace/checkpoints");
  write("peace/checkpoints/" + hash + ".checkpoint", "of a run that is over");
  write("peace/checkpoints/" + hash + ".checkpoint.tmp", "half of it");
  expect_resumed("peace", expected);
}

// Workers are asked to end as a scheduler may do it: their runs are stored as interrupted, and the next ones go on in new workers. A run
// that was still being prepared is begun again.
TEST_F(SweepFaults, WorkersThatAreTerminatedCostTheirRunAlone) {
  write_study(10, test::kSanitized ? 600 : 3000);
  const std::string expected = in_peace();
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--checkpoint-rounds", "100", "-v"},
                  test::whose_children_are_killed());
  ASSERT_TRUE(process.wait_until([&] { return told() > 1 && !process.children().empty(); }));
  ASSERT_EQ(::kill(process.children()[0], SIGTERM), 0);
  const Outcome outcome = process.wait();
  const auto interrupted = count_of(outcome.err, "  interrupted  rounds");
  EXPECT_LE(interrupted, 1u) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "  done  rounds"), 20 - interrupted) << outcome.err;
  EXPECT_EQ(outcome.code, interrupted > 0 ? 1 : 0) << outcome.err;
  expect_resumed("out", expected);
}

// Everything gets the signal at once, as from a terminal or a batch system.
TEST_F(SweepFaults, ATerminatedGroupGoesOn) {
  write_study(1, 8000);
  const std::string expected = in_peace();
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--checkpoint-rounds", "50"},
                  test::whose_children_are_killed());
  ASSERT_TRUE(process.wait_until([&] { return exists("out/checkpoints") && process.children().size() == 2; }));
  for (const pid_t worker : process.children()) ::kill(worker, SIGTERM);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 143);
  expect_whole_runs("out");
  EXPECT_FALSE(fs::is_empty(folder_ / "out/checkpoints"));
  expect_resumed("out", expected);
}

// ---- others at the same place ------------------------------------------------------------------------------------------------

TEST_F(SweepFaults, TwoSweepsDoNotTuneIntoOneFolder) {
  write_study(1, 3000000, "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\n");
  Process first(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "1"});
  ASSERT_TRUE(first.wait_until([&] { return first.children().size() == 1; })) << "it tunes";
  const Outcome second = Process(folder_, {"sweep", "study.toml", "--out", "out", "--set", "rounds=400"}).wait();
  EXPECT_EQ(second.code, 2) << second.err;
  EXPECT_THAT(second.err, HasSubstr("another sweep is writing to out; wait for it, or choose another folder with --out"));
  EXPECT_FALSE(exists("out/tuning/results.sqlite")) << "the second one has tuned";
  first.signal(SIGINT);
  EXPECT_EQ(first.wait().code, 130);
}

TEST_F(SweepFaults, ASweepThatCannotBeginLeavesNothing) {
  write_study(1, 10, "[local]\nlearning_rate = '1/(L+l2)'\n");
  const Outcome outcome = sweep({"--set", "data={path='./missing.txt'}"}, "below/out");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_FALSE(exists("below"));
}

TEST_F(SweepFaults, StoresOfANewerVersionAreNotTouched) {
  write_study(1, 400);
  ASSERT_EQ(sweep({}, "good").code, 0);
  ASSERT_EQ(sweep({}, "fedbits-out/study").code, 0);
  sqlite::Database(folder_ / "fedbits-out/study/results.sqlite", sqlite::OpenMode::existing).execute("PRAGMA user_version=99");
  fs::create_directories(folder_ / "tuned/tuning");
  fs::copy(folder_ / "fedbits-out/study/results.sqlite", folder_ / "tuned/tuning/results.sqlite");
  const std::string newer = read("fedbits-out/study/results.sqlite"), good = read("good/results.sqlite");
  write("tuned.toml", read("study.toml") + "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\n");

  for (const std::vector<std::string>& command : {std::vector<std::string>{"sweep", "study.toml"},
                                                  {"sweep", "study.toml", "--resume"},
                                                  {"sweep", "study.toml", "--again"},
                                                  {"sweep", "study.toml", "--list"},
                                                  {"sweep", "tuned.toml", "--out", "tuned"},
                                                  {"run", "tuned.toml", "--out", "tuned"},
                                                  {"merge", "good", "--out", "fedbits-out/study"},
                                                  {"merge", "good", "fedbits-out/study", "--out", "joined"},
                                                  {"report", "fedbits-out/study", "--text"}}) {
    const Outcome outcome = fedbits(command);
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(command);
    EXPECT_THAT(outcome.err, HasSubstr("version 99")) << testing::PrintToString(command);
  }
  EXPECT_EQ(fedbits({"plan", "study.toml"}).code, 0) << "it reads no store";
  EXPECT_EQ(read("fedbits-out/study/results.sqlite"), newer);
  EXPECT_EQ(read("tuned/tuning/results.sqlite"), newer);
  EXPECT_EQ(read("good/results.sqlite"), good);
  for (const char* left : {"fedbits-out/study/sweep.lock", "fedbits-out/study/results.sqlite-journal", "tuned/results.sqlite", "joined"})
    EXPECT_FALSE(exists(left)) << left;
}

// ---- what is around ----------------------------------------------------------------------------------------------------------

// libfaketime shows the time that a file names; "" where it is not installed.
std::string fake_clock_library() {
  for (const char* place : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"})
    if (const std::string file = std::string(place) + "/faketime/libfaketime.so.1"; fs::exists(file)) return file;
  return "";
}

TEST_F(SweepFaults, AClockThatGoesBackIsNotNoticed) {
#if FL_SANITIZED
  GTEST_SKIP() << "libfaketime would be loaded before the sanitizer";
#endif
  const std::string library = fake_clock_library();
  if (library.empty()) GTEST_SKIP() << "TOOL MISSING: libfaketime (apt-get install libfaketime)";
  write_study(2, 6000);
  const std::string expected = in_peace();
  write("clock", "+0");
  const test::Surroundings shifted{.environment = {{"LD_PRELOAD", library},
                                                   {"FAKETIME_TIMESTAMP_FILE", (folder_ / "clock").string()},
                                                   {"FAKETIME_NO_CACHE", "1"},
                                                   {"FAKETIME_DONT_FAKE_MONOTONIC", "1"}}};
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--checkpoint-minutes", "0.0002", "-v"}, shifted);
  ASSERT_TRUE(process.wait_until([&] { return exists("out/checkpoints"); }));
  write("clock", "-3000d");
  ASSERT_TRUE(process.wait_until([&] { return told() >= 1; })) << "none of its runs was at work when the clock went back";
  write("clock", "-5000d");
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr(" -")));
  EXPECT_EQ(exported("out"), expected);
  for (const RunRecord& run : RunStore::open(folder_ / "out", RunStore::Mode::read).list()) {
    EXPECT_GT(run.seconds, 0) << run.run;
    EXPECT_LT(run.seconds, 3600) << run.run;
  }
}

TEST_F(SweepFaults, AFolderThatVanishesEndsTheSweep) {
  write_study(30, 400);
  const std::string expected = in_peace();
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "-v"});
  ASSERT_TRUE(process.wait_until([&] { return told() > 2; }));
  fs::rename(folder_ / "out", folder_ / "gone");
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot store run"), HasSubstr("out/results.sqlite"),
                                 AnyOf(HasSubstr("moved or removed"), HasSubstr("check that the folder exists"))));
  EXPECT_GT(stored("gone"), 2u);
  expect_whole_runs("gone");
  fs::remove_all(folder_ / "out");
  fs::rename(folder_ / "gone", folder_ / "out");
  expect_resumed("out", expected);
}

// The longest run keeps room for its rows, which is more than a worker may have.
TEST_F(SweepFaults, ARunWithoutMemoryFailsAlone) {
#if FL_SANITIZED
  GTEST_SKIP() << "the sanitizer's shadow is larger than any limit";
#endif
  write(
      "study.toml",
      "name = 'study'\nrounds = 10\n[data]\nkind = 'quadratics'\nclients = 3\n[partition]\nkind = 'natural'\nclients = 3\n[model]\nkind = "
      "'quadratic'\n[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [10, 200000000, 20]\n");
  const Outcome outcome =
      Process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--memory", "2000G", "--checkpoint-minutes", "0", "-v"},
              test::Surroundings{.memory_bytes = 192u << 20})
          .wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "  done  rounds"), 4u) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "out of memory"), 2u) << outcome.err;
  EXPECT_EQ(stored("out"), 6u);
  expect_whole_runs("out");
}

}  // namespace
}  // namespace fl
