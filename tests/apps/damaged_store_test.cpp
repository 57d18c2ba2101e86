// Changes single bytes of a finished store: exported values are right or named as damaged, and resuming completes the study again.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/results/sqlite.hpp"
#include "study/results/damaged_runs.hpp"
#include "study/results/export.hpp"
#include "study/results/verify.hpp"
#include "tests/support/flip_bytes.hpp"
#include "tests/support/study.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::Flip;
using testing::HasSubstr;

constexpr std::size_t kFlips = 500;
constexpr std::uint64_t kRuns = 6, kRounds = 40;

RunRecord damaged_test_record(std::uint64_t number) {
  RunRecord record{.run = "00000000000000a" + std::to_string(number), .name = "small", .seed = number, .status = RunStatus::done};
  record.rounds = kRounds;
  record.bits_up = 1000 * number;
  record.train_loss = 0.25 + 0.01 * static_cast<double>(number);
  record.checksum = "523e35e99f479bdd";
  record.scenario = std::string("results_version = ") + std::to_string(kLeastResultsVersion) + "\nname = \"small\"\nrounds = 40\n";
  record.parameters = 112;
  record.f_star = 0.1;
  record.axes = {{"compressor.up", number % 2 == 0 ? "top" : "hard"}};
  record.constants = {{"L", 1.5}, {"mu", kNotMeasured}};
  return record;
}

std::vector<RoundRow> damaged_test_rows(std::uint64_t number) {
  std::vector<RoundRow> rows(kRounds + 1);
  for (std::uint64_t r = 0; r <= kRounds; ++r) {
    rows[r].round = r;
    rows[r].clients = 5;
    rows[r].elements_up = 5 * r;
    rows[r].bits_up = 777 * r + number;
    rows[r].train_loss = 0.1 + 1.0 / static_cast<double>(r + number + 1);
    rows[r].f_gap = rows[r].train_loss - 0.1;
    rows[r].refused = r == 7 ? 1 : 0;
  }
  return rows;
}

class DamagedStoreTest : public test::BinaryTest {
 protected:
  void SetUp() override {
    BinaryTest::SetUp();
    fill(folder_ / "whole");
    bytes_ = bytes_of(folder_ / "whole" / RunStore::kFileName);
    whole_ = lines_of(RunStore::open(folder_ / "whole", RunStore::Mode::read), damaged_);
    ASSERT_TRUE(damaged_.empty());
    ASSERT_EQ(whole_.size(), 2 + kRuns + kRuns * (kRounds + 1));
    flips_ = test::draw_flips(bytes_.size(), kFlips, 20261122);
    fs::create_directories(folder_ / "flipped");
  }
  static void fill(const fs::path& place) {
    RunStore store = RunStore::open(place, RunStore::Mode::create);
    for (std::uint64_t number = 1; number <= kRuns; ++number) store.append(damaged_test_record(number), damaged_test_rows(number));
  }
  // Everything that an export of runs and rounds writes, as a set of lines.
  static std::multiset<std::string> lines_of(const RunStore& store, std::vector<DamagedRun>& damaged) {
    std::stringstream out;
    write_rounds(store, true, TableFormat::csv, out, OtherResults::written, damaged);
    write_runs(store, true, TableFormat::csv, out, OtherResults::written, damaged);
    std::multiset<std::string> lines;
    for (std::string line; std::getline(out, line);) lines.insert(line);
    return lines;
  }
  [[nodiscard]] fs::path flipped(const Flip& flip) const {
    const fs::path file = folder_ / "flipped" / RunStore::kFileName;
    test::write_flipped(file, bytes_, flip);
    return file;
  }

  std::string bytes_;
  std::multiset<std::string> whole_;
  std::vector<DamagedRun> damaged_;
  std::vector<Flip> flips_;
};

TEST_F(DamagedStoreTest, NoFlippedByteChangesANumberInSilence) {
  std::size_t refused = 0, excluded = 0, same = 0, silent = 0;
  for (const Flip& flip : flips_) {
    const fs::path file = flipped(flip);
    std::vector<DamagedRun> damaged;
    try {
      const std::multiset<std::string> lines = lines_of(RunStore::open(file, RunStore::Mode::read), damaged);
      // Exported lines were also in the undamaged export, and missing runs are named.
      EXPECT_TRUE(std::ranges::includes(whole_, lines)) << flip.text();
      silent += damaged.empty() && lines != whole_ ? 1 : 0;
      EXPECT_TRUE(!damaged.empty() || lines == whole_) << flip.text();
      (damaged.empty() ? same : excluded) += 1;
    } catch (const StoreError& error) {
      ++refused;
      EXPECT_STRNE(error.what(), "") << flip.text();
    }
  }
  EXPECT_EQ(silent, 0u);
  EXPECT_GT(excluded, kFlips / 4);
  RecordProperty("refused", static_cast<int>(refused));
  std::cout << refused << " refused, " << excluded << " with runs left out, " << same << " with the same numbers, " << silent
            << " silent\n";
}

// A plain run or a sweep with --resume, in the process of the test: what is not there whole is made again.
TEST_F(DamagedStoreTest, GoingOnGivesTheWholeStudyAgain) {
  constexpr std::size_t kEvery = 3;  // every one is written to the disk several times
  std::size_t refused = 0, repeated = 0, rescued = 0;
  for (std::size_t i = 0; i < flips_.size(); i += kEvery) {
    const Flip& flip = flips_[i];
    const fs::path file = flipped(flip);
    for (const auto& entry : fs::directory_iterator(file.parent_path()))
      if (entry.path() != file) fs::remove_all(entry.path());
    try {
      RunStore store = RunStore::open(file.parent_path(), RunStore::Mode::create);
      rescued += store.rescue() ? 1 : 0;
      for (std::uint64_t number = 1; number <= kRuns; ++number) {
        const RunRecord record = damaged_test_record(number);
        if (store.has_finished(record.run)) continue;
        store.append(record, damaged_test_rows(number));
        ++repeated;
      }
      std::vector<DamagedRun> damaged;
      EXPECT_EQ(lines_of(store, damaged), whole_) << flip.text();
      EXPECT_TRUE(damaged.empty()) << flip.text() << ": " << to_string(damaged.front());
      EXPECT_TRUE(verify_store(file).damage.empty()) << flip.text() << ": " << verify_store(file).damage.front();
    } catch (const StoreError& error) {
      ++refused;
      EXPECT_STRNE(error.what(), "") << flip.text();
    }
  }
  EXPECT_GT(repeated, kFlips / 4 / kEvery);
  EXPECT_GT(rescued, 0u);
  std::cout << refused << " refused, " << rescued << " files replaced, " << repeated << " runs repeated\n";
}

TEST_F(DamagedStoreTest, VerifyFindsWhatAnExportDoes) {
  for (const Flip& flip : flips_) {
    const fs::path file = flipped(flip);
    const Verified verified = verify_store(file);
    if (!verified.damage.empty()) continue;
    std::vector<DamagedRun> damaged;
    EXPECT_EQ(lines_of(RunStore::open(file, RunStore::Mode::read), damaged), whole_) << flip.text();
  }
  EXPECT_TRUE(verify_store(folder_ / "whole" / RunStore::kFileName).damage.empty());
  EXPECT_EQ(verify_store(folder_ / "whole" / RunStore::kFileName).summary, "6 whole runs, 246 rows of rounds");
}

// ---- by the commands ----------------------------------------------------------------------------------------------------------

class DamagedStudyTest : public test::StudyTest {
 protected:
  void SetUp() override {
    StudyTest::SetUp();
    write_study(3, 40);
    ASSERT_EQ(sweep({}).code, 0);
    expected_ = exported("out");
  }
  void run_sql(const std::string& sql) const {
    sqlite::Database database(folder_ / "out" / RunStore::kFileName, sqlite::OpenMode::existing);
    database.execute(sql);
  }
  std::string expected_;
};

TEST_F(DamagedStudyTest, ADamagedRunIsNamedLeftOutAndRepeated) {
  run_sql("UPDATE round_values SET train_loss=train_loss+1e-9 WHERE id=(2<<32|20)");
  const RunRecord damaged = RunStore::open(folder_ / "out", RunStore::Mode::read).list()[1];
  const std::string name =
      "run " + damaged.run + " (compressor.up=" + damaged.axes[0].label + "  seed=" + std::to_string(damaged.seed) + ") is damaged: ";
  const test::Outcome exported_now = fedbits({"export", "out", "--reproducible", "--runs", "runs.csv", "--rounds", "rounds.csv"});
  EXPECT_EQ(exported_now.code, 1);
  EXPECT_THAT(exported_now.err, HasSubstr(name + "its rounds do not match their checksum"));
  EXPECT_EQ(test::count_of(exported_now.err, "is damaged"), 1u) << exported_now.err;
  EXPECT_EQ(test::count_of(read("runs.csv"), "\n"), 6u);
  EXPECT_THAT(read("rounds.csv"), testing::Not(HasSubstr(damaged.run)));
  const test::Outcome report = fedbits({"report", "out", "--text"});
  EXPECT_EQ(report.code, 1);
  EXPECT_THAT(report.err, HasSubstr(name));
  const test::Outcome merge = fedbits({"merge", "out", "--out", "merged"});
  EXPECT_EQ(merge.code, 1);
  EXPECT_THAT(merge.err, HasSubstr(name));
  EXPECT_THAT(merge.out, HasSubstr("5 runs added"));
  const test::Outcome verify = fedbits({"verify", "out"});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr("out/results.sqlite: DAMAGED: " + name));
  EXPECT_THAT(sweep({"--list"}).out, HasSubstr("  damaged\n"));
  const test::Outcome resumed = sweep({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(name));
  EXPECT_EQ(exported("out"), expected_);
  EXPECT_EQ(fedbits({"verify", "out"}).code, 0);
}

TEST_F(DamagedStudyTest, AVanishedRunIsMissed) {
  run_sql("DELETE FROM runs WHERE id=3");
  const test::Outcome outcome = fedbits({"export", "out", "--runs", "runs.csv"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("is damaged: its record has gone"));
  const test::Outcome run = fedbits({"run", "study.toml", "--out", "out"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("its 5 whole runs are kept in a new file"));
  EXPECT_TRUE(exists("out/results.sqlite.damaged"));
  EXPECT_EQ(exported("out"), expected_);
}

TEST_F(DamagedStudyTest, VerifyLooksAtCheckpointsToo) {
  ASSERT_EQ(fedbits({"verify", "out"}).code, 0);
  EXPECT_EQ(fedbits({"verify", "nowhere"}).code, 2);
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(fedbits({"verify", "empty"}).code, 2);
  fs::create_directories(folder_ / "out/checkpoints");
  write("out/checkpoints/0011223344556677.checkpoint", "half of a checkpoint");
  const test::Outcome outcome = fedbits({"verify", "out"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("0011223344556677.checkpoint: DAMAGED: "));
  EXPECT_THAT(outcome.out, HasSubstr("out/results.sqlite: 6 whole runs, "));
  EXPECT_THAT(outcome.out, HasSubstr("2 files, 1 damaged\n"));
}

}  // namespace
}  // namespace fl
