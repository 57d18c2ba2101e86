// Tests that a sweep survives kills of any process at any time: the store ends with the same bytes as that of an undisturbed sweep.
#include <gmock/gmock.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/support/sanitized.hpp"
#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using test::Process;
using testing::AllOf;
using testing::HasSubstr;

class SweepTest : public test::StudyTest {};

TEST_F(SweepTest, StoresWhatRunStores) {
  write_study(4, 40);
  const Outcome outcome = sweep({"-v"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("hard"));
  EXPECT_EQ(count_of(outcome.err, "  done  rounds 40"), 8u) << outcome.err;
  EXPECT_EQ(fedbits({"run", "study.toml", "--out", "one", "--threads", "2"}).code, 0);
  EXPECT_EQ(exported("out"), exported("one"));
}

// A file chooses its labels. Tables and lines stay readable, and what an export holds is the whole label.
TEST_F(SweepTest, ShowsTheEndsOfLongLabels) {
  write_study(1, 4);
  const std::string label = "a" + std::string(20000, 'x') + "b";
  std::string text = read("study.toml");
  const std::size_t at = text.find("label='hard'");
  ASSERT_NE(at, std::string::npos) << text;
  write("study.toml", text.replace(at, 12, "label='" + label + "'"));
  for (const Outcome& outcome : {sweep({"--list"}), fedbits({"plan", "study.toml"}), sweep({"-v"}), fedbits({"report", "out", "--text"})}) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_LT(outcome.out.size() + outcome.err.size(), 10000u);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("a" + std::string(37, 'x')), HasSubstr("xxx...xxx"), HasSubstr(std::string(38, 'x') + "b")));
  }
  EXPECT_THAT(exported("out"), HasSubstr(label));
}

TEST_F(SweepTest, ShowsAFinishedStudyAndDoesNotTouchIt) {
  write_study(2, 10);
  const Outcome first = sweep({});
  ASSERT_EQ(first.code, 0);
  const std::string before = read("out/results.sqlite");
  const Outcome again = sweep({});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("all 4 runs are in out: shown, not repeated (--again repeats them)\n"));
  EXPECT_EQ(read("out/results.sqlite"), before);
  const Outcome quiet = sweep({"--quiet"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
  const Outcome resumed = sweep({"--resume", "-v"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(count_of(resumed.err, "  done  rounds"), 0u);
  EXPECT_EQ(read("out/results.sqlite"), before);
  EXPECT_EQ(sweep({"--again"}).code, 0);
}

TEST_F(SweepTest, AsksBeforeItGoesOnWithAStudyThatIsHalfDone) {
  write_study(2, 10);
  ASSERT_EQ(sweep({}).code, 0);
  const std::string before = read("out/results.sqlite");
  write_study(3, 10);
  const Outcome more = sweep({});
  EXPECT_EQ(more.code, 2);
  EXPECT_THAT(more.err, HasSubstr("4 of the 6 runs already: --resume"));
  EXPECT_EQ(read("out/results.sqlite"), before);
  EXPECT_EQ(sweep({"--resume"}).code, 0);
  EXPECT_EQ(stored("out"), 6u);
}

// Also holds for a study without a finished run: a second `sweep` does not discard its checkpoints.
TEST_F(SweepTest, AsksBeforeItBeginsUnfinishedRunsAnew) {
  write_study(2, 200000);
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--checkpoint-rounds", "7"});
  const std::filesystem::path checkpoints = folder_ / "out" / "checkpoints";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((!exists("out/checkpoints") || std::filesystem::is_empty(checkpoints)) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  const Outcome more = sweep({});
  EXPECT_EQ(more.code, 2);
  const auto asks = testing::AllOf(HasSubstr(" of the 4 runs unfinished: --resume continues them"), HasSubstr("--again"));
  EXPECT_THAT(more.err, asks);
  const Outcome run = fedbits({"run", "study.toml", "--out", "out"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, asks);
}

TEST_F(SweepTest, ShowsASingleFinishedRun) {
  write_small();
  const std::vector<std::string> command = {"sweep", "small.toml", "--out", "out"};
  ASSERT_EQ(fedbits(command).code, 0);
  const Outcome again = fedbits(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("  done  rounds 5  "));
  EXPECT_THAT(again.err, HasSubstr("the run is in out: shown, not repeated (--again repeats it)"));
}

TEST_F(SweepTest, ListsItsRuns) {
  write_study(3, 10);
  const Outcome before = sweep({"--list"});
  EXPECT_EQ(before.code, 0);
  EXPECT_EQ(count_of(before.out, "  pending\n"), 6u) << before.out;
  EXPECT_FALSE(exists("out"));
  ASSERT_EQ(sweep({}).code, 0);
  EXPECT_EQ(count_of(sweep({"--list"}).out, "  done\n"), 6u);
}

TEST_F(SweepTest, ListsTenThousandRuns) {
  constexpr std::size_t kSeeds = test::kSanitized ? 500 : 5000;
  write_study(kSeeds, 10);
  EXPECT_EQ(count_of(sweep({"--list"}).out, "  pending\n"), 2 * kSeeds);
}

TEST_F(SweepTest, ListsWhatTuningFinds) {
  write_study(2, 400, "[sweep.tune]\nseeds = 1\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2, 0.5]\n");
  const Outcome before = sweep({"--list"});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(count_of(before.out, "(when tuned)"), 4u) << before.out;
  EXPECT_EQ(count_of(before.out, "  local.learning_rate=tuned  "), 4u);
  EXPECT_EQ(count_of(before.out, "  pending\n"), 4u);
  EXPECT_FALSE(exists("out"));
  const Outcome part = sweep({"--list", "--shard", "1/2"});
  EXPECT_EQ(part.code, 2);
  EXPECT_THAT(part.err, HasSubstr("is known only when"));
  ASSERT_EQ(sweep({}).code, 0);
  const Outcome after = sweep({"--list"});
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(count_of(after.out, "tuned"), 0u) << after.out;
  EXPECT_EQ(count_of(after.out, "  local.learning_rate="), 4u) << after.out;
  EXPECT_EQ(count_of(after.out, "  done\n"), 4u);
  EXPECT_THAT(exported("out"), HasSubstr(after.out.substr(0, 16)));
}

// One number near 1 in every round: a threshold passes it or sends a header alone, and half precision lies between.
TEST_F(SweepTest, BitsThatCannotBeMatchedDoNotEndTheStudy) {
  write("study.toml",
        "name = 'leap'\nrounds = 40\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 1\ndimension = 1\nzeta_sq = 0.0\nmu = "
        "1.0\n[partition]\nkind = 'natural'\nclients = 1\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\nlearning_rate = "
        "1e-6\n[evaluate]\nevery = 2\n[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='half', kind='identity', "
        "format='fp16'}, {label='hard', kind='hard_threshold', match_bits_of='half'}]\n");
  const Outcome outcome = sweep({});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("sends 704 bit for 960 bit, matched within 26.67%"));
  std::size_t recorded = 0;
  for (const RunRecord& run : RunStore::open(folder_ / "out", RunStore::Mode::read).list())
    for (const ResolvedConstant& constant : run.constants)
      recorded += constant.name == "matched_bits_deviation" && std::fabs(constant.value + 256.0 / 960) < 1e-12 ? 1 : 0;
  EXPECT_EQ(recorded, 2u) << "with both seeds";
  const Outcome report = fedbits({"report", "out", "--text"});
  EXPECT_THAT(report.out, HasSubstr("no value of the matched option sends as many bits as the reference, the nearest was taken: hard (bits "
                                    "-26.7%)"));
}

TEST_F(SweepTest, RunsOfAStudyEndAtEqualBits) {
  write_study(2, 60, "");
  ASSERT_EQ(sweep({"--set", "evaluate.every=1", "--set", "sweep.to_bits_of=top", "--set", "local.learning_rate=0.5"}).code, 0);
  std::uint64_t least = ~0ull, most = 0;
  for (const RunRecord& run : RunStore::open(folder_ / "out", RunStore::Mode::read).list()) {
    least = std::min(least, run.bits_up);
    most = std::max(most, run.bits_up);
  }
  EXPECT_LE(static_cast<double>(most), 1.2 * static_cast<double>(least)) << "a round of the hard threshold more";
}

TEST_F(SweepTest, ThreadsChangeNothing) {
  write_study(3, 20);
  ASSERT_EQ(sweep({}).code, 0);
  ASSERT_EQ(sweep({"--threads", "3"}, "three").code, 0);
  EXPECT_EQ(exported("three"), exported("out"));
  const RunStore three = RunStore::open(folder_ / "three", RunStore::Mode::read);
  for (const RunRecord& record : three.list()) EXPECT_EQ(record.threads, 3u);
}

TEST_F(SweepTest, RunsNoMoreAtATimeThanFit) {
  write_study(1, 5);
  for (const std::string wrong : {"lots", "8X", "-3G", "0", "1e400G"}) {
    const Outcome outcome = sweep({"--memory=" + wrong});
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("--memory: must be a size such as 8G or 500M (units K, M, G, T), is '" + wrong + "'"));
  }
  EXPECT_FALSE(exists("out"));
#if !FL_SANITIZED
  const Outcome none = sweep({"--memory", "1M"}, "none");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("memory: one run of study, compressor.up = "));
  EXPECT_THAT(none.err, HasSubstr("and 1.05 MB are allowed"));
  EXPECT_FALSE(exists("none"));
  // Data too: the error names what the format allows and what --memory does.
  const gzFile file = gzopen((folder_ / "bomb.gz").c_str(), "wb");
  const std::string line = "1 1:1\n";
  for (int i = 0; i < 400000; ++i) gzwrite(file, line.data(), static_cast<unsigned>(line.size()));
  gzclose(file);
  const Outcome bomb = sweep({"--memory", "2M", "--set", "data={path='./bomb'}"}, "none");
  EXPECT_EQ(bomb.code, 2);
  EXPECT_THAT(bomb.err, HasSubstr("unpacks to more than 2.0 MiB, and --memory allows 2.0 MiB; its format allows 2.0 GiB here"));
  const Outcome few = fedbits({"sweep", "study.toml", "--out", "few", "--jobs", "500", "--memory", "200 MB"});
  EXPECT_EQ(few.code, 0) << few.err;
  EXPECT_THAT(few.err, HasSubstr("209 MB of memory are enough for "));
  EXPECT_THAT(few.err, HasSubstr(" of 500 runs at a time"));
  EXPECT_EQ(stored("few"), 2u);
#endif
}

// Batch normalisation computes a minibatch at once, whatever its size.
TEST_F(SweepTest, AMinibatchThatDoesNotFitIsNamed) {
  write("study.toml",
        "name = 'study'\nrounds = 1\n[data]\nname = 'mushrooms'\nrows = 300\n[partition]\nkind = 'shuffled'\nclients = 2\n[model]\nkind = "
        "'neural_network'\nlayers = ['dense(50)', 'batch_norm', 'dense(classes)']\n[local]\nkind = 'sgd'\nbatch = 4000000\nsteps = "
        "1\n[sweep]\nseeds = 1\n");
  const Outcome none = sweep({"--memory", "500M"}, "none");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("memory: batch_norm computes all rows of a minibatch at once; 4000000 rows of a client take "));
  EXPECT_THAT(none.err, HasSubstr(" GB in each of 1 threads, and 524 MB are allowed; a smaller local.batch or group_norm needs less"));
  EXPECT_FALSE(exists("none"));
}

TEST_F(SweepTest, KilledSweepsGoOn) {
  write_study(30, 60);
  ASSERT_EQ(sweep({}, "peace").code, 0);
  const std::string expected = exported("peace");
  std::mt19937 random(7);
  std::size_t kills = 0;
  for (int attempt = 0; attempt < 100 && stored("out") < 60; ++attempt) {
    Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2", "--resume", "--checkpoint-rounds", "7"});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
    process.signal(SIGKILL);
    kills += process.wait().code == -SIGKILL ? 1 : 0;
  }
  EXPECT_GT(kills, 3u);
  const Outcome outcome = sweep({"--resume"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(exported("out"), expected);
}

// Children of the sweep that are killed one by one: their runs fail, the others do not notice, and a second sweep repeats what failed.
TEST_F(SweepTest, KilledWorkersCostTheirRunAlone) {
  write_study(20, 400);
  ASSERT_EQ(sweep({}, "peace").code, 0);
  const std::string expected = exported("peace");
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "2"}, test::whose_children_are_killed());
  std::mt19937 random(11);
  std::size_t kills = 0;
  for (int attempt = 0; attempt < 100 && kills < 6; ++attempt) {
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 20000));
    const std::vector<pid_t> workers = process.children();
    if (workers.empty()) continue;
    kills += ::kill(workers[random() % workers.size()], SIGKILL) == 0 ? 1 : 0;
  }
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_GT(kills, 0u);
  EXPECT_LE(count_of(outcome.err, "killed by signal 9"), kills);
  EXPECT_GT(count_of(outcome.err, "killed by signal 9"), 0u);
  EXPECT_EQ(stored("out"), 40u) << "failed runs are recorded";
  const Outcome resumed = sweep({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(exported("out"), expected);
}

TEST_F(SweepTest, ARunGoesOnFromItsCheckpoint) {
  write_study(1, test::kSanitized ? 6000 : 30000, "");
  ASSERT_EQ(sweep({"--checkpoint-minutes", "0"}, "peace").code, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGKILL}) {
    const std::string out = "out" + std::to_string(signal);
    Process process(folder_, {"sweep", "study.toml", "--out", out, "--jobs", "2", "--checkpoint-rounds", "50"});
    while (!exists(out + "/checkpoints")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    if (signal == SIGHUP)  // as a terminal does: all processes of the sweep hear it
      for (const pid_t worker : process.children()) ::kill(worker, signal);
    process.signal(signal);
    EXPECT_EQ(process.wait().code, signal == SIGKILL ? -SIGKILL : 128 + signal);
    EXPECT_FALSE(std::filesystem::is_empty(folder_ / out / "checkpoints"));
    const Outcome resumed = sweep({"--resume"}, out);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(exported(out), exported("peace")) << "signal " << signal;
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / out / "checkpoints")) << "finished runs keep none";
  }
}

TEST_F(SweepTest, ADamagedCheckpointIsAFailedRunThatSaysWhatToDo) {
  write_study(1, 300);
  std::filesystem::create_directories(folder_ / "out/checkpoints");
  const std::string hash = sweep({"--list"}).out.substr(0, 16);
  write("out/checkpoints/" + hash + ".checkpoint", "not a checkpoint");
  const Outcome outcome = sweep({"--resume", "-v"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("without it (remove the file) the run starts anew"));
  EXPECT_EQ(count_of(outcome.err, "  done  rounds 300"), 1u);
}

TEST_F(SweepTest, FailedRunsAreRecordedAndTheRestGoesOn) {
  write_study(3, 40, "[local]\nlearning_rate = 1e9\n");
  const Outcome outcome = sweep({"--set", "rounds=200"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(stored("out"), 6u);
}

TEST_F(SweepTest, ShardsTogetherAreTheSweep) {
  write_study(10, 30);
  ASSERT_EQ(sweep({}, "whole").code, 0);
  std::vector<std::string> merge = {"merge"};
  std::size_t total = 0;
  for (int i = 1; i <= 3; ++i) {
    const Outcome outcome = sweep({"--shard", std::to_string(i) + "/3"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    merge.push_back("out/shard-" + std::to_string(i) + "-of-3");
    total += stored(merge.back());
  }
  EXPECT_EQ(total, 20u);
  merge.insert(merge.end(), {"--out", "joined"});
  const Outcome merged = fedbits(merge);
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("20 runs added"));
  EXPECT_EQ(exported("joined"), exported("whole"));
  EXPECT_THAT(fedbits(merge).out, HasSubstr("0 runs added")) << "merging twice adds nothing";
}

TEST_F(SweepTest, RunsUnderGnuParallel) {
  if (std::system("command -v parallel >/dev/null 2>&1") != 0) GTEST_SKIP() << "TOOL MISSING: GNU parallel (apt-get install parallel)";
  write_study(10, 30);
  ASSERT_EQ(sweep({}, "whole").code, 0);
  const std::string command = "cd '" + folder_.string() +
                              "' && env -u FEDBITS_DATA parallel --will-cite -j2 '" FL_BINARY
                              "' sweep study.toml --quiet --jobs 1 --out out --shard {}/4 ::: 1 2 3 4 && '" FL_BINARY
                              "' merge out/shard-*-of-4 --out joined >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(exported("joined"), exported("whole"));
}

TEST_F(SweepTest, RefusesWrongShards) {
  write_study(1, 5);
  for (const std::string shard : {"0/3", "4/3", "1/0", "x", "1/", "/2", "1/2x", "-1/2"}) {
    const Outcome outcome = sweep({"--shard", shard});
    EXPECT_EQ(outcome.code, 2) << shard;
    EXPECT_THAT(outcome.err, HasSubstr("--shard")) << shard;
  }
  EXPECT_FALSE(exists("out"));
}

TEST_F(SweepTest, TwoSweepsDoNotWriteToOneFolder) {
  write_study(1, 3000000);
  Process process(folder_, {"sweep", "study.toml", "--out", "out", "--jobs", "1"});
  while (!exists("out/sweep.lock")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Outcome second = sweep({"--resume"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("another sweep is writing to out"));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
}

TEST_F(SweepTest, RefusesAFolderThatCannotBeWritten) {
  write_study(1, 5);
  std::filesystem::create_directory(folder_ / "out");
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const Outcome outcome = Process(folder_, {"sweep", "study.toml", "--out", "out"}, test::Rights::no_override).wait();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write"));
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace fl
