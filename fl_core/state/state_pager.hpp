// Decides which clients' state is in memory, and stores the state of the others in a file.
//
// Memory has R frames, each for the state of one client. A client gets a frame when it takes part. Approximately the least recently used
// frame (clock algorithm with a second chance) is evicted and, if it changed, written to its place in the file. A client that never took
// part has neither frame nor place: its state is zero. During a round its cohort keeps its frames; meanwhile a background thread may load
// the next cohort and touches only frames that the round does not use.
//
// Frames in memory that a GPU shares are copied on the pager's own stream to and from a pinned record, so that the host touches none of
// their pages.
//
// Checkpoints use copy on write. The places that the last checkpoint refers to are never overwritten: a client that changed since then is
// written to a new place, and its old place becomes free only when the next checkpoint is on disk (`commit`). A checkpoint thus costs the
// changes since the previous one, and the previous one stays intact until then.
//
// The checksum of each written record is kept in memory and in checkpoints and is compared on every read. A record that differs ends the
// run; nothing is computed with it.
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

// The memory bound of client state, and the file for the rest. Results do not depend on it.
struct StatePaging {
  std::uint64_t memory_bytes = 0;  // 0 = no bound: no file is made
  PageFileOptions file{};
};

class FL_API StatePager {
 public:
  StatePager(std::size_t num_clients, std::uint32_t num_frames, std::size_t record_bytes, const PageFileOptions& file, Device memory,
             RecordMemory::PartsOf parts_of);
  ~StatePager();

  // Gives the cohort frames until the next round opens, and starts to load the next cohort as far as frames are free. Throws StoreError if
  // there are fewer frames than members, if the file is damaged, or on I/O errors. Errors of the background thread are rethrown at the
  // next round.
  void open_round(std::span<const std::uint32_t> cohort, std::span<const std::uint32_t> next_cohort);
  // Returns the frame of a client after loading the client if necessary. The frame may be modified until the next call that loads a
  // client. Members of the cohort keep their frames longer and are found without waiting for the thread.
  [[nodiscard]] std::uint32_t frame_of(std::uint32_t client);
  // Returns the frame of a member of the cohort.
  [[nodiscard]] std::uint32_t frame_of_member(std::uint32_t client) const { return frame_of_client_[client]; }
  // Copies a part of a client's record, from `offset` on, without loading the client. A record in the file is read and checked completely.
  // Returns false if the client has no state, which means zero.
  [[nodiscard]] bool read_part(std::uint32_t client, std::size_t offset, std::span<std::byte> part);

  // Writes changed records and the places of all clients' state, or restores them. Call between rounds. Throws StoreError, ArchiveError.
  void persist(Archive& archive);
  // Declares that the checkpoint written by persist() is on disk.
  void commit();
  [[nodiscard]] PageFile& file() { return file_; }
  [[nodiscard]] const PageFile& file() const { return file_; }
  [[nodiscard]] std::uint32_t num_frames() const { return static_cast<std::uint32_t>(frames_.size()); }

 private:
  struct Frame {
    std::uint32_t client;
    std::uint64_t kept_until = 0;  // the turn until which the frame must stay
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
  std::uint32_t num_used_ = 0;  // frames used so far
  std::uint32_t hand_ = 0;
  std::uint64_t turn_ = 0;  // 2, 4, ... for rounds; odd numbers in between are for clients loaded for the next round
  // Indexed by client: 20 bytes per client.
  std::vector<std::uint32_t> frame_of_client_, place_, committed_place_;
  std::vector<std::uint64_t> checksum_;       // of the record at place_
  std::vector<std::byte> looked_at_;          // one record, of a client without a frame
  std::vector<std::uint32_t> moved_;          // clients whose two places differ
  std::vector<std::uint32_t> cohort_, next_;  // cohort_ is ascending; next_ has the order of arrival
  struct Ahead;                               // the thread that loads the next cohort
  std::unique_ptr<Ahead> ahead_;
};

}  // namespace fl
