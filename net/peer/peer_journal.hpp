// The state of a peer's clients on disk, for one run: snapshots, and the frames of the rounds that closed after them.
//
//   FOLDER/RUN.checkpoint   the base: a snapshot of a round that the server will not go behind
//   FOLDER/RUN.recent       a later snapshot, where the rounds since the base have become long
//   FOLDER/RUN.rounds       one record with a checksum for each closed round
//
// Clients are deterministic: a snapshot and the frames of the following rounds give the state of each of these rounds again. A record names
// the round before it, so a missing or damaged record ends the chain of rounds that can be reached, and nothing wrong is computed. A peer
// has to reach two rounds: its last one, and its last one before the server's last checkpoint. Records that neither needs are removed, and
// the size stays bounded: two snapshots, and twice kLongJournalBytes or four snapshots of records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/regular_file.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// The frames that a peer was sent in one round, and the round before it that its clients took part in; 0 = none.
struct RoundRecord {
  std::uint32_t round = 0, before = 0;
  std::vector<Frame> frames{};  // Open, Means, Close
};

inline constexpr std::uint64_t kLongJournalBytes = std::uint64_t{16} << 20;  // of records, after which a snapshot replaces them

struct PeerJournalOptions {
  std::filesystem::path folder;
  std::string run;      // hash of the resolved scenario, as text
  std::string clients;  // ids, as text
  std::filesystem::path pages{};
  bool has_pages = false;  // state beyond memory is in a page file, which belongs to one snapshot only
  FileSystem* system = &FileSystem::real();
  std::uint64_t long_bytes = kLongJournalBytes;
  double long_seconds = 20;  // of computing
};

enum class JournalSnapshot { none, base, recent };  // none = the clients as they are at the beginning

// A way to reach a round: a snapshot, and records after it.
struct JournalWay {
  JournalSnapshot snapshot = JournalSnapshot::none;
  std::uint32_t from = 0, round = 0;   // the rounds of the snapshot and of the last record
  std::vector<std::size_t> records{};  // in order
};

class FL_API PeerJournal {
 public:
  // Opens the files of a run, or creates them. Throws StoreError if they belong to other clients or another build, or cannot be used.
  explicit PeerJournal(PeerJournalOptions options);
  ~PeerJournal();
  PeerJournal(const PeerJournal&) = delete;
  PeerJournal& operator=(const PeerJournal&) = delete;

  // Returns ways to the highest round up to `round` that can be reached, the best one first. Another one serves if a snapshot is damaged.
  [[nodiscard]] std::vector<JournalWay> ways_to(std::uint32_t round) const;
  // Reads a record. Throws StoreError if it is not the one that was written.
  [[nodiscard]] RoundRecord read(std::size_t record) const;
  // Returns the file of a snapshot, for load_checkpoint.
  [[nodiscard]] CheckpointPlan plan_of(JournalSnapshot snapshot) const;

  // Adds the record of a round that took `seconds` to compute. The record is on disk when this returns. Throws StoreError if it cannot be
  // written; the earlier ones then stay.
  void append_record(const RoundRecord& record, double seconds);
  // Removes everything about rounds after `round`: the run goes on from there.
  void forget_after(std::uint32_t round);
  // Writes a snapshot of `round`, the last closed one, if the records after the last snapshot are long. `saved` is the round of the
  // server's last checkpoint. Calls committed() after a base is on disk.
  void compact(std::uint32_t round, std::uint32_t saved, const std::string& page_file, const Persist& persist,
               const std::function<void()>& committed);
  // Removes all files of the run.
  void remove();

  // Returns why the last records of the file were left out when it was opened, or "".
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }  // of the records' file

  // Returns the runs that have files in a folder, sorted.
  [[nodiscard]] static std::vector<std::string> runs_in(const std::filesystem::path& folder);
  // Throws StoreError if a run in the folder is of other clients.
  static void require_clients(const std::filesystem::path& folder, const std::string& clients);

 private:
  struct Place {
    std::uint32_t round = 0, before = 0;
    std::uint64_t begin = 0, size = 0;  // of the content
  };
  [[nodiscard]] std::filesystem::path file(const char* ending) const { return options_.folder / (options_.run + ending); }
  [[nodiscard]] std::string path_text() const { return file(".rounds").string(); }
  void write_identity();
  void open();
  void read_places(const RegularFile& in);
  [[nodiscard]] std::uint32_t round_of(JournalSnapshot snapshot);
  [[nodiscard]] JournalWay way_from(JournalSnapshot snapshot, std::uint32_t round) const;
  [[nodiscard]] bool is_long() const;
  void measure_length();
  void write_all(std::span<const std::byte> bytes);
  void truncate(std::uint64_t size);
  void drop_records_after(std::uint32_t round);
  void forget_snapshots();
  [[noreturn]] void fail(const std::string& step) const;

  PeerJournalOptions options_;
  int file_ = -1;
  std::uint64_t size_ = 0;
  std::vector<Place> places_;
  std::uint32_t base_ = 0, recent_ = 0;                // rounds of the snapshots; 0 = there is none
  std::uint64_t snapshot_bytes_ = 0, long_bytes_ = 0;  // of the last snapshot, and of the records after it
  double seconds_ = 0;                                 // of computing since the last snapshot
  std::string damage_;
};

}  // namespace fl::net
