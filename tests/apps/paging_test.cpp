// Tests client state beyond memory from the command line. Results are the same as without a bound, also after kills at any moment. Error
// messages give the solution when the bound is too small, the disk is full or the file is gone. Nothing is left behind.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "tests/support/binary.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::Process;
using testing::AllOf;
using testing::HasSubstr;

class Paging : public test::BinaryTest {
 protected:
  void TearDown() override {
    ::umount((folder_ / "disk").c_str());
    BinaryTest::TearDown();
  }
  // 100 clients, 8 in a round, 904 bytes of state each: all of them and a round's shadows take 98 KB, a round at least 16 KB.
  void write_study(int rounds, const std::string& more = "") const {
    write("study.toml",
          "name = 'study'\nrounds = " + std::to_string(rounds) +
              "\nprecision = 'float64'\n[data]\nname = 'mushrooms'\nrows = 400\n[partition]\nkind = 'shuffled'\nclients = 100\n"
              "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[local]\nbatch = 2\nlearning_rate = 0.05\n[participation]\n"
              "kind = 'uniform'\nclients = 8\n[compressor.up]\nkind = 'top_k'\nk = 5\n[feedback.up]\nkind = 'ef14'\n"
              "[evaluate]\nevery = 50\noptimum = false\ngradient = 'start'\n" +
              more);
  }
  [[nodiscard]] static std::vector<std::string> command(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run", "study.toml", "--out", out, "--threads", "1", "--checkpoint-minutes", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  [[nodiscard]] Outcome run(const std::string& out, const std::vector<std::string>& more = {}) const { return fedbits(command(out, more)); }
  [[nodiscard]] std::string exported(const std::string& out) const {
    const Outcome outcome = fedbits({"export", out, "--reproducible", "--runs", "runs.csv", "--rounds", "rounds.csv"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read("runs.csv") + read("rounds.csv");
  }
  // Page files in a folder.
  [[nodiscard]] std::vector<fs::path> pages(const std::string& folder) const {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(folder_ / folder, error), end; !error && at != end; at.increment(error))
      if (at->path().filename().string().find(".pages-") != std::string::npos) found.push_back(at->path());
    return found;
  }
  // Starts a run and kills it when it has made its first checkpoint.
  void kill_after_a_checkpoint(const std::string& out, std::vector<std::string> more) const {
    more.insert(more.end(), {"--checkpoint-rounds", "10"});
    Process process(folder_, command(out, more));
    ASSERT_TRUE(process.wait_until([&] { return has_checkpoint(out); }));
    process.signal(SIGKILL);
    ASSERT_EQ(process.wait().code, -SIGKILL);
  }
  [[nodiscard]] bool has_checkpoint(const std::string& out) const {
    std::error_code error;
    for (fs::directory_iterator at(folder_ / out / "checkpoints", error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".checkpoint") return true;
    return false;
  }
  static constexpr const char* kLittle = "20K";
};

TEST_F(Paging, GivesTheSameResults) {
  for (const std::string absent : {"keep", "decay", "drop", "server"}) {
    write_study(300, "");
    const std::string set = "participation.absent=" + absent;
    ASSERT_EQ(run("much-" + absent, {"--set", set}).code, 0);
    const Outcome little = run("little-" + absent, {"--set", set, "--state-memory", kLittle, "--checkpoint-rounds", "20"});
    ASSERT_EQ(little.code, 0) << little.err;
    EXPECT_EQ(exported("little-" + absent), exported("much-" + absent)) << absent;
    EXPECT_TRUE(fs::is_empty(folder_ / ("little-" + absent) / "checkpoints"));
  }
}

TEST_F(Paging, TooLittleMemoryForARoundIsRefused) {
  write_study(10);
  const Outcome outcome = run("out", {"--state-memory", "10K"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--state-memory: must be at least 16K for this run, whose rounds have up to 8 clients"));
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(run("out", {"--state-memory", "16K"}).code, 0);
  EXPECT_THAT(run("out", {"--state-memory", "many"}).err, HasSubstr("--state-memory: must be a size"));
}

TEST_F(Paging, PlansWithTheMemoryThatIsAllowed) {
  write_study(100000, "[sweep]\nseeds = 1\n");
  const auto bytes_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", "study.toml", "--jobs", "1", "--set", "partition.clients=400", "--json", "plan.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("with --device cuda a run takes up to "));
    const std::string text = read("plan.json");
    const auto number = [&](const std::string& key) { return std::stod(text.substr(text.find("\"" + key + "\":") + key.size() + 3)); };
    EXPECT_GT(number("device_least_bytes"), 1e6);
    EXPECT_GT(number("device_bytes"), number("device_least_bytes")) << "state can lie in a file";
    EXPECT_GT(number("device_data_bytes"), 0);
    return number("worker_bytes");
  };
  EXPECT_GT(bytes_of({}), 0);
  EXPECT_LE(bytes_of({"--state-memory", kLittle}), 1.05 * bytes_of({}));
  EXPECT_EQ(fedbits({"plan", "study.toml", "--state-memory", "1K"}).code, 2);
}

// ---- kills and signals ---------------------------------------------------------------------------------------------------------------

TEST_F(Paging, KillsAtFiftyMomentsChangeNothing) {
  write_study(4000);
  constexpr int kMoments = 50;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run("peace").code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const std::string expected = exported("peace");
  std::mt19937 random(29);
  int kills = 0, study = 0;
  std::string out = "out0";
  while (kills < kMoments) {
    const std::string memory = std::to_string(16 + random() % 30) + "K";
    std::vector<std::string> more = {"--resume", "--checkpoint-rounds", std::to_string(5 + random() % 60)};
    if (random() % 5 != 0) more.insert(more.end(), {"--state-memory", memory});  // now and then without a bound
    Process process(folder_, command(out, more));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<std::uint64_t>(whole.count())));
    if (!process.has_ended()) process.signal(SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.code == -SIGKILL) {  // it may have ended by itself before the signal came
      ++kills;
      continue;
    }
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_EQ(exported(out), expected);
    EXPECT_TRUE(pages(out + "/checkpoints").empty());
    out = "out" + std::to_string(++study);
  }
  const Outcome last = run(out, {"--resume", "--state-memory", kLittle});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(exported(out), expected);
  EXPECT_TRUE(fs::is_empty(folder_ / out / "checkpoints")) << "leftovers of killed processes";
}

TEST_F(Paging, SignalsLeaveWhatTheCheckpointSpeaksOfAlone) {
  write_study(4000);
  ASSERT_EQ(run("peace").code, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string out = "out" + std::to_string(signal);
    Process process(folder_, command(out, {"--state-memory", kLittle, "--set", "rounds=4000"}));
    ASSERT_TRUE(process.wait_until([&] { return !pages(out + "/checkpoints").empty(); }));
    process.signal(signal);
    const Outcome outcome = process.wait();
    ASSERT_EQ(outcome.code, 128 + signal) << outcome.err;
    EXPECT_EQ(pages(out + "/checkpoints").size(), 1u);
    EXPECT_EQ(run(out, {"--resume", "--state-memory", "30K"}).code, 0);
    EXPECT_EQ(exported(out), exported("peace"));
    EXPECT_TRUE(fs::is_empty(folder_ / out / "checkpoints"));
  }
}

TEST_F(Paging, LeftoversOfAKilledProcessGoWithTheNextStart) {
  write_study(100000000);
  Process process(folder_, command("out", {"--state-memory", kLittle}));
  ASSERT_TRUE(process.wait_until([&] { return !pages("out/checkpoints").empty(); }));
  ASSERT_EQ(run("out", {"--set", "rounds=20", "--state-memory", kLittle}).code, 0) << "another run beside it";
  EXPECT_EQ(pages("out/checkpoints").size(), 1u) << "a living process has it";
  process.signal(SIGKILL);
  (void)process.wait();
  EXPECT_EQ(pages("out/checkpoints").size(), 1u);
  ASSERT_EQ(run("out", {"--set", "rounds=20"}).code, 0);
  EXPECT_TRUE(pages("out/checkpoints").empty());
}

// As if the process had been killed between storing its result and taking its checkpoint away.
TEST_F(Paging, TheCheckpointOfAStoredRunGoesWithTheNextStart) {
  write_study(4000);
  kill_after_a_checkpoint("out", {"--state-memory", kLittle});
  fs::copy(folder_ / "out" / "checkpoints", folder_ / "saved", fs::copy_options::recursive);
  ASSERT_EQ(run("out", {"--resume", "--state-memory", kLittle}).code, 0);
  fs::copy(folder_ / "saved", folder_ / "out" / "checkpoints", fs::copy_options::recursive);
  ASSERT_FALSE(pages("out/checkpoints").empty());
  ASSERT_EQ(run("out", {"--resume"}).code, 0);
  EXPECT_TRUE(fs::is_empty(folder_ / "out" / "checkpoints"));
}

// A start with --again does not spoil the checkpoint that is there before it has one of its own.
TEST_F(Paging, AFolderOfOnesOwnHoldsOnlyThePages) {
  write_study(4000);
  ASSERT_EQ(run("peace").code, 0);
  fs::create_directory(folder_ / "fast");
  kill_after_a_checkpoint("out", {"--state-memory", kLittle, "--state-folder", "fast"});
  EXPECT_EQ(pages("fast").size(), 1u);
  EXPECT_TRUE(pages("out/checkpoints").empty());
  ASSERT_EQ(run("other", {"--state-memory", kLittle, "--state-folder", "fast", "--set", "rounds=20"}).code, 0);
  EXPECT_EQ(pages("fast").size(), 1u) << "that of another study";
  const Outcome refused = run("out", {"--state-memory", kLittle, "--state-folder", "fast"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("unfinished: --resume continues"));
  Process again(folder_, command("out", {"--again", "--state-memory", kLittle, "--state-folder", "fast"}));
  ASSERT_TRUE(again.wait_until([&] { return pages("fast").size() == 2; }));
  again.signal(SIGKILL);
  (void)again.wait();
  const Outcome elsewhere = run("out", {"--resume", "--state-memory", kLittle});
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("--state-folder names the folder where it lies"));
  const Outcome resumed = run("out", {"--resume", "--state-memory", kLittle, "--state-folder", "fast"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(exported("out"), exported("peace"));
  EXPECT_TRUE(fs::is_empty(folder_ / "fast"));
}

// ---- what goes wrong -----------------------------------------------------------------------------------------------------------------

TEST_F(Paging, AMissingOrDamagedFileIsNamed) {
  write_study(4000);
  kill_after_a_checkpoint("out", {"--state-memory", kLittle});
  ASSERT_EQ(pages("out/checkpoints").size(), 1u);
  const fs::path file = pages("out/checkpoints")[0];
  const std::string good = test::read_text(file);
  for (const std::string memory : {"20K", "1G"}) {
    const auto refusal = [&] {
      const Outcome outcome = run("out", {"--resume", "--state-memory", memory});
      EXPECT_EQ(outcome.code, 1);
      return outcome.err;
    };
    std::string damaged = good;
    for (std::size_t at = 0; at < damaged.size(); at += 500) damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_THAT(refusal(), AllOf(HasSubstr("cannot be used: its state file"), HasSubstr("is damaged"), HasSubstr("remove the file")));
    std::ofstream(file, std::ios::binary) << good.substr(0, 700);
    EXPECT_THAT(refusal(), HasSubstr("has 700 bytes of at least"));
    fs::remove(file);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("its state file"), HasSubstr("No such file")));
    std::ofstream(file, std::ios::binary) << good;
  }
  EXPECT_EQ(run("out", {"--resume", "--state-memory", kLittle}).code, 0);
}

// The run is stopped for a while (SIGSTOP), and its checkpoint knows nothing of it.
TEST_F(Paging, AFileThatIsDamagedUnderARunEndsIt) {
  write_study(40000);
  Process process(folder_, command("out", {"--state-memory", kLittle}));
  ASSERT_TRUE(process.wait_until([&] { return !pages("out/checkpoints").empty() && fs::file_size(pages("out/checkpoints")[0]) > 20000; }));
  process.signal(SIGSTOP);
  const fs::path file = pages("out/checkpoints")[0];
  std::string bytes = test::read_text(file);
  for (std::size_t at = 100; at < bytes.size(); at += 904) bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(file, std::ios::binary | std::ios::in) << bytes;  // the same file, not cut off first
  process.signal(SIGCONT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("client state is damaged: out/checkpoints/"), HasSubstr(".pages-"), HasSubstr(", bytes "),
                                 HasSubstr(", the state of client "), HasSubstr("go on with --resume")));
}

// The command finds what a run that goes on would refuse, and says where it lies.
TEST_F(Paging, VerifyReadsPageFilesToo) {
  write_study(4000);
  fs::create_directory(folder_ / "fast");
  kill_after_a_checkpoint("out", {"--state-memory", kLittle, "--state-folder", "fast"});
  const Outcome whole = fedbits({"verify", "out", "--state-folder", "fast"});
  EXPECT_EQ(whole.code, 0) << whole.out;
  EXPECT_THAT(whole.out, HasSubstr("with the state of its clients in "));
  const Outcome elsewhere = fedbits({"verify", "out"});
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_THAT(elsewhere.out, AllOf(HasSubstr("DAMAGED: "), HasSubstr("No such file"), HasSubstr("--state-folder names the folder")));
  const fs::path file = pages("fast")[0];
  std::string bytes = test::read_text(file);
  for (std::size_t at = 100; at < bytes.size(); at += 904) bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const Outcome damaged = fedbits({"verify", "out", "--state-folder", "fast"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("DAMAGED: fast/"), HasSubstr(", bytes "), HasSubstr(", the state of client "),
                                 HasSubstr(": does not match its checksum"), HasSubstr("1 damaged")));
}

TEST_F(Paging, AFullDiskEndsTheRunAndTheCheckpointStaysGood) {
  write_study(4000);
  ASSERT_EQ(run("peace").code, 0);
  fs::create_directory(folder_ / "disk");
  if (::mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", 0, "size=48k") != 0) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  // Two checkpoints' worth of rows fit for some rounds: places are kept for the last checkpoint while new ones are written.
  const std::vector<std::string> little = {"--state-memory", kLittle, "--state-folder", "disk"};
  std::vector<std::string> often = little;
  often.insert(often.end(), {"--checkpoint-rounds", "2"});
  const Outcome outcome = run("out", often);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("cannot keep client state in disk/"), HasSubstr("No space left on device"),
                    HasSubstr("choose another folder with --state-folder"), HasSubstr("the last checkpoint, if any, is untouched")));
  ASSERT_TRUE(has_checkpoint("out"));
  ASSERT_EQ(pages("disk").size(), 1u);
  ASSERT_EQ(::mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=4m"), 0) << std::strerror(errno);
  std::vector<std::string> resume = little;
  resume.emplace_back("--resume");
  const Outcome resumed = run("out", resume);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(exported("out"), exported("peace"));
}

TEST_F(Paging, WorkersOfASweepPageEachToAFileOfItsOwn) {
  write_study(400, "[sweep]\nseeds = 4\n");
  ASSERT_EQ(fedbits({"sweep", "study.toml", "--out", "much", "--jobs", "2"}).code, 0);
  const Outcome little =
      fedbits({"sweep", "study.toml", "--out", "little", "--jobs", "2", "--state-memory", kLittle, "--checkpoint-rounds", "50"});
  ASSERT_EQ(little.code, 0) << little.err;
  EXPECT_EQ(exported("little"), exported("much"));
  EXPECT_TRUE(fs::is_empty(folder_ / "little/checkpoints"));
}

}  // namespace
}  // namespace fl
