#include "scenarios/results/run_store.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "fl_core/config/error.hpp"
#include "scenarios/results/sqlite.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test.
class RunStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "run_store_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    ::umount((folder_ / "disk").c_str());  // left when a test of a full disk was cut short
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
};

RunRecord make_record(const std::string& run, std::uint64_t rounds = 3, RunStatus status = RunStatus::done) {
  RunRecord record{.run = run, .name = "madelon, \"top-1\"", .seed = 7, .status = status, .rounds = rounds};
  record.bits_up = 123456789012345;
  record.bits_down = 42;
  record.f_gap = 0.1;
  record.checksum = "00ff";
  record.seconds = 1.5;
  record.split_hash = "5p117";
  record.scenario = "name = \"x\"\nrounds = 3\n";
  record.version = "0.1.0";
  record.cpu = "a cpu";
  record.instruction_set = "x86-64-v3";
  record.compiler = "g++ 12.2";
  record.threads = 2;
  record.axes = {{"partition.alpha", "0.1"}, {"compressor.up", "top-1%"}};
  record.constants = {{"L", 1.5722182430111165}, {"mu", kNotMeasured}};
  return record;
}

void expect_plugins(const fs::path& folder, const std::string& run, const std::vector<PluginUse>& plugins) {
  EXPECT_EQ(RunStore::open(folder, RunStore::Mode::read).record(run).plugins, plugins);
}

std::vector<RoundRow> make_rows(std::uint64_t rounds) {
  std::vector<RoundRow> rows(rounds + 1);
  for (std::uint64_t r = 0; r <= rounds; ++r) {
    rows[r].round = r;
    rows[r].clients = 20;
    rows[r].elements_up = 20 * r;
    rows[r].bits_up = 1280 * r;
    rows[r].bits_down = 320000;
    rows[r].bits_up_published = 640.0 * static_cast<double>(r);
    rows[r].bits_up_entropy = 1093.25 + std::sqrt(static_cast<double>(r));
    rows[r].train_loss = 1.0 / static_cast<double>(r + 3);
    rows[r].f_gap = std::exp(-static_cast<double>(r));
    rows[r].grad_norm_sq = 1.0 / 3;
    rows[r].error_norm_sq = 5e-324;  // the smallest number there is
    rows[r].compensated_norm_sq = std::numeric_limits<double>::max();
    rows[r].compression_error_sq = 0.1;
  }
  return rows;
}

template <class Columns, class Record>
void expect_same_columns(const Columns& columns, const Record& expected, const Record& found) {
  for (const auto& column : columns)
    std::visit(
        [&](auto member) {
          if constexpr (std::is_same_v<decltype(member), double Record::*>)
            EXPECT_TRUE(expected.*member == found.*member || (std::isnan(expected.*member) && std::isnan(found.*member))) << column.name;
          else
            EXPECT_EQ(expected.*member, found.*member) << column.name;
        },
        column.member);
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

void run_sql(const fs::path& file, const char* sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(connection);
  sqlite3_close(connection);
}

std::string ask_sql(const fs::path& file, const char* sql) {
  sqlite3* connection = nullptr;
  sqlite3_stmt* statement = nullptr;
  std::string answer = "no answer";
  if (sqlite3_open(file.c_str(), &connection) == SQLITE_OK && sqlite3_prepare_v2(connection, sql, -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != nullptr)
    answer = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  sqlite3_close(connection);
  return answer;
}

TEST_F(RunStoreTest, ReadsBackEveryColumnExactly) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  // Every column holds a value of its own, so that a swapped pair would show.
  RoundRow full;
  double value = 0.1;
  for (const RoundColumn& column : kRoundColumns) {
    std::visit([&](auto member) { full.*member = static_cast<std::remove_reference_t<decltype(full.*member)>>(value * 30); },
               column.member);
    value += 1.0 / 3;
  }
  full.round = 4;
  full.f_gap = std::numeric_limits<double>::infinity();
  std::vector<RoundRow> rows = make_rows(3);
  rows.push_back(full);
  const RunRecord record = make_record("abcd", 4);
  EXPECT_EQ(store.append(record, rows), RunStore::Appended::added);

  const StoredRun found = RunStore::open(folder_, RunStore::Mode::read).load("ab");
  expect_same_columns(kRunColumns, record, found.record);
  expect_same_columns(kRunDetailColumns, record, found.record);
  EXPECT_EQ(found.record.axes, record.axes);
  ASSERT_EQ(found.record.constants.size(), 2u);
  EXPECT_EQ(found.record.constants[0].name, "L");
  EXPECT_EQ(found.record.constants[0].value, 1.5722182430111165);
  EXPECT_TRUE(std::isnan(found.record.constants[1].value));
  ASSERT_EQ(found.rows.size(), rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) expect_same_columns(kRoundColumns, rows[r], found.rows[r]);
}

TEST_F(RunStoreTest, UnmeasuredIsNull) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  store.append(make_record("abcd"), make_rows(3));
  EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM rounds WHERE test_accuracy IS NULL AND zeta_sq IS NULL"), "4");
  EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM rounds WHERE f_gap IS NULL OR bits_up IS NULL"), "0");
  EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM runs WHERE train_loss IS NULL AND f_gap = 0.1"), "1");
}

TEST_F(RunStoreTest, NothingIsMadeBeforeTheFirstAppend) {
  const fs::path deep = folder_ / "a" / "b";
  RunStore store = RunStore::open(deep, RunStore::Mode::create);
  EXPECT_FALSE(store.has_finished("abcd"));
  EXPECT_TRUE(store.list().empty());
  store.probe_writable();
  EXPECT_TRUE(fs::is_empty(folder_));
  store.append(make_record("abcd"), make_rows(3));
  EXPECT_TRUE(fs::exists(deep / "results.sqlite"));
  store.probe_writable();
  EXPECT_EQ(std::distance(fs::directory_iterator(deep), fs::directory_iterator()), 1);
}

// A process that is killed at any moment of the probe, or beside others that probe, leaves and disturbs nothing.
TEST_F(RunStoreTest, ProbesMakeNoNames) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (;;) {
      try {
        RunStore::open(folder_ / "new" / "deep", RunStore::Mode::create).probe_writable();
        RunStore::open(folder_, RunStore::Mode::create).probe_writable();
      } catch (const StoreError&) {
        ::_exit(1);
      }
    }
  }
  for (int look = 0; look < 2000; ++look) ASSERT_TRUE(fs::is_empty(folder_)) << fs::directory_iterator(folder_)->path();
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "a probe failed";
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RunStoreTest, RelativeFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  RunStore store = RunStore::open("out", RunStore::Mode::create);
  store.probe_writable();
  EXPECT_FALSE(fs::exists("out"));
  store.append(make_record("abcd"), make_rows(3));
  EXPECT_EQ(RunStore::open("out/results.sqlite", RunStore::Mode::read).list().size(), 1u);
  fs::current_path(before);
}

TEST_F(RunStoreTest, KeepsTheOrderOfTheFirstAppend) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  for (const char* run : {"c1", "a1", "b1"}) store.append(make_record(run), make_rows(3));
  RunRecord again = make_record("c1", 5);
  again.name = "again";
  again.axes.pop_back();
  EXPECT_EQ(store.append(again, make_rows(5)), RunStore::Appended::replaced);
  const std::vector<RunRecord> runs = store.list();
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].run, "c1");
  EXPECT_EQ(runs[0].name, "again");
  EXPECT_EQ(runs[0].axes.size(), 1u);
  EXPECT_EQ(runs[1].run, "a1");
  EXPECT_EQ(runs[2].run, "b1");
  EXPECT_EQ(store.rows("c1").size(), 6u);
  EXPECT_EQ(store.rows("a1").size(), 4u);
}

TEST_F(RunStoreTest, UnfinishedRunsAreReplacedAndFinishedOnesAreNotLost) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  store.append(make_record("r1", 1, RunStatus::interrupted), make_rows(1));
  EXPECT_FALSE(store.has_finished("r1"));
  EXPECT_EQ(store.append(make_record("r1", 3, RunStatus::diverged), make_rows(3)), RunStore::Appended::replaced);
  EXPECT_TRUE(store.has_finished("r1"));
  EXPECT_EQ(store.append(make_record("r1", 2, RunStatus::interrupted), make_rows(2)), RunStore::Appended::kept);
  EXPECT_EQ(store.append(make_record("r1", 2, RunStatus::failed), make_rows(2)), RunStore::Appended::kept);
  EXPECT_EQ(store.load("r1").record.status, RunStatus::diverged);
  EXPECT_EQ(store.rows("r1").size(), 4u);
  EXPECT_EQ(store.append(make_record("r1"), make_rows(3)), RunStore::Appended::replaced);
  EXPECT_EQ(store.load("r1").record.status, RunStatus::done);
}

TEST_F(RunStoreTest, ARunIsWrittenWholeOrNotAtAll) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  store.append(make_record("r1"), make_rows(3));
  std::vector<RoundRow> twice = make_rows(3);
  twice[3].round = 2;
  EXPECT_NE(message_of([&] { store.append(make_record("r1"), twice); }), "");
  EXPECT_NE(message_of([&] { store.append(make_record("r2"), twice); }), "");
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.rows("r1").size(), 4u);
  EXPECT_EQ(store.append(make_record("r2"), make_rows(3)), RunStore::Appended::added);
}

TEST_F(RunStoreTest, PrefixesAreResolvedOrTheCandidatesAreNamed) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  EXPECT_NE(message_of([&] { (void)store.load("a"); }).find("holds no runs yet"), std::string::npos);
  for (const char* run : {"abc1", "abd2", "ab", "f%00"}) store.append(make_record(run), make_rows(3));
  EXPECT_EQ(store.resolve("abc"), "abc1");
  EXPECT_EQ(store.resolve("ab"), "ab");
  EXPECT_EQ(store.resolve("f"), "f%00");
  const std::string ambiguous = message_of([&] { (void)store.resolve("a"); });
  EXPECT_NE(ambiguous.find("'a' begins more than one run"), std::string::npos) << ambiguous;
  EXPECT_NE(ambiguous.find("abc1, abd2, ab"), std::string::npos) << ambiguous;
  const std::string unknown = message_of([&] { (void)store.resolve("%"); });
  EXPECT_NE(unknown.find("no run begins with '%'"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("abc1, abd2, ab, f%00"), std::string::npos) << unknown;
  EXPECT_NE(message_of([&] { (void)store.resolve(""); }), "");
}

TEST_F(RunStoreTest, TwoWritersShareAFile) {
  RunStore one = RunStore::open(folder_, RunStore::Mode::create);
  RunStore two = RunStore::open(folder_, RunStore::Mode::create);
  const auto write = [](RunStore& store, const std::string& prefix) {
    for (int i = 0; i < 20; ++i) store.append(make_record(prefix + std::to_string(i)), make_rows(30));
  };
  std::thread first([&] { write(one, "a"); });
  std::thread second([&] { write(two, "b"); });
  std::thread third([&] { write(two, "c"); });
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(one.list().size(), 60u);
  for (const RunRecord& record : two.list()) EXPECT_EQ(two.rows(record.run).size(), 31u);
}

TEST_F(RunStoreTest, MissingForeignAndDamagedFiles) {
  const auto open = [&] { (void)RunStore::open(folder_, RunStore::Mode::read); };
  EXPECT_NE(message_of(open).find("no results in " + folder_.string()), std::string::npos) << message_of(open);
  const fs::path file = folder_ / RunStore::kFileName;

  std::ofstream(file) << "round,loss\n" << std::string(5000, '1');
  EXPECT_NE(message_of(open).find("not a database"), std::string::npos) << message_of(open);
  EXPECT_NE(message_of(open).find(file.string()), std::string::npos);
  EXPECT_NE(message_of([&] { (void)RunStore::open(folder_, RunStore::Mode::create); }), "");

  fs::remove(file);
  run_sql(file, "CREATE TABLE mine(x)");
  EXPECT_NE(message_of(open).find("not a fedbits store"), std::string::npos) << message_of(open);

  fs::remove(file);
  std::ofstream(file).close();
  EXPECT_TRUE(RunStore::open(folder_, RunStore::Mode::read).list().empty());
  RunStore::open(folder_, RunStore::Mode::create).append(make_record("r1", 400), make_rows(400));
  EXPECT_EQ(RunStore::open(folder_, RunStore::Mode::read).list().size(), 1u);

  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_NE(message_of([&] { (void)RunStore::open(folder_, RunStore::Mode::read).load("r1"); }), "");
}

TEST_F(RunStoreTest, AnotherVersionIsRefusedWithBothNumbers) {
  RunStore::open(folder_, RunStore::Mode::create).append(make_record("r1"), make_rows(3));
  run_sql(folder_ / RunStore::kFileName, "PRAGMA user_version=93");
  for (const RunStore::Mode mode : {RunStore::Mode::read, RunStore::Mode::create}) {
    const std::string message = message_of([&] { (void)RunStore::open(folder_, mode); });
    EXPECT_NE(message.find("version 93"), std::string::npos) << message;
    EXPECT_NE(message.find("version " + std::to_string(RunStore::kVersion)), std::string::npos) << message;
  }
}

TEST_F(RunStoreTest, PathsThatCannotBeWritten) {
  const fs::path file = folder_ / "file";
  std::ofstream(file) << "x";
  EXPECT_NE(message_of([&] { (void)RunStore::open(file, RunStore::Mode::create); }).find("takes a folder"), std::string::npos);

  RunStore below = RunStore::open(file / "out", RunStore::Mode::create);
  EXPECT_NE(message_of([&] { below.probe_writable(); }).find("Not a directory"), std::string::npos);
  EXPECT_NE(message_of([&] { below.append(make_record("r1"), make_rows(3)); }).find("Not a directory"), std::string::npos);
}

// The superuser may write anywhere, so that the effective user is lowered for the duration of the test.
TEST_F(RunStoreTest, ReadOnlyFolder) {
  RunStore::open(folder_, RunStore::Mode::create).append(make_record("r1"), make_rows(3));
  fs::permissions(folder_ / RunStore::kFileName, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  const bool lowered = ::geteuid() == 0;
  ASSERT_TRUE(!lowered || ::seteuid(65534) == 0);

  EXPECT_EQ(RunStore::open(folder_, RunStore::Mode::read).list().size(), 1u);
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  const std::string probe = message_of([&] { store.probe_writable(); });
  const std::string append = message_of([&] { store.append(make_record("r2"), make_rows(3)); });
  RunStore fresh = RunStore::open(folder_ / "new", RunStore::Mode::create);
  const std::string fresh_probe = message_of([&] { fresh.probe_writable(); });

  ASSERT_TRUE(!lowered || ::seteuid(0) == 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_NE(probe.find("Permission denied"), std::string::npos) << probe;
  EXPECT_NE(append.find("readonly"), std::string::npos) << append;
  EXPECT_NE(append.find(folder_.string()), std::string::npos) << append;
  EXPECT_NE(fresh_probe.find("Permission denied"), std::string::npos) << fresh_probe;
}

TEST_F(RunStoreTest, FullDisk) {
  const fs::path disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=512k") != 0) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  {
    RunStore store = RunStore::open(disk, RunStore::Mode::create);
    EXPECT_NO_THROW(store.probe_writable());
    store.append(make_record("r1"), make_rows(3));
    const std::string full = message_of([&] { store.append(make_record("r2", 20000), make_rows(20000)); });
    EXPECT_NE(full.find("full"), std::string::npos) << full;
    EXPECT_NE(full.find("results.sqlite"), std::string::npos) << full;
    EXPECT_EQ(store.list().size(), 1u);
    EXPECT_EQ(store.append(make_record("r3"), make_rows(3)), RunStore::Appended::added);

    std::ofstream(disk / "ballast") << std::string(512 * 1024, 'b');
    const std::string probe = message_of([&] { store.probe_writable(); });
    EXPECT_NE(probe.find("No space left"), std::string::npos) << probe;
  }
  EXPECT_EQ(RunStore::open(disk, RunStore::Mode::read).list().size(), 2u);
  EXPECT_EQ(ask_sql(disk / RunStore::kFileName, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

// Whatever is stored comes back bit for bit, whether it follows from other columns, differs from what would follow, or was not measured.
TEST_F(RunStoreTest, DerivedColumnsComeBackAsTheyWere) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  RunRecord record = make_record("r1", 7);
  record.f_star = 0.1;
  record.parameters = 7;
  std::vector<RoundRow> rows = make_rows(7);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].train_loss = 1 / (3.0 + static_cast<double>(r));
    rows[r].f_gap = rows[r].train_loss - record.f_star;
    rows[r].density = static_cast<double>(rows[r].elements_up) / (static_cast<double>(rows[r].clients) * 7.0);
    rows[r].measured_omega = 0.3 / (1.0 + static_cast<double>(r));
    rows[r].measured_delta = 1 - rows[r].measured_omega;
  }
  rows[2].f_gap = kNotMeasured;
  rows[3].f_gap = 5;
  rows[4].measured_delta = kNotMeasured;
  rows[5].train_loss = rows[5].f_gap = kInfinity;
  rows[6].train_loss = kNotMeasured;
  rows[6].density = 0.25;
  rows[7].measured_omega = rows[7].measured_delta = rows[7].density = kNotMeasured;
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  store.append(record, rows);
  const std::vector<RoundRow> back = store.rows("r1");
  ASSERT_EQ(back.size(), rows.size());
  const auto same = [](double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_TRUE(same(back[r].f_gap, rows[r].f_gap)) << r << ": " << back[r].f_gap;
    EXPECT_TRUE(same(back[r].density, rows[r].density)) << r << ": " << back[r].density;
    EXPECT_TRUE(same(back[r].measured_delta, rows[r].measured_delta)) << r << ": " << back[r].measured_delta;
  }
  EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM round_values WHERE typeof(f_gap)='real'"), "2");  // what does not follow
  EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM rounds WHERE f_gap IS NULL"), "1");
}

// Everything measured in every round but what is asked for on its own, no number small: 13 doubles are 104 bytes, what SQLite adds is half
// as much. What was not asked for takes nothing.
TEST_F(RunStoreTest, ARoundTakesFewBytes) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  const std::uint64_t rounds = 20000;
  RunRecord record = make_record("r1", rounds);
  record.f_star = 0.123;
  record.parameters = 113;
  std::vector<RoundRow> rows = make_rows(rounds);
  for (RoundRow& row : rows) {
    const double x = std::sqrt(static_cast<double>(row.round) + 2);
    for (double RoundRow::*const measured :
         {&RoundRow::train_loss, &RoundRow::grad_norm_sq, &RoundRow::error_norm_sq, &RoundRow::compensated_norm_sq,
          &RoundRow::compression_error_sq, &RoundRow::test_accuracy, &RoundRow::test_loss, &RoundRow::global_grad_norm_sq,
          &RoundRow::virtual_drift, &RoundRow::measured_kappa, &RoundRow::measured_omega, &RoundRow::zeta_sq, &RoundRow::bits_up_entropy})
      row.*measured = x / 3;
    for (const DerivedColumn& column : kDerivedColumns) row.*column.member = column.value(row, record);
  }
  store.append(record, rows);
  EXPECT_LT(static_cast<double>(fs::file_size(store.file())) / static_cast<double>(rounds), 158);
}

// Appends runs one after another for ever; a byte goes to `report` after each.
[[noreturn]] void append_for_ever(const fs::path& folder, const std::string& prefix, int report) {
  RunStore store = RunStore::open(folder, RunStore::Mode::create);
  for (std::uint64_t i = 0;; ++i) {
    const std::uint64_t rounds = 50 + 977 * i % 3000;
    store.append(make_record(prefix + std::to_string(i), rounds), make_rows(rounds));
    if (::write(report, "x", 1) != 1) ::_exit(1);
  }
}

// The runs that the child said were stored before it was killed after `delay`.
std::size_t append_until_killed(const fs::path& folder, const std::string& prefix, std::chrono::microseconds delay) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) append_for_ever(folder, prefix, ends[1]);
  ::close(ends[1]);
  std::this_thread::sleep_for(delay);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::size_t stored = 0;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) ++stored;
  ::close(ends[0]);
  return stored;
}

TEST_F(RunStoreTest, KilledWhileWritingItHoldsEveryFinishedRunWhole) {
  std::mt19937 random(20);
  std::set<std::string> promised;
  std::size_t hot_journals = 0;
  // Twenty times, and on a slow machine until some kill fell inside a write and some run was stored before one.
  for (int kill = 0; kill < 20 || (kill < 200 && (promised.empty() || hot_journals == 0)); ++kill) {
    const std::string prefix = "k" + std::to_string(kill) + "-";
    const std::size_t stored = append_until_killed(folder_, prefix, std::chrono::microseconds(500 + random() % 60'000));
    for (std::size_t i = 0; i < stored; ++i) promised.insert(prefix + std::to_string(i));
    hot_journals += fs::exists(folder_ / (std::string(RunStore::kFileName) + "-journal")) ? 1 : 0;

    RunStore store = RunStore::open(folder_, RunStore::Mode::create);
    std::set<std::string> found;
    for (const RunRecord& record : store.list()) {
      found.insert(record.run);
      EXPECT_EQ(store.rows(record.run).size(), record.rounds + 1) << record.run;
      EXPECT_EQ(record.axes.size(), 2u) << record.run;
      EXPECT_EQ(record.constants.size(), 2u) << record.run;
    }
    for (const std::string& run : promised) EXPECT_TRUE(found.contains(run)) << run;
    if (fs::exists(store.file())) {
      EXPECT_EQ(ask_sql(store.file(), "PRAGMA integrity_check"), "ok");
    }
    if (!found.empty()) {
      EXPECT_EQ(ask_sql(store.file(), "SELECT count(*) FROM round_values WHERE id>>32 NOT IN (SELECT id FROM runs)"), "0");
    }
  }
  EXPECT_FALSE(promised.empty());
  EXPECT_GT(hot_journals, 0u);
}

// ---- plug-ins ------------------------------------------------------------------------------------------------------------------

std::uint64_t count_plugin_tables(const fs::path& folder) {
  sqlite::Database database(folder / RunStore::kFileName, sqlite::OpenMode::existing);
  return database.integer("SELECT count(*) FROM sqlite_master WHERE name='plugins'");
}

TEST_F(RunStoreTest, PluginsComeWithTheFirstRunThatHasOne) {
  RunStore store = RunStore::open(folder_, RunStore::Mode::create);
  store.append(make_record("a0"), make_rows(1));
  EXPECT_EQ(count_plugin_tables(folder_), 0u) << "a store without plug-ins is what it was before there were any";
  expect_plugins(folder_, "a0", {});
  RunRecord with = make_record("b1");
  with.plugins = {{"first.so", "00"}, {"second, \"quoted\".so", "ff"}};
  store.append(with, make_rows(1));
  EXPECT_EQ(count_plugin_tables(folder_), 1u);
  expect_plugins(folder_, "b1", with.plugins);
  expect_plugins(folder_, "a0", {});
  with.plugins = {{"third.so", "11"}};
  EXPECT_EQ(store.append(with, make_rows(1)), RunStore::Appended::replaced);
  expect_plugins(folder_, "b1", with.plugins);
  with.plugins = {};
  store.append(with, make_rows(1));
  expect_plugins(folder_, "b1", {});
}

}  // namespace
}  // namespace fl
