// Tests of a peer's state on disk: records of rounds, snapshots, damage, going back, a full disk.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "fl_core/config/error.hpp"
#include "net/peer/join_session.hpp"
#include "net/peer/peer_journal.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using net::JournalWay;
using net::PeerJournal;
using net::PeerJournalOptions;
using Snapshot = net::JournalSnapshot;

// A disk that is full after some bytes.
class FullDisk final : public FileSystem {
 public:
  std::int64_t write(int file, const void* bytes, std::size_t size) override {
    const std::size_t fits = std::min(size, room);
    room -= fits;
    if (fits > 0) return FileSystem::write(file, bytes, fits);
    errno = ENOSPC;
    return -1;
  }
  std::size_t room = ~std::size_t{0};
};

class JournalTest : public testing::Test {
 protected:
  JournalTest() : folder_(fs::path(testing::TempDir()) / ("journal-" + std::to_string(::getpid()))) { fs::remove_all(folder_); }
  ~JournalTest() override { fs::remove_all(folder_); }

  PeerJournalOptions options(const std::string& clients = "0-4") {
    return {.folder = folder_, .run = kRun, .clients = clients, .system = &disk_, .long_bytes = 1 << 20, .long_seconds = 1e9};
  }
  static net::RoundRecord record(std::uint32_t round, std::uint32_t before) {
    net::RoundRecord one{.round = round, .before = before};
    net::Frame open, close;
    open.header.mutable_open()->set_round(round);
    open.payload = net::ReceivedBytes(net::Bytes(1000, static_cast<std::byte>(round)));
    close.header.mutable_close()->set_round(round);
    one.frames = {open, close};
    return one;
  }
  // The rounds 2, 4, 6, 8, 10.
  void write_rounds(PeerJournal& journal, std::uint32_t first = 2, std::uint32_t last = 10) {
    for (std::uint32_t round = first; round <= last; round += 2) journal.append_record(record(round, round - 2), 0);
  }
  // The snapshot holds its round.
  static void compact(PeerJournal& journal, std::uint32_t round, std::uint32_t saved) {
    journal.compact(
        round, saved, "", [round](Archive& archive) mutable { archive.value(round); }, [] {});
  }
  fs::path rounds_file() const { return folder_ / (kRun + ".rounds"); }
  static std::uint32_t reached(const PeerJournal& journal, std::uint32_t round) { return journal.ways_to(round).front().round; }

  const std::string kRun = "00112233445566aa";
  fs::path folder_;
  FullDisk disk_;
};

TEST_F(JournalTest, RecordsAreReadAsTheyWereWritten) {
  {
    PeerJournal journal(options());
    write_rounds(journal);
  }
  const PeerJournal journal(options());
  EXPECT_EQ(journal.damage(), "");
  EXPECT_EQ(reached(journal, 100), 10u);
  EXPECT_EQ(reached(journal, 7), 6u);
  EXPECT_EQ(reached(journal, 1), 0u);
  const JournalWay way = journal.ways_to(6).front();
  ASSERT_EQ(way.records.size(), 3u);
  const net::RoundRecord found = journal.read(way.records[1]), written = record(4, 2);
  EXPECT_EQ(found.round, 4u);
  EXPECT_EQ(found.before, 2u);
  ASSERT_EQ(found.frames.size(), 2u);
  EXPECT_EQ(found.frames[0].header.SerializeAsString(), written.frames[0].header.SerializeAsString());
  EXPECT_EQ(found.frames[0].payload, written.frames[0].payload);
  EXPECT_EQ(found.frames[1].header.close().round(), 4u);
}

TEST_F(JournalTest, AnyLengthOfATruncatedFileLeavesWholeRecords) {
  std::vector<std::uint64_t> ends;
  {
    PeerJournal journal(options());
    for (std::uint32_t round = 2; round <= 6; round += 2) {
      journal.append_record(record(round, round - 2), 0);
      ends.push_back(journal.size_bytes());
    }
  }
  const fs::path copy = folder_ / "whole";
  fs::copy_file(rounds_file(), copy);
  const std::uint64_t first = ends[0] - (ends[1] - ends[0]);
  for (std::uint64_t size = first; size <= ends.back(); size += 7) {
    fs::copy_file(copy, rounds_file(), fs::copy_options::overwrite_existing);
    fs::resize_file(rounds_file(), size);
    const auto whole = static_cast<std::uint32_t>(std::ranges::count_if(ends, [size](std::uint64_t end) { return end <= size; }));
    PeerJournal journal(options());
    ASSERT_EQ(reached(journal, 100), 2 * whole) << size;
    EXPECT_EQ(journal.damage().empty(), size == first || std::ranges::count(ends, size) > 0) << size;
    write_rounds(journal, 2 * whole + 2, 8);  // the run goes on behind the whole ones
    EXPECT_EQ(reached(journal, 100), 8u);
  }
}

TEST_F(JournalTest, ADamagedRecordEndsTheRoundsThatCanBeReached) {
  std::uint64_t second = 0, third = 0;
  {
    PeerJournal journal(options());
    write_rounds(journal, 2, 2);
    second = journal.size_bytes();
    write_rounds(journal, 4, 4);
    third = journal.size_bytes();
    write_rounds(journal, 6, 10);
  }
  for (std::uint64_t at = second; at < third; at += 13) {
    const fs::path copy = folder_ / "whole";
    fs::copy_file(rounds_file(), copy, fs::copy_options::overwrite_existing);
    {
      std::fstream file(rounds_file(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 0x10));
    }
    {
      const PeerJournal journal(options());
      EXPECT_EQ(reached(journal, 100), 2u) << at;
      EXPECT_NE(journal.damage().find("after round 2"), std::string::npos) << journal.damage();
    }
    fs::copy_file(copy, rounds_file(), fs::copy_options::overwrite_existing);
  }
}

TEST_F(JournalTest, GoesBackToAnEarlierRoundForGood) {
  {
    PeerJournal journal(options());
    write_rounds(journal);
    journal.forget_after(4);
    EXPECT_EQ(reached(journal, 100), 4u);
    journal.append_record(record(5, 4), 0);
    EXPECT_EQ(reached(journal, 100), 5u);
  }
  const PeerJournal journal(options());
  EXPECT_EQ(reached(journal, 100), 5u);
  EXPECT_EQ(journal.damage(), "");
}

TEST_F(JournalTest, AFullDiskIsAnErrorAndKeepsTheRoundsBefore) {
  PeerJournal journal(options());
  write_rounds(journal, 2, 4);
  for (const std::size_t room : {0u, 1u, 500u, 1030u}) {
    disk_.room = room;
    try {
      journal.append_record(record(6, 4), 0);
      FAIL() << room;
    } catch (const StoreError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
      EXPECT_NE(text.find("clients 0-4"), std::string::npos) << text;
      EXPECT_NE(text.find("--state"), std::string::npos) << text;
    }
    disk_.room = ~std::size_t{0};
    EXPECT_EQ(reached(PeerJournal(options()), 100), 4u);
  }
  journal.append_record(record(6, 4), 0);
  EXPECT_EQ(reached(PeerJournal(options()), 100), 6u);
}

TEST_F(JournalTest, AFullDiskKeepsTheSnapshotBefore) {
  PeerJournalOptions small = options();
  small.long_bytes = 1;
  PeerJournal journal(small);
  write_rounds(journal, 2, 4);
  compact(journal, 4, 4);
  write_rounds(journal, 6, 8);
  disk_.room = 10;
  EXPECT_THROW(compact(journal, 8, 8), StoreError);
  disk_.room = ~std::size_t{0};
  const PeerJournal again(small);
  EXPECT_EQ(again.ways_to(4).front().from, 4u);
  EXPECT_EQ(reached(again, 100), 8u);
}

TEST_F(JournalTest, FilesOfOtherClientsOrRunsAreRefused) {
  { PeerJournal journal(options()); }
  const auto error_of = [](const PeerJournalOptions& other) -> std::string {
    try {
      PeerJournal journal(other);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(options("5-9")).find("it is of clients 0-4, and this peer hosts 5-9"), std::string::npos) << error_of(options("5-9"));
  PeerJournalOptions other = options();
  other.run = "ffffffffffffffff";
  fs::copy_file(rounds_file(), folder_ / (other.run + ".rounds"));
  EXPECT_NE(error_of(other).find("it is of run " + kRun), std::string::npos) << error_of(other);
  EXPECT_EQ(PeerJournal::runs_in(folder_), (std::vector<std::string>{kRun, other.run}));
  std::ofstream(rounds_file()) << "no file of rounds";
  EXPECT_NE(error_of(options()).find("damaged"), std::string::npos) << error_of(options());
}

TEST_F(JournalTest, SnapshotsLeadToTheLastRoundAndToTheServersCheckpoint) {
  PeerJournalOptions small = options();
  small.long_bytes = 3000;  // three records are longer
  PeerJournal journal(small);
  std::uint32_t saved = 0;
  std::uint64_t longest = 0;
  for (std::uint32_t round = 1; round <= 200; ++round) {
    if (round > 1) compact(journal, round - 1, saved);
    journal.append_record(record(round, round - 1), 0);
    longest = std::max(longest, journal.size_bytes());
    if (round % 23 == 0) saved = round;  // the server writes a checkpoint
    const PeerJournal again(small);
    ASSERT_EQ(reached(again, round), round);
    ASSERT_EQ(reached(again, saved), saved) << "after round " << round;
  }
  EXPECT_LT(longest, 3 * 3000u + 3000) << "the file grows with the run";
  journal.remove();
  EXPECT_TRUE(PeerJournal::runs_in(folder_).empty());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(JournalTest, ADamagedSnapshotIsLeftOut) {
  PeerJournalOptions small = options();
  small.long_bytes = 1;
  {
    PeerJournal journal(small);
    write_rounds(journal, 2, 4);
    compact(journal, 4, 4);
    write_rounds(journal, 6, 8);
    compact(journal, 8, 4);  // a later one, behind which the server may go back
    write_rounds(journal, 10, 10);
    EXPECT_EQ(journal.ways_to(10).front().snapshot, Snapshot::recent);
  }
  fs::resize_file(folder_ / (kRun + ".recent"), 40);
  const PeerJournal journal(small);
  EXPECT_EQ(reached(journal, 100), 4u);
  EXPECT_EQ(journal.ways_to(100).front().snapshot, Snapshot::base);
  EXPECT_NE(journal.damage(), "");
}

}  // namespace
}  // namespace fl
