// Checkpoints of a run: one file that holds everything a run needs to go on after a round, byte for byte as if it had not stopped.
//
// A checkpoint replaces the one before whole or not at all: it is written under a temporary name, synced, renamed, and the folder synced.
// So at any moment, `kill -9`, a full disk and a power cut included, the file is the last checkpoint that was finished. It ends with an
// XXH64 of its bytes; a file that does not match, or belongs to another run or another build of fedbits, is refused with its reason. So is
// one whose checksum is right and whose contents cannot be those of the run; memory is bounded by the size of the file.
//
// Client state that pages to a file (fl_core/state/state_pager.hpp) is not repeated in it: the checkpoint says where in that file it lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "fl_core/state/file_system.hpp"

namespace fl {

// Writes a file whole or not at all. StoreError with path, step and reason; what was there stays.
FL_API void write_atomically(const std::filesystem::path& file, std::span<const std::byte> bytes, FileSystem& system = FileSystem::real());

// Identity of what decides a run's bytes beside its scenario: version, compiler and instruction set of this build.
[[nodiscard]] FL_API std::string build_fingerprint();

struct CheckpointHeader {
  std::string run;          // hash of the resolved scenario
  std::uint64_t round = 0;  // the last one that was played
  double seconds = 0;       // real time until here
  std::string pages{};      // the page file that holds client state, "" = it is inside
};

// When a run writes checkpoints. Where `file` is empty it writes none.
struct CheckpointPlan {
  std::filesystem::path file;
  std::uint64_t every_rounds = 0;  // 0 = not by rounds
  double every_seconds = 0;        // 0 = not by time
  bool resume = false;             // goes on from `file` if it is there
  bool any_build = false;          // even if another build of fedbits wrote it
  FileSystem* system = &FileSystem::real();
  std::filesystem::path pages;  // folder of page files; "" = that of `file`
  [[nodiscard]] std::filesystem::path pages_folder() const { return pages.empty() ? file.parent_path() : pages; }

  // Whether one is due after a round, so many seconds after the last.
  [[nodiscard]] bool is_due(std::uint64_t round, double seconds) const {
    return !file.empty() && ((every_rounds > 0 && round % every_rounds == 0) || (every_seconds > 0 && seconds >= every_seconds));
  }
};

// What the names of a run's page files begin with. In a folder that the user chose, files of several studies may lie: there the name tells
// which folder of checkpoints it belongs to.
[[nodiscard]] FL_API std::string page_file_name(const CheckpointPlan& plan);

using Persist = std::function<void(Archive&)>;

FL_API void save_checkpoint(const CheckpointPlan& plan, CheckpointHeader header, const Persist& persist);
// Fills the header, then calls `persist`. Returns false when there is no file. Throws StoreError when it cannot be used: nothing may be
// done with the half-read object then.
[[nodiscard]] FL_API bool load_checkpoint(const CheckpointPlan& plan, CheckpointHeader& header, const Persist& persist);

// Reads the beginning of any run's checkpoint, whichever build wrote it: the header, and what `persist` takes of the rest. Throws
// StoreError for a file that is not there, damaged, or of another version.
FL_API void peek_checkpoint(const std::filesystem::path& file, CheckpointHeader& header, const Persist& persist);

// Looks at a checkpoint of any run and at the page file that it names, in `pages` ("" = beside it). Returns a sentence for each thing that
// is damaged; none = a resumed run will find the bytes that were written. Changes nothing, and may be called while the run goes on.
[[nodiscard]] FL_API std::vector<std::string> damage_of_checkpoint(const std::filesystem::path& file,
                                                                   const std::filesystem::path& pages = {});

// After the run was stored. Takes away its page files and what a killed process left half written, too.
FL_API void remove_checkpoint(const CheckpointPlan& plan);

// Page files in `pages` that belong to runs of `checkpoints`, that no checkpoint refers to and no process holds: killed processes left
// them.
FL_API void remove_leftover_pages(const std::filesystem::path& checkpoints, const std::filesystem::path& pages);

}  // namespace fl
