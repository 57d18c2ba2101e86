// Tests that a run that stops and continues from its checkpoint ends with the same bytes as an undisturbed run, for every method and every
// part with state. If writing a checkpoint fails in any way, the previous one still loads.
#include "fl_core/state/checkpoint.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "fl_core/config/registry.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_checkpoint_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    plan_.file = folder_ / "checkpoints" / "run.checkpoint";
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
  CheckpointPlan plan_;
};

// ---- every method ----

using test::Method;
using test::methods;
using test::text_of;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

RunResult run(const std::string& text, const CheckpointPlan& plan, std::uint64_t stop_after, const StatePaging& paging = {}) {
  CellRunner runner(DataCatalog(""), {.threads = 2, .block = 2, .paging = paging});
  return runner.run(
      parse_cells(text, "test.toml").at(0), [=](const RoundRow& row) { return row.round != stop_after; }, plan);
}

// Returns the memory that a round needs according to the error message.
std::uint64_t least_memory(const std::string& text) {
  try {
    (void)run(text, {}, kNever, {.memory_bytes = 1});
  } catch (const ConfigError& error) {
    const std::string message = error.what(), before = "must be at least ";
    return 1024 * std::stoull(message.substr(message.find(before) + before.size()));
  }
  return 0;
}

void expect_same(const RunResult& result, const RunResult& expected) {
  EXPECT_EQ(result.record.status, RunStatus::done);
  EXPECT_EQ(result.record.checksum, expected.record.checksum);
  EXPECT_EQ(result.record.bits_up, expected.record.bits_up);
  EXPECT_EQ(result.record.bits_down, expected.record.bits_down);
  // Bytes, so that numbers that were not measured are equal. NOLINTBEGIN(bugprone-suspicious-memory-comparison)
  EXPECT_EQ(std::memcmp(&result.record.total_error, &expected.record.total_error, sizeof(double)), 0);
  ASSERT_EQ(result.rows.size(), expected.rows.size());
  for (std::size_t r = 0; r < result.rows.size(); ++r) ASSERT_TRUE(same_bits(result.rows[r], expected.rows[r])) << "round " << r;
  // NOLINTEND(bugprone-suspicious-memory-comparison)
}

class EveryMethod : public CheckpointTest, public testing::WithParamInterface<Method> {};

TEST_P(EveryMethod, GoesOnAsIfItHadNotStopped) {
  for (const std::string precision : {"float32", "float64"}) {
    const std::string text = text_of(GetParam(), precision);
    const RunResult undisturbed = run(text, {}, kNever);
    ASSERT_EQ(undisturbed.record.status, RunStatus::done);
    for (const std::uint64_t stop : {1, 6, 13}) {
      EXPECT_EQ(run(text, plan_, stop).record.status, RunStatus::interrupted);
      CheckpointPlan resumed = plan_;
      resumed.resume = true;
      expect_same(run(text, resumed, kNever), undisturbed);
      fs::remove(plan_.file);
    }
  }
}

// The same with state that does not fit into memory: before a stop, after it, both, and never stopped. Three of seven clients take part, in
// the memory that this needs at the least.
TEST_P(EveryMethod, IsTheSameInLittleMemory) {
  Method method = GetParam();
  if (method.label == "dasha") GTEST_SKIP() << "it needs every client in every round";
  if (method.label == "cafe" || method.label == "fedpaq" || method.label == "marina" || method.label == "mime_lite" ||
      method.label == "none")
    GTEST_SKIP() << "its clients have no state";
  if (!(method.more.find("[participation]") != std::string::npos)) method.more += "[participation]\nkind = 'uniform'\nclients = 3\n";
  const std::string text = text_of(method, "float32");
  const RunResult undisturbed = run(text, {}, kNever);
  const std::uint64_t least = least_memory(text);
  ASSERT_GT(least, 0u);
  expect_same(run(text, {}, kNever, {.memory_bytes = least, .file = {.folder = folder_}}), undisturbed);
  for (const auto& [before, after] : {std::pair{least, least}, std::pair{least, std::uint64_t{0}}, std::pair{std::uint64_t{0}, least}}) {
    plan_.every_rounds = 2;  // places move
    plan_.resume = false;
    EXPECT_EQ(run(text, plan_, 9, {.memory_bytes = before}).record.status, RunStatus::interrupted);
    plan_.resume = true;
    expect_same(run(text, plan_, kNever, {.memory_bytes = after}), undisturbed);
    remove_checkpoint(plan_);
    EXPECT_TRUE(fs::is_empty(plan_.file.parent_path()));
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn(methods()), [](const auto& one) { return one.param.label; });

TEST(Checkpoint, MethodsCoverEveryFeedbackAndLocalUpdate) {
  std::string all;
  for (const Method& m : methods()) all += m.feedback + m.local;
  for (const std::string role : {"feedback", "local_update"})
    for (const std::string& name : Registry::instance().names(role))
      EXPECT_THAT(all, HasSubstr("'" + name + "'")) << "add a method with it";
}

// Stopped after every single round: many resumptions add up to one run.
TEST_F(CheckpointTest, AnyNumberOfStops) {
  const std::string text = text_of(methods()[3], "float64");
  const RunResult undisturbed = run(text, {}, kNever);
  plan_.resume = true;
  for (std::uint64_t stop = 1; stop < 14; ++stop) ASSERT_EQ(run(text, plan_, stop).record.status, RunStatus::interrupted);
  expect_same(run(text, plan_, kNever), undisturbed);
}

TEST_F(CheckpointTest, ComesEverySoManyRounds) {
  plan_.every_rounds = 4;
  (void)run(text_of(methods()[1], "float32"), plan_, kNever);
  CheckpointHeader header{.run = to_hex(parse_cells(text_of(methods()[1], "float32"), "test.toml").at(0).hash)};
  plan_.resume = true;
  std::vector<std::byte> rest;
  EXPECT_THROW((void)load_checkpoint(plan_, header, [](Archive&) {}), StoreError) << "bytes are left over";
  EXPECT_THROW((void)load_checkpoint(plan_, header, [&](Archive& archive) { archive.list(rest); }), StoreError) << "not a list";
}

// ---- what can go wrong ----

void save(const CheckpointPlan& plan, std::vector<double> numbers, const std::string& run = "abc") {
  save_checkpoint(plan, {.run = run, .round = 5, .seconds = 1.5, .pages = ""}, [&](Archive& archive) {
    archive.section("numbers");
    archive.list(numbers);
  });
}
std::vector<double> load(const CheckpointPlan& plan, const std::string& run = "abc") {
  std::vector<double> numbers;
  CheckpointHeader header{.run = run};
  EXPECT_TRUE(load_checkpoint(plan, header, [&](Archive& archive) {
    archive.section("numbers");
    archive.list(numbers);
  }));
  EXPECT_EQ(header.round, 5u);
  EXPECT_EQ(header.seconds, 1.5);
  return numbers;
}
std::string refusal(const CheckpointPlan& plan, const std::string& run = "abc") {
  try {
    (void)load(plan, run);
  } catch (const StoreError& error) {
    return error.what();
  }
  return "it was accepted";
}

TEST_F(CheckpointTest, IsReadBack) {
  save(plan_, {1, 2, 3});
  EXPECT_EQ(load(plan_), (std::vector<double>{1, 2, 3}));
  save(plan_, {4});
  EXPECT_EQ(load(plan_), std::vector<double>{4});
  CheckpointHeader header;
  plan_.file = folder_ / "none";
  EXPECT_FALSE(load_checkpoint(plan_, header, [](Archive&) {}));
}

// The n-th call fails, as on a full or broken disk; a failing write may have written a part.
class FailingFileSystem : public FileSystem {
 public:
  explicit FailingFileSystem(int fails_at, std::size_t piece = 7) : left_(fails_at), piece_(piece) {}
  int open(const char* path, int flags, unsigned mode) override { return fails(EIO) ? -1 : FileSystem::open(path, flags, mode); }
  std::int64_t write(int file, const void* bytes, std::size_t size) override {
    if (!fails(ENOSPC)) return FileSystem::write(file, bytes, std::min(size, piece_));  // in pieces, as a disk may
    return -1;
  }
  int fsync(int file) override { return fails(EIO) ? -1 : FileSystem::fsync(file); }
  int close(int file) override {
    const bool failed = fails(EIO);
    return FileSystem::close(file) != 0 || failed ? -1 : 0;
  }
  int rename(const char* from, const char* to) override { return fails(EIO) ? -1 : FileSystem::rename(from, to); }
  [[nodiscard]] bool has_failed() const { return left_ <= 0; }

 private:
  bool fails(int reason) {
    const bool now = --left_ == 0;
    if (now) errno = reason;
    return now;
  }
  int left_;
  std::size_t piece_;  // bytes of a write at most
};

TEST_F(CheckpointTest, SurvivesAFailureOfEveryCall) {
  const std::vector<double> old = {1, 2, 3}, fresh = {7, 8};
  int calls = 0;
  for (bool failed = true; failed; ++calls) {
    save(plan_, old);
    FailingFileSystem system(calls + 1);
    CheckpointPlan failing = plan_;
    failing.system = &system;
    try {
      save(failing, fresh);
      failed = system.has_failed();
    } catch (const StoreError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot write the checkpoint"));
    }
    const std::vector<double> found = load(plan_);
    EXPECT_TRUE(found == old || found == fresh) << "after failure of call " << calls + 1;
    EXPECT_FALSE(fs::exists(plan_.file.string() + ".tmp"));
  }
  EXPECT_GT(calls, 10) << "opens, writes, syncs, renames";
}

// The rows that a store holds of a run, and its checksum.
std::string stored_text(const RunStore& store, const Cell& cell) {
  const StoredRun run = store.load(to_hex(cell.hash));
  return std::string(to_string(run.record.status)) + " " + run.record.checksum + " " + std::to_string(run.record.bits_up) + " " +
         std::to_string(run.rows.size());
}

// In a sweep a checkpoint that cannot be written costs its run alone; with the disk in order again the run goes on from the one before.
TEST_F(CheckpointTest, ASweepSurvivesAFailureOfEveryCall) {
  const std::vector<Cell> cells = parse_cells(text_of(methods()[1], "float64") + "[sweep]\nseeds = 2\n", "test.toml");
  const auto sweep = [&](const std::string& folder, FileSystem& system) {
    RunStore store = RunStore::open(folder_ / folder, RunStore::Mode::create);
    SweepRunner runner(cells, DataCatalog(""),
                       {.checkpoints = folder_ / folder / "checkpoints", .checkpoint_every_rounds = 4, .resume = true, .system = &system});
    runner.check();
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!store.has_finished(to_hex(cells[i].hash))) pending.push_back(i);
    std::vector<std::string> reasons;
    SweepEvents events;
    events.ended = [&](std::size_t, const RunRecord& record) {
      if (record.status == RunStatus::failed) reasons.push_back(record.message);
    };
    runner.run(pending, store, events);
    return reasons;
  };
  ASSERT_TRUE(sweep("peace", FileSystem::real()).empty());
  const RunStore expected = RunStore::open(folder_ / "peace", RunStore::Mode::read);
  constexpr int kCalls = 2 * 3 * 8,
                kStep = test::kSanitized
                            ? 3
                            : 1;  // runs, checkpoints of each, calls of each; the one that closes the folder may fail unnoticed
  std::size_t failed = 0;
  std::size_t broken_calls = 0;
  for (int call = 1; call <= kCalls; call += kStep, ++broken_calls) {
    SCOPED_TRACE("call " + std::to_string(call));
    const std::string folder = "out" + std::to_string(call);
    FailingFileSystem broken(call, 1 << 20);
    const std::vector<std::string> reasons = sweep(folder, broken);
    EXPECT_LE(reasons.size(), 1u) << "the other run goes on";
    for (const std::string& reason : reasons) EXPECT_THAT(reason, HasSubstr("cannot write the checkpoint"));
    failed += reasons.size();
    EXPECT_TRUE(sweep(folder, FileSystem::real()).empty());
    const RunStore store = RunStore::open(folder_ / folder, RunStore::Mode::read);
    for (const Cell& cell : cells) EXPECT_EQ(stored_text(store, cell), stored_text(expected, cell));
    EXPECT_TRUE(fs::is_empty(folder_ / folder / "checkpoints"));
  }
  EXPECT_LT(failed, broken_calls);
  EXPECT_GE(failed, 2 * 3 * 7u / kStep);
}

TEST_F(CheckpointTest, RefusesDamage) {
  save(plan_, std::vector<double>(40, 1.25));
  std::ifstream in(plan_.file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto rewrite = [&](const std::string& text) { std::ofstream(plan_.file, std::ios::binary) << text; };
  for (std::size_t size = 0; size < bytes.size(); size += 13) {
    rewrite(bytes.substr(0, size));
    EXPECT_THAT(refusal(plan_), HasSubstr("cannot be used")) << size << " bytes";
  }
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    rewrite(damaged);
    EXPECT_THAT(refusal(plan_), HasSubstr("do not match their checksum")) << "byte " << at;
  }
}

TEST_F(CheckpointTest, RefusesAnotherRun) {
  save(plan_, {1}, "abc");
  EXPECT_THAT(refusal(plan_, "abd"), HasSubstr("belongs to run abc, not to abd"));
}

// Written here as another build would: its rounding may differ, so it is refused until that is asked for.
TEST_F(CheckpointTest, RefusesAnotherBuildUnlessAsked) {
  Archive archive;
  std::uint32_t version = 8;
  std::uint64_t round = 5;
  double seconds = 1.5;
  std::string build = "fedbits 9.9", run = "abc", pages;
  std::vector<double> numbers = {6};
  archive.section("fedbits checkpoint");
  archive.value(version);
  archive.text(build);
  archive.text(run);
  archive.value(round);
  archive.value(seconds);
  archive.text(pages);
  archive.section("numbers");
  archive.list(numbers);
  std::uint64_t pages_begin = 0;
  archive.value(pages_begin);
  std::uint64_t checksum = hash64_of(archive.bytes());
  archive.value(checksum);
  fs::create_directories(plan_.file.parent_path());
  write_atomically(plan_.file, archive.bytes());
  EXPECT_THAT(refusal(plan_), HasSubstr("fedbits 9.9"));
  plan_.any_build = true;
  EXPECT_EQ(load(plan_), numbers);
}

// ---- the archive ----

TEST(Archive, NeverReadsPastTheEndNorAllocatesOnAnUncheckedLength) {
  std::vector<double> list = {1, 2, 3};
  std::string text = "text";
  Archive out;
  out.section("part");
  out.list(list);
  out.text(text);
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    Archive in(std::span(out.bytes().data(), size));
    std::vector<double> found;
    std::string word;
    EXPECT_THROW(
        {
          in.section("part");
          in.list(found);
          in.text(word);
        },
        ArchiveError)
        << size;
  }
  std::vector<std::byte> huge(16, std::byte{0xff});
  Archive in(huge);
  std::vector<double> found;
  EXPECT_THROW(in.list(found), ArchiveError);
}

}  // namespace
}  // namespace fl
