// Checkpoints of a run: one file with all data that a run needs to continue after a round, byte for byte as if it had not stopped.
//
// A checkpoint replaces the previous one completely or not at all: it is written under a temporary name, synced and renamed, and the
// folder is synced. At any moment, including `kill -9`, a full disk and a power cut, the file is thus the last completed checkpoint. It
// ends with an XXH64 of its bytes. A file that does not match, or that belongs to another run or another build of fedbits, is rejected
// with the reason. A file with a correct checksum but impossible contents is rejected too; the memory use is bounded by the size of the
// file.
//
// Client state that pages to a file (fl_core/state/state_pager.hpp) is not repeated: the checkpoint stores its places in that file.
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

// Writes a file completely or not at all. Throws StoreError with path, step and reason; the existing file then stays.
FL_API void write_atomically(const std::filesystem::path& file, std::span<const std::byte> bytes, FileSystem& system = FileSystem::real());

// Returns the identity of everything other than the scenario that decides a run's bytes: version, compiler and instruction set of this
// build.
[[nodiscard]] FL_API std::string build_fingerprint();

struct CheckpointHeader {
  std::string run;          // hash of the resolved scenario
  std::uint64_t round = 0;  // the last completed round
  double seconds = 0;       // elapsed real time
  std::string pages{};      // the page file that holds client state; "" = state is inside the checkpoint
};

// When a run writes checkpoints. An empty `file` means never.
struct CheckpointPlan {
  std::filesystem::path file;
  std::uint64_t every_rounds = 0;  // 0 = not by rounds
  double every_seconds = 0;        // 0 = not by time
  bool resume = false;             // continues from `file` if it exists
  bool any_build = false;          // accepts checkpoints of other builds of fedbits
  FileSystem* system = &FileSystem::real();
  std::filesystem::path pages;  // folder of page files; "" = the folder of `file`
  [[nodiscard]] std::filesystem::path pages_folder() const { return pages.empty() ? file.parent_path() : pages; }

  // Returns whether a checkpoint is due after a round, `seconds` after the last one.
  [[nodiscard]] bool is_due(std::uint64_t round, double seconds) const {
    return !file.empty() && ((every_rounds > 0 && round % every_rounds == 0) || (every_seconds > 0 && seconds >= every_seconds));
  }
};

// Returns the prefix of the names of a run's page files. A folder chosen by the user may contain files of several studies, so the prefix
// there identifies the folder of checkpoints.
[[nodiscard]] FL_API std::string page_file_name(const CheckpointPlan& plan);

using Persist = std::function<void(Archive&)>;

FL_API void save_checkpoint(const CheckpointPlan& plan, CheckpointHeader header, const Persist& persist);
// Fills the header, then calls `persist`. Returns false if there is no file. Throws StoreError if the file is unusable; the partly read
// object must then be discarded.
[[nodiscard]] FL_API bool load_checkpoint(const CheckpointPlan& plan, CheckpointHeader& header, const Persist& persist);

// Reads the beginning of a checkpoint of any run and any build: the header, and the part of the rest that `persist` reads. Throws
// StoreError for a file that is missing, damaged, or of another version.
FL_API void peek_checkpoint(const std::filesystem::path& file, CheckpointHeader& header, const Persist& persist);

// Checks a checkpoint of any run and the page file that it names, in `pages` ("" = beside it). Returns a sentence for each damaged item;
// an empty list means that a resumed run will find the written bytes. Changes nothing, and may be called while the run continues.
[[nodiscard]] FL_API std::vector<std::string> damage_of_checkpoint(const std::filesystem::path& file,
                                                                   const std::filesystem::path& pages = {});

// Removes the checkpoint after the run was stored, together with its page files and partly written files of killed processes.
FL_API void remove_checkpoint(const CheckpointPlan& plan);

// Removes page files in `pages` of runs in `checkpoints` that no checkpoint refers to and no process uses. Killed processes leave such
// files.
FL_API void remove_leftover_pages(const std::filesystem::path& checkpoints, const std::filesystem::path& pages);

}  // namespace fl
