// Tests that client state in little memory equals that in much memory, that a checkpoint's rows do not change until the next checkpoint is
// safe, and that faults of the file are reported.
#include "fl_core/state/client_state.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "fl_core/state/state_pager.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kClients = 40, kCohort = 6, kLength = 1003;  // an odd length: rows are padded
constexpr std::size_t kRow = 1008 * sizeof(float);                 // bytes

class ClientStateTest : public testing::Test {
 protected:
  using Table = ClientState<float>;
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_state_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] StatePaging paging(std::uint64_t memory_bytes, FileSystem& system = FileSystem::real()) const {
    return {.memory_bytes = memory_bytes, .file = {.folder = folder_, .name = "run", .can_be_kept = true, .system = &system}};
  }
  static std::unique_ptr<Table> make(const StatePaging& paging) {
    auto table = std::make_unique<Table>(kClients, kCohort, kLength, paging, kCohort);
    table->declare({.name = "error", .owner = SlotOwner::client, .double_buffered = true});
    table->declare({.name = "shift", .owner = SlotOwner::client});
    table->declare({.name = "short", .owner = SlotOwner::client, .length = 5});
    table->bound_memory();
    return table;
  }
  // Returns a table with memory for `frames` clients in addition to the shadows of a round.
  [[nodiscard]] std::unique_ptr<Table> paged(std::size_t frames, FileSystem& system = FileSystem::real()) const {
    return make(paging(kCohort * kRow + frames * (2 * kRow + 5 * sizeof(float)), system));
  }
  [[nodiscard]] std::unique_ptr<Table> whole() const { return make(paging(0)); }

  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  // Turns bits of one byte of the page file; with the same twice it is as it was.
  void turn(std::uint64_t at, int bits = 4) const {
    std::fstream file(files().at(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(old ^ bits));
  }
  fs::path folder_;
};

using Cohort = std::vector<std::uint32_t>;

Cohort draw(std::mt19937& random, std::size_t size) {
  Cohort cohort;
  while (cohort.size() < size) {
    const auto client = static_cast<std::uint32_t>(random() % kClients);
    if (std::ranges::find(cohort, client) == cohort.end()) cohort.push_back(client);
  }
  std::ranges::sort(cohort);
  return cohort;
}

// A round as methods play it: new errors in the shadows, shifts moved in place, a lost message now and then.
void play(ClientState<float>& table, const Cohort& cohort, const Cohort& next, std::uint32_t round) {
  table.open_round(cohort, next);
  const auto K = static_cast<std::uint32_t>(cohort.size());
  const BatchView<float> error = table.stored("error", 0, K), fresh = table.shadow("error", 0, K), shift = table.stored("shift", 0, K);
  for (std::uint32_t k = 0; k < K; ++k) {
    for (std::size_t j = 0; j < kLength; ++j) {
      fresh.row(k)[j] = 0.5f * error.row(k)[j] + static_cast<float>(round + cohort[k] + j);
      shift.row(k)[j] += static_cast<float>(round * (k + 1));
    }
    table.of_client("short", cohort[k])[round % 5] += 1;
    if ((round + cohort[k]) % 7 == 0) continue;  // lost
    table.swap("error", k);
    table.set_acknowledged(cohort[k], round);
  }
}

std::vector<float> row(ClientState<float>& table, const std::string& slot, std::uint32_t client) {
  const std::span<const float> found = table.peek(slot, client);
  if (!found.empty()) return {found.begin(), found.end()};
  return std::vector<float>(slot == "short" ? 5 : kLength, 0.0f);
}

void expect_same(ClientState<float>& a, ClientState<float>& b) {
  for (std::uint32_t client = 0; client < kClients; ++client) {
    for (const std::string slot : {"error", "shift", "short"})
      ASSERT_EQ(row(a, slot, client), row(b, slot, client)) << slot << " of client " << client;
    ASSERT_EQ(a.acknowledged(client), b.acknowledged(client));
  }
}

std::vector<std::byte> saved(ClientState<float>& table) {
  Archive archive;
  table.persist(archive);
  return archive.bytes();
}
void load(ClientState<float>& table, const std::vector<std::byte>& bytes) {
  Archive archive(bytes);
  table.persist(archive);
  archive.finish();
}

// ---- the same state --------------------------------------------------------------------------------------------------------------

class Frames : public ClientStateTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(Frames, AreEnoughForTheSameState) {
  const auto little = paged(GetParam()), much = whole();
  EXPECT_TRUE(little->reads_ahead());
  EXPECT_FALSE(much->reads_ahead());
  EXPECT_EQ(little->num_frames(), GetParam());
  std::mt19937 random(5);
  Cohort cohort = draw(random, kCohort);
  for (std::uint32_t round = 1; round <= 60; ++round) {
    Cohort next = draw(random, 1 + random() % kCohort);
    play(*little, cohort, round % 5 == 0 ? draw(random, kCohort) : next, round);  // what was said of the next round may be wrong
    play(*much, cohort, {}, round);
    if (round % 10 == 0) expect_same(*little, *much);
    cohort = std::move(next);
  }
  little->of_client("shift", 3)[7] = much->of_client("shift", 3)[7] = 1.5f;  // any client, between rounds
  play(*little, {8, 9}, {}, 61);
  play(*much, {8, 9}, {}, 61);
  expect_same(*little, *much);
  EXPECT_EQ(files().size(), 1u);
}
INSTANTIATE_TEST_SUITE_P(Counts, Frames, testing::Values(kCohort + 1, kCohort + 3, 2 * kCohort, 2 * kCohort + 1, kClients - 1));

TEST_F(ClientStateTest, NothingIsMadeWhereEverythingFits) {
  const auto table = paged(kClients);
  std::mt19937 random(5);
  for (std::uint32_t round = 1; round <= 20; ++round) play(*table, draw(random, kCohort), {}, round);
  EXPECT_FALSE(table->reads_ahead());
  EXPECT_TRUE(files().empty());
}

TEST_F(ClientStateTest, ClientsThatNeverTookPartTakeNoPlace) {
  const auto table = paged(kCohort + 1);
  for (std::uint32_t round = 1; round <= 30; ++round) play(*table, {round % 2, 2 + round % 9}, {}, round);
  EXPECT_TRUE(table->peek("error", 30).empty());
  ASSERT_EQ(files().size(), 1u);
  EXPECT_LE(fs::file_size(files()[0]), 11 * (2 * kRow + 4096));
}

TEST_F(ClientStateTest, TheLeastMemoryIsNamed) {
  const std::size_t least = kCohort * kRow + (kCohort + 1) * (2 * kRow + 5 * sizeof(float));
  EXPECT_NO_THROW(make(paging(least)));
  try {
    make(paging(least - 1));
    FAIL() << "it was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--state-memory: must be at least " + std::to_string((least + 1023) / 1024) + "K"),
                                    HasSubstr("up to 6 clients with 8084 bytes of state each")));
  }
}

// ---- checkpoints -----------------------------------------------------------------------------------------------------------------

// Every pairing of little and much memory, before and after.
TEST_F(ClientStateTest, GoesOnFromACheckpointWithAnyMemory) {
  for (const bool from_little : {true, false})
    for (const bool to_little : {true, false}) {
      std::mt19937 random(7);
      const auto expected = whole();
      std::vector<std::byte> bytes;
      {
        const auto first = from_little ? paged(kCohort + 2) : whole();
        for (std::uint32_t round = 1; round <= 20; ++round) {
          const Cohort cohort = draw(random, kCohort);
          play(*first, cohort, {}, round);
          play(*expected, cohort, {}, round);
        }
        bytes = saved(*first);
        EXPECT_EQ(first->page_file().empty(), !from_little);
        first->commit_checkpoint();
      }
      EXPECT_EQ(files().size(), from_little ? 1u : 0u) << "kept, because the checkpoint refers to it";
      const auto second = to_little ? paged(kCohort + 1) : whole();
      load(*second, bytes);
      expect_same(*second, *expected);
      for (std::uint32_t round = 21; round <= 40; ++round) {
        const Cohort cohort = draw(random, kCohort);
        play(*second, cohort, {}, round);
        play(*expected, cohort, {}, round);
      }
      expect_same(*second, *expected);
      for (const fs::path& file : files()) fs::remove(file);
    }
}

// Whatever happens after a checkpoint, it can be gone back to: until the next is safe, and that one then.
TEST_F(ClientStateTest, ACheckpointsRowsAreNotTouchedUntilTheNextOneIsSafe) {
  std::mt19937 random(11);
  auto table = paged(kCohort + 2);
  const auto expected = whole();
  std::uint32_t round = 1;
  for (int checkpoint = 0; checkpoint < 8; ++checkpoint) {
    for (int i = 0; i < 9; ++i, ++round) {
      const Cohort cohort = draw(random, kCohort);
      play(*table, cohort, {}, round);
      play(*expected, cohort, {}, round);
    }
    const std::vector<std::byte> bytes = saved(*table);
    table->commit_checkpoint();
    for (std::uint32_t lost = 0; lost < 30; ++lost) play(*table, draw(random, kCohort), {}, 1000 + lost);
    if (checkpoint % 2 == 0) (void)saved(*table);  // of a checkpoint that did not come to be
    table.reset();
    table = paged(kCohort + 1 + static_cast<std::size_t>(checkpoint));
    load(*table, bytes);
    expect_same(*table, *expected);
  }
  ASSERT_EQ(files().size(), 1u);
  EXPECT_LE(fs::file_size(files()[0]), 2 * kClients * (2 * kRow + 4096)) << "places are given out again";
}

TEST_F(ClientStateTest, WithoutACheckpointTheFileGoes) {
  for (const bool can_be_kept : {true, false}) {
    StatePaging options = paging(kCohort * kRow + (kCohort + 1) * (2 * kRow + 5 * sizeof(float)));
    options.file.can_be_kept = can_be_kept;
    {
      const auto table = make(options);
      std::mt19937 random(5);
      for (std::uint32_t round = 1; round <= 20; ++round) play(*table, draw(random, kCohort), {}, round);
      EXPECT_EQ(files().size(), can_be_kept ? 1u : 0u);
      EXPECT_EQ(table->page_file().empty(), !can_be_kept);
      for (const fs::path& file : files()) EXPECT_FALSE(remove_page_file(file)) << "a process has it";
    }
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(ClientStateTest, ZeroRowsTakeAByte) {
  const auto table = whole(), back = whole();
  table->of_client("error", 30)[3] = -0.0f;  // a zero whose bits are not
  table->of_client("short", 7)[0] = 1;
  const std::vector<std::byte> bytes = saved(*table);
  EXPECT_LT(bytes.size(), 3 * kClients + 2 * kLength * sizeof(double) + kClients * 4 + 200);
  load(*back, bytes);
  const float zero = back->of_client("error", 30)[3];
  EXPECT_TRUE(std::signbit(zero));
  expect_same(*table, *back);
}

// ---- files that are not as they were -----------------------------------------------------------------------------------------------

class BadPages : public ClientStateTest {
 protected:
  void SetUp() override {
    ClientStateTest::SetUp();
    const auto table = paged(kCohort + 1);
    std::mt19937 random(3);
    for (std::uint32_t round = 1; round <= 20; ++round) play(*table, draw(random, kCohort), {}, round);
    bytes_ = saved(*table);
    table->commit_checkpoint();
  }
  [[nodiscard]] std::string refusal() const {
    std::string first;
    for (const bool is_little : {true, false}) {
      std::string text = "it was accepted";
      try {
        load(*(is_little ? paged(kCohort + 1) : whole()), bytes_);
      } catch (const ArchiveError& error) {
        text = error.what();
      }
      if (first.empty()) first = text;
      EXPECT_EQ(text, first);
    }
    return first;
  }
  std::vector<std::byte> bytes_;
};

TEST_F(BadPages, GoodOnesAreAccepted) { EXPECT_EQ(refusal(), "it was accepted"); }

TEST_F(BadPages, AMissingFile) {
  fs::remove(files()[0]);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("its state file " + folder_.string()), HasSubstr("No such file"), HasSubstr("--state-folder")));
}

TEST_F(BadPages, ATruncatedFile) {
  fs::resize_file(files()[0], fs::file_size(files()[0]) / 2);
  EXPECT_THAT(refusal(), HasSubstr("bytes of at least"));
}

TEST_F(BadPages, AByteThatTurned) {
  for (const std::uint64_t at : {std::uint64_t{5}, std::uint64_t{9000}, std::uint64_t{2 * kRow + 2}}) {
    turn(at);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), HasSubstr("does not match its checksum"))) << at;
    turn(at);
    EXPECT_EQ(refusal(), "it was accepted") << at;
  }
}

// A checkpoint cannot make the program write to a file that is none of its own.
TEST_F(BadPages, AFileOfAnotherKind) {
  const fs::path pages = files().at(0);
  const auto named = [&](const std::string& name) {
    std::vector<std::byte> other = bytes_;
    const std::string before = pages.filename().string();
    const auto wanted = std::as_bytes(std::span(before));
    const auto at = std::search(other.begin(), other.end(), wanted.begin(), wanted.end());
    EXPECT_NE(at, other.end());
    std::ranges::copy(std::as_bytes(std::span(name)), at);
    std::swap(bytes_, other);
    const std::string text = refusal();
    std::swap(bytes_, other);
    return text;
  };
  const std::string precious = std::string(pages.filename().string().size() - 7, 'x') + ".sqlite", bytes(1 << 20, 'p');
  std::ofstream(folder_ / precious) << bytes;
  EXPECT_EQ(named(precious), "it names '" + precious + "', which is no state file");
  EXPECT_EQ(fs::file_size(folder_ / precious), bytes.size());
  fs::remove(pages);
  ASSERT_EQ(::mkfifo(pages.c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("is no regular file"));
}

TEST_F(BadPages, AFileThatAProcessHas) {
  const auto table = paged(kCohort + 1);
  load(*table, bytes_);
  EXPECT_THAT(refusal(), HasSubstr("is used by another process"));
}

TEST_F(BadPages, AnIndexThatCannotBe) {
  PageIndex good{.name = "x", .record_bytes = 64, .clients = {1, 4, 5}, .places = {2, 0, 1}, .checksums = {1, 2, 3}};
  const auto refused = [](PageIndex index) {
    try {
      index.validate(6, 64);
    } catch (const ArchiveError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(good), "accepted");
  const auto with = [&](const std::function<void(PageIndex&)>& change) {
    PageIndex index = good;
    change(index);
    return refused(index);
  };
  EXPECT_THAT(with([](PageIndex& i) { i.record_bytes = 65; }), HasSubstr("65 bytes where this run has 64"));
  EXPECT_THAT(with([](PageIndex& i) { i.clients[2] = 6; }), HasSubstr("client 6 is out of order"));
  EXPECT_THAT(with([](PageIndex& i) { i.clients[2] = 4; }), HasSubstr("client 4 is out of order"));
  EXPECT_THAT(with([](PageIndex& i) { i.places[0] = 1; }), HasSubstr("taken twice"));
  EXPECT_THAT(with([](PageIndex& i) { i.places[0] = ~0u; }), HasSubstr("taken twice"));
  EXPECT_THAT(with([](PageIndex& i) { i.checksums.pop_back(); }), HasSubstr("differ in length"));
}

// ---- files that change while they are used -----------------------------------------------------------------------------------------

class TurnedBytes : public ClientStateTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr std::uint32_t kBefore = 12, kAfter = 8;
  [[nodiscard]] std::unique_ptr<Table> opened() const {
    StatePaging options = paging(kCohort * kRow + (kCohort + 2) * (2 * kRow + 5 * sizeof(float)));
    options.file.can_be_kept = GetParam();
    options.file.system = &system_;
    return make(options);
  }
  // The rounds of both tables draw the same cohorts, and look at all rows in the end.
  static void play_on(Table& table, std::uint32_t from, std::uint32_t rounds) {
    for (std::uint32_t round = from; round < from + rounds; ++round) {
      std::mt19937 random(round), next(round + 1);
      play(table, draw(random, kCohort), draw(next, kCohort), round);
    }
  }
  // Where runs keep no checkpoint, the file has no name: what is read of it goes through here.
  class TurningDisk : public FileSystem {
   public:
    std::int64_t read_at(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
      const std::int64_t got = FileSystem::read_at(file, bytes, size, offset);
      if (got > 0 && at >= offset && at < offset + static_cast<std::uint64_t>(got)) static_cast<char*>(bytes)[at - offset] ^= 16;
      return got;
    }
    std::atomic<std::uint64_t> at = ~std::uint64_t{0};  // the byte that turns; none
  };
  mutable TurningDisk system_;
};

// Changes one byte at a time while a run has the file open. No round uses the byte: the run ends with an error that names the place, or the
// byte is never read and the results are the same.
TEST_P(TurnedBytes, AreNeverComputedWith) {
  const auto expected = whole();
  play_on(*expected, 1, kBefore + kAfter);
  std::mt19937 random(20261122);
  constexpr int kFlips = 250;
  int refused = 0;
  for (int flip = 0; flip < kFlips; ++flip) {
    const auto table = opened();
    system_.at = ~std::uint64_t{0};
    play_on(*table, 1, kBefore);
    const std::uint64_t bytes = kClients * (2 * kRow + 5 * sizeof(float));
    system_.at = random() % bytes;
    SCOPED_TRACE("byte " + std::to_string(system_.at));
    try {
      play_on(*table, kBefore + 1, kAfter);
      expect_same(*table, *expected);
    } catch (const StoreError& error) {
      ++refused;
      EXPECT_THAT(error.what(), AllOf(HasSubstr("client state is damaged: " + folder_.string()), HasSubstr(", bytes "),
                                      HasSubstr(", the state of client "), HasSubstr("go on with --resume")));
    }
  }
  EXPECT_GT(refused, kFlips / 2) << "most bytes are read";
}
INSTANTIATE_TEST_SUITE_P(Kept, TurnedBytes, testing::Bool());

// ---- a disk that fails -------------------------------------------------------------------------------------------------------------

// From the n-th call on; writes come in pieces, as they may.
class FailingDisk : public FileSystem {
 public:
  explicit FailingDisk(int fails_at) : left_(fails_at) {}
  int open(const char* path, int flags, unsigned mode) override { return fails(EACCES) ? -1 : FileSystem::open(path, flags, mode); }
  std::int64_t write_at(int file, const void* bytes, std::size_t size, std::uint64_t offset) override {
    return fails(ENOSPC) ? -1 : FileSystem::write_at(file, bytes, std::min<std::size_t>(size, 3000), offset);
  }
  std::int64_t read_at(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
    return fails(EIO) ? -1 : FileSystem::read_at(file, bytes, std::min<std::size_t>(size, 5000), offset);
  }
  int fsync(int file) override { return fails(EIO) ? -1 : FileSystem::fsync(file); }
  [[nodiscard]] bool has_failed() const { return left_ <= 0; }

 private:
  bool fails(int reason) {
    if (--left_ > 0) return false;
    errno = reason;
    return true;
  }
  int left_;
};

TEST_F(ClientStateTest, AFailureOfAnyCallLeavesTheCheckpointBefore) {
  int failed = 0;
  for (int call = 1;; call += 1 + call / 12) {
    SCOPED_TRACE("call " + std::to_string(call));
    std::mt19937 random(13);
    FailingDisk disk(call);
    const auto expected = whole();
    std::vector<std::byte> bytes;
    bool is_saved = false, has_failed = false;
    try {
      const auto table = paged(kCohort + 2, disk);
      for (std::uint32_t round = 1; round <= 8; ++round) {
        const Cohort cohort = draw(random, kCohort), next = draw(random, kCohort);
        play(*table, cohort, next, round);
        play(*expected, cohort, next, round);
      }
      bytes = saved(*table);
      table->commit_checkpoint();
      is_saved = true;
      for (std::uint32_t round = 9; round <= 24; ++round) play(*table, draw(random, kCohort), draw(random, kCohort), round);
      (void)saved(*table);
    } catch (const StoreError& error) {
      has_failed = true;
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot keep client state in " + folder_.string()), HasSubstr("--state-folder")));
    }
    EXPECT_EQ(has_failed, disk.has_failed()) << "no failure goes unheard";
    if (is_saved) {
      const auto back = paged(kCohort + 1);
      load(*back, bytes);
      expect_same(*back, *expected);
    }
    for (const fs::path& file : files()) EXPECT_TRUE(remove_page_file(file));
    if (!has_failed || HasFailure()) break;
    ++failed;
  }
  EXPECT_GT(failed, 25);
}

}  // namespace
}  // namespace fl
