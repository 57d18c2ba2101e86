// Tests faults around a run: unusable data, unwritable output, numbers that diverge, and processes that are interrupted or killed. The
// store stays readable, and every run in it is whole.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "scenarios/results/run_store.hpp"
#include "scenarios/results/sqlite.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using test::Process;
using testing::HasSubstr;
using testing::Not;

// ---- data --------------------------------------------------------------------------------------------------------------------

std::string gzipped(const std::string& text) {
  std::string packed(text.size() + 100, '\0');
  z_stream stream{};
  constexpr int kWithGzipHeader = 15 + 16;
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWithGzipHeader, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string many_rows() {
  std::string text;
  for (int row = 0; row < 400; ++row)
    text += (row % 2 == 0 ? "1 1:" : "-1 1:") + std::to_string(0.001 * row) + " 3:" + std::to_string(row % 7) + "\n";
  return text;
}

struct BadData {
  std::string label, bytes, message;
};
void PrintTo(const BadData& data, std::ostream* out) { *out << data.label; }

class BadDataFiles : public test::BinaryTest, public testing::WithParamInterface<BadData> {};

TEST_P(BadDataFiles, AreNamedAndLeaveNothing) {
  write_small();
  write("rows.txt", GetParam().bytes);
  const Outcome outcome = run_with({"data={path='./rows.txt'}"});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("rows.txt"));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_FALSE(exists("out"));
}

std::string binary_bytes() {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += static_cast<char>((i * i * 31 + i * 7) % 256);
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(Files, BadDataFiles,
                         testing::Values(BadData{"Empty", "", "empty"}, BadData{"OnlyComments", "# nothing\n\n", ""},
                                         BadData{"TruncatedGzip", gzipped(many_rows()).substr(0, 300), "ends early"},
                                         BadData{"DamagedGzip", "\x1f\x8b" + binary_bytes(), ""},
                                         BadData{"Binary", binary_bytes(), "rows.txt:1:"},
                                         BadData{"HugeIndex", "1 1:0.5\n-1 4000000000:1\n", "rows.txt:2:4: the feature index 4000000000"},
                                         BadData{"IndexZero", "1 0:0.5\n-1 2:1\n", "rows.txt:1:3"},
                                         BadData{"IndicesNotAscending", "1 2:0.5 1:0.5\n-1 2:1\n", "rows.txt:1:9"},
                                         BadData{"NaN", "1 1:0.5\n-1 2:nan\n", "rows.txt:2:6: the value is nan"},
                                         BadData{"Infinite", "1 1:0.5\n-1 2:1e999\n", "rows.txt:2:6"},
                                         BadData{"NanLabel", "1 1:0.5\nnan 2:1\n", "rows.txt:2:1"},
                                         BadData{"CutInTheMiddle", "1 1:0.5\n-1 2:\n", "rows.txt:2:"},
                                         BadData{"OneClass", "1 1:0.5\n1 2:1\n1 3:1\n1 4:1\n", "two classes"}),
                         [](const auto& one) { return one.param.label; });

class FaultTest : public test::BinaryTest {
 protected:
  void TearDown() override {
    ::umount((folder_ / "disk").c_str());  // left when a test of a full disk was cut short
    BinaryTest::TearDown();
  }
  // False where this process may not mount.
  [[nodiscard]] bool mount_disk(const std::string& size) const {
    std::filesystem::create_directory(folder_ / "disk");
    return ::mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  // Fails unless every run of the store has all the rows that it says it has. Returns the statuses by the value of the first axis.
  std::map<std::string, RunStatus> expect_whole_runs(const std::string& out) const {
    std::map<std::string, RunStatus> statuses;
    const RunStore store = RunStore::open(folder_ / out, RunStore::Mode::read);
    for (const RunRecord& run : store.list()) {
      const std::vector<RoundRow> rows = store.rows(run.run);
      EXPECT_EQ(rows.size(), run.rounds + 1) << run.run;
      std::uint64_t bits = 0;
      for (const RoundRow& row : rows) bits += row.bits_up;
      EXPECT_EQ(bits, run.bits_up) << run.run;
      statuses[run.axes.empty() ? "" : run.axes[0].label + "/" + std::to_string(run.seed)] = run.status;
    }
    const Outcome exported = fedbits({"export", out, "--runs", "runs.csv", "--rounds", "rounds.csv"});
    EXPECT_EQ(exported.code, 0) << exported.err;
    EXPECT_EQ(count_of(read("runs.csv"), "\n"), 1 + statuses.size());
    return statuses;
  }
};

TEST_F(FaultTest, GoodDataIsReadPlainAndPacked) {
  write_small();
  write("rows.txt", many_rows());
  write("packed.gz", gzipped(many_rows()));
  const Outcome plain = run_with({"data={path='./rows.txt'}"}), packed = run_with({"data={path='./packed.gz'}"});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(packed.code, 0) << packed.err;
  const std::vector<RunRecord> runs = RunStore::open(folder_ / "out", RunStore::Mode::read).list();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].checksum, runs[1].checksum);
}

// ---- output ------------------------------------------------------------------------------------------------------------------

TEST_F(FaultTest, OutputThatIsAFileIsRefused) {
  write_small();
  write("out", "something of mine\n");
  const Outcome outcome = run_with({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--out takes a folder"));
  EXPECT_EQ(read("out"), "something of mine\n");
}

// A file system takes names of at most 255 bytes, which a name of a scenario may exceed.
TEST_F(FaultTest, NamesThatNoFileSystemTakesAreRefusedBeforeTheRun) {
  write_small();
  const Outcome named = fedbits({"run", "small.toml", "--set", "name=\"" + std::string(300, 'n') + "\""});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, HasSubstr("cannot write results in fedbits-out/nnn"));
  EXPECT_THAT(named.err, HasSubstr("name too long"));
  EXPECT_FALSE(exists("fedbits-out"));
  EXPECT_EQ(fedbits({"run", "small.toml", "--out", "a/" + std::string(300, 'n') + "/b"}).code, 2);
}

// Returns the exit code of a command of the shell, in the test's folder, in which $FEDBITS is the program.
int code_of_shell(const std::filesystem::path& folder, const std::string& command) {
  const int status = std::system(("cd '" + folder.string() + "' && FEDBITS='" FL_BINARY "' && " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(FaultTest, AFolderThatIsGoneIsNamed) {
  write_small();
  EXPECT_EQ(code_of_shell(folder_, "mkdir gone && cd gone && rmdir ../gone && \"$FEDBITS\" run ../small.toml 2> ../said"), 2);
  EXPECT_THAT(read("said"), HasSubstr("the current folder may have been removed"));
}

// The first files and sockets of a process whose standard streams are closed get their numbers, so that text went to a worker's socket.
TEST_F(FaultTest, ClosedStandardStreamsAreNobodysSockets) {
  write_small();
  EXPECT_EQ(code_of_shell(folder_, "\"$FEDBITS\" sweep -v small.toml --set sweep.seeds=4 --jobs 2 --out closed 0<&- 1>&- 2>&-"), 0);
  EXPECT_EQ(fedbits({"verify", "closed"}).code, 0);
  EXPECT_EQ(RunStore::open(folder_ / "closed", RunStore::Mode::read).list().size(), 4U);
}

TEST_F(FaultTest, OutputBelowAReadOnlyFolderIsRefused) {
  write_small();
  std::filesystem::create_directory(folder_ / "locked");
  std::filesystem::permissions(folder_ / "locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  for (const std::string out : {"locked", "locked/below"}) {
    const Outcome outcome = Process(folder_, {"run", "small.toml", "--out", out}, test::Rights::no_override).wait();
    if (outcome.code == 125) GTEST_SKIP() << "NO CAPABILITIES: the superuser's rights could not be dropped";
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("cannot write results in " + out + ": Permission denied"));
  }
  std::filesystem::permissions(folder_ / "locked", std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "locked"));
}

TEST_F(FaultTest, ADiskThatIsFullAtTheStartIsRefused) {
  write_small();
  if (!mount_disk("16k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  const Outcome outcome = fedbits({"run", "small.toml", "--out", "disk/out"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "disk"));
}

TEST_F(FaultTest, ADiskThatFillsUpLeavesWhatWasStored) {
  write_small("[sweep]\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [5, 8000]\n");
  if (!mount_disk("256k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  const Outcome outcome = fedbits({"run", "small.toml", "--out", "disk", "--set", "evaluate.every=1000", "--threads", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("disk/results.sqlite"));
  EXPECT_EQ(expect_whole_runs("disk"), (std::map<std::string, RunStatus>{{"5/1", RunStatus::done}}));
  const Outcome exported = fedbits({"export", "disk", "--rounds", "disk/rounds.csv"});
  EXPECT_EQ(exported.code, 0) << exported.err;
}

// Workers go on while the parent finds that it cannot store: what was stored is whole, and the sweep goes on from there.
TEST_F(FaultTest, ADiskThatFillsUpUnderASweepLeavesWholeRuns) {
  write_small("[sweep]\nseeds = 3\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [5, 4000]\n");
  if (!mount_disk("400k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  const std::vector<std::string> sweep = {"sweep",  "small.toml", "--out",   "disk/out", "--set", "evaluate.every=1000",
                                          "--jobs", "2",          "--resume"};
  const Outcome outcome = fedbits(sweep);
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("disk/out"));
  EXPECT_LT(expect_whole_runs("disk/out").size(), 6u);
  ASSERT_EQ(::mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  const Outcome again = fedbits(sweep);
  EXPECT_EQ(again.code, 0) << again.err;
  const std::map<std::string, RunStatus> all = expect_whole_runs("disk/out");
  EXPECT_EQ(all.size(), 6u);
  for (const auto& [run, status] : all) EXPECT_EQ(status, RunStatus::done) << run;
}

TEST_F(FaultTest, AnExportThatDoesNotFitLeavesNoHalfFile) {
  write_small();
  ASSERT_EQ(run_with({"rounds=800", "evaluate.every=1000"}).code, 0);
  if (!mount_disk("32k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  const Outcome outcome = fedbits({"export", "out", "--rounds", "disk/rounds.csv"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "disk"));
}

TEST_F(FaultTest, StoresOfAnotherVersionAndOtherFilesAreRefused) {
  write_small();
  ASSERT_EQ(run_with({}).code, 0);
  sqlite::Database(folder_ / "out/results.sqlite", sqlite::OpenMode::existing).execute("PRAGMA user_version=99");
  const std::string before = read("out/results.sqlite");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run", "small.toml", "--out", "out"},
                                                  {"export", "out", "--runs", "runs.csv"},
                                                  {"explain", "0", "--out", "out"}}) {
    const Outcome outcome = fedbits(command);
    EXPECT_EQ(outcome.code, 2) << command[0];
    EXPECT_THAT(outcome.err, HasSubstr("version 99")) << command[0];
  }
  EXPECT_EQ(read("out/results.sqlite"), before);
  EXPECT_FALSE(exists("runs.csv"));

  write("out/results.sqlite", "this is no database, whatever its name says\n");
  const Outcome other = run_with({});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("results.sqlite"));
}

// ---- runs that do not end well -----------------------------------------------------------------------------------------------

TEST_F(FaultTest, DivergenceIsAStatusAndNeverANumber) {
  write_small("[local]\nlearning_rate = 1e6\n[sweep]\n[[sweep.axis]]\nkey = 'precision'\nvalues = ['float32', 'float64']\n");
  const Outcome outcome = run_with({"rounds=100"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(count_of(outcome.out, "  diverged  rounds "), 2u) << outcome.out;
  const auto statuses = expect_whole_runs("out");
  for (const std::string precision : {"float32/1", "float64/1"}) EXPECT_EQ(statuses.at(precision), RunStatus::diverged);
  for (const std::string& text : {outcome.out, read("runs.csv"), read("rounds.csv")}) EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(outcome.out, HasSubstr("1/1 diverged"));
  // It would diverge again: shown, and the exit code says so again.
  const Outcome shown = run_with({"rounds=100"});
  EXPECT_EQ(shown.code, 1);
  EXPECT_EQ(shown.out, outcome.out);
}

class Interruptions : public FaultTest, public testing::WithParamInterface<std::pair<int, int>> {
 protected:
  // Returns whether a run is going on, which is then stored when it is stopped.
  [[nodiscard]] bool has_checkpoint(const std::string& store) const {
    return exists(store + "/checkpoints") && !std::filesystem::is_empty(folder_ / store / "checkpoints");
  }
};

TEST_P(Interruptions, KeepFinishedCellsAndTheOneThatWasRunning) {
  const auto [signal, code] = GetParam();
  write_small("[sweep]\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [5, 3000000, 6]\n");
  Process process(folder_, {"run", "small.toml", "--out", "out", "--verbose", "--threads", "1", "--set", "evaluate.every=1000000",
                            "--checkpoint-rounds", "1000"});
  ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("out"); }));
  process.signal(signal);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  const std::map<std::string, RunStatus> expected = {{"5/1", RunStatus::done}, {"3000000/1", RunStatus::interrupted}};
  EXPECT_EQ(expect_whole_runs("out"), expected);
}

TEST_P(Interruptions, KeepAllCellsThatHaveBegunAtTheSameTime) {
  const auto [signal, code] = GetParam();
  write_small("[sweep]\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [5, 3000000, 6]\n");
  Process process(folder_, {"run", "small.toml", "--out", "out", "--verbose", "--threads", "3", "--set", "evaluate.every=1000000",
                            "--checkpoint-rounds", "1000"});
  ASSERT_TRUE(process.wait_until([&] { return has_checkpoint("out"); }));
  process.signal(signal);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, code) << outcome.err;
  const std::map<std::string, RunStatus> statuses = expect_whole_runs("out");
  EXPECT_EQ(statuses.at("5/1"), RunStatus::done);
  EXPECT_EQ(statuses.at("3000000/1"), RunStatus::interrupted);
  EXPECT_TRUE(statuses.contains("6/1")) << "it had begun, and is stored as far as it came";
}

INSTANTIATE_TEST_SUITE_P(Signals, Interruptions,
                         testing::Values(std::pair(SIGINT, 130), std::pair(SIGTERM, 143), std::pair(SIGHUP, 129), std::pair(SIGUSR1, 138),
                                         std::pair(SIGXCPU, 152)),
                         [](const auto& one) { return std::string(::sigabbrev_np(one.param.first)); });

// nohup starts a process that does not hear of the end of its terminal.
TEST_F(FaultTest, AHangUpThatIsIgnoredStaysIgnored) {
  write_small("");
  const auto before = ::signal(SIGHUP, SIG_IGN);
  Process process(folder_, {"run", "small.toml", "--out", "out", "--set", "rounds=3000000", "--set", "evaluate.every=1000000",
                            "--checkpoint-rounds", "10000"});
  ::signal(SIGHUP, before);
  ASSERT_TRUE(process.wait_until([&] { return !read("stderr.txt").empty(); })) << "progress: rounds are played";
  process.signal(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(process.has_ended());
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 143);
}

// Killed again and again while it writes one run after another; in the end nothing is missing, and nothing was done twice.
TEST_F(FaultTest, KilledProcessesLeaveWholeRuns) {
  constexpr std::size_t kSeeds = 200;
  write("many.toml",
        "name = 'many'\nrounds = 40\n[data]\nkind = 'quadratics'\nclients = 3\n[partition]\nkind = 'natural'\nclients = 3\n"
        "[model]\nkind = 'quadratic'\n[sweep]\nseeds = " +
            std::to_string(kSeeds) + "\n[[sweep.axis]]\nkey = 'precision'\nvalues = ['float64']\n");
  const std::vector<std::string> run = {"run", "many.toml", "--out", "out", "--threads", "1", "--verbose"};
  std::size_t stored = 0, kills = 0;
  for (const std::size_t more : {1, 5, 9, 20, 2, 13}) {
    Process process(folder_, run);
    if (!process.wait_for_lines(stored + more)) break;  // a slow machine: it was done before it could be killed
    std::this_thread::sleep_for(std::chrono::microseconds(700 * more));
    process.signal(SIGKILL);
    kills += process.wait().code == -SIGKILL ? 1 : 0;
    const std::size_t now = expect_whole_runs("out").size();
    EXPECT_GE(now, stored + more);
    stored = now;
  }
  EXPECT_GT(kills, 0u);
  EXPECT_EQ(fedbits(run).code, 0);
  const auto statuses = expect_whole_runs("out");
  EXPECT_EQ(statuses.size(), kSeeds);
  for (const auto& [cell, status] : statuses) EXPECT_EQ(status, RunStatus::done) << cell;
}

}  // namespace
}  // namespace fl
