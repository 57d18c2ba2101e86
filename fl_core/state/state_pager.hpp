// Which clients' state is in memory, and where that of the others lies in a file.
//
// Memory has R frames, each with room for the state of one client. A client gets a frame when it takes part; the one that has not taken
// part for longest, roughly (a clock with a second chance), gives its own up and is written to its place in the file if it changed. A
// client that never took part has neither frame nor place: its state is zero. While a round lasts its cohort keeps its frames; meanwhile
// the next cohort may be brought in by a thread of its own, which touches only frames that the round does not.
//
// Frames in memory that a GPU shares are read and written by copies on a stream of the pager's own, from and to a pinned record, so that
// the host touches none of their pages.
//
// Checkpoints are made by copy on write. The places that the last one refers to are never overwritten: a client that changed since is
// written to a new place, and its old one is given out again only when the next checkpoint is on disk (`commit`). So a checkpoint costs
// what changed since the one before, and the one before stays whole until then.
//
// The checksum of each record that was written is kept in memory and in checkpoints, and compared with that of the bytes on every read: a
// record that came back otherwise ends the run, and nothing is computed with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/page_file.hpp"
#include "fl_core/state/page_index.hpp"
#include "fl_core/state/record_memory.hpp"

namespace fl {

// What memory client state may take, and where the rest goes. A matter of the machine: results do not depend on it.
struct StatePaging {
  std::uint64_t memory_bytes = 0;  // 0 = no bound: no file is made
  PageFileOptions file{};
};

class FL_API StatePager {
 public:
  StatePager(std::size_t num_clients, std::uint32_t num_frames, std::size_t record_bytes, const PageFileOptions& file, Device memory,
             RecordMemory::PartsOf parts_of);
  ~StatePager();

  // Gives the cohort frames until the next round opens, and begins to bring in the next one, as far as there are frames.
  // Throws StoreError when there are fewer frames than members, or the file fails or is damaged: that of the thread too, a round later.
  void open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort);
  // The frame of a client, who is brought in if need be and may be changed until the next call that brings anyone in. Members of the
  // cohort keep theirs longer, and are found without waiting for the thread.
  [[nodiscard]] std::uint32_t frame_of(std::uint32_t client);
  // The frame of a member of the cohort.
  [[nodiscard]] std::uint32_t frame_of_member(std::uint32_t client) const { return frame_of_client_[client]; }
  // Fills `part` of a client's record, from `offset` on, without bringing anyone in; of a record in the file all is read, and checked.
  // Returns false when the client has no state: it is zero.
  [[nodiscard]] bool read_part(std::uint32_t client, std::size_t offset, std::span<std::byte> part);

  // Between rounds: writes what changed and tells where everybody's state lies, or goes on from there. Throws StoreError, ArchiveError.
  void persist(Archive& archive);
  // The checkpoint that persist() was written to is on disk.
  void commit();
  [[nodiscard]] PageFile& file() { return file_; }
  [[nodiscard]] const PageFile& file() const { return file_; }
  [[nodiscard]] std::uint32_t num_frames() const { return static_cast<std::uint32_t>(frames_.size()); }

 private:
  struct Frame {
    std::uint32_t client;
    std::uint64_t kept_until = 0;  // the turn for which it must stay
    bool is_dirty = false, is_used = false;
  };
  void settle();
  void bring_in_next(std::span<const std::uint32_t> cohort);
  std::uint32_t find_frame();
  void load(std::uint32_t client, std::uint32_t frame);
  void write_out(std::uint32_t frame);
  void read_in(std::uint32_t client, std::uint32_t frame);
  void read_record(std::uint32_t client, RecordParts record) const;

  RecordMemory memory_;  // of the frames
  PageFile file_;
  std::vector<Frame> frames_;
  std::uint32_t num_used_ = 0;  // frames that were ever taken
  std::uint32_t hand_ = 0;
  std::uint64_t turn_ = 0;  // 2, 4, ... for rounds; the odd ones between are of those who were brought in for the next
  // By client: 20 bytes.
  std::vector<std::uint32_t> frame_of_client_, place_, committed_place_;
  std::vector<std::uint64_t> checksum_;       // of what lies at place_
  std::vector<std::byte> looked_at_;          // one record, of a client without a frame
  std::vector<std::uint32_t> moved_;          // clients whose two places differ
  std::vector<std::uint32_t> cohort_, next_;  // ascending; as it came
  struct Ahead;                               // the thread that brings the next cohort in
  std::unique_ptr<Ahead> ahead_;
};

}  // namespace fl
