// The turn to write a file: a lock on it that one process at a time holds and that goes with the process, however it ends.
//
// Processes that write a file under a temporary name and rename it afterwards take turns with that name. Where the file system has no
// locks a turn is granted at once.
#pragma once

#include <filesystem>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API FileTurn {
 public:
  enum class Wait { yes, no };

  // Makes the file if it is missing. A file that cannot be opened leaves the turn not held; the writer then learns the reason.
  explicit FileTurn(std::filesystem::path file, Wait wait = Wait::yes);
  ~FileTurn();
  FileTurn(const FileTurn&) = delete;
  FileTurn& operator=(const FileTurn&) = delete;

  [[nodiscard]] bool is_held() const { return file_ >= 0; }

 private:
  [[nodiscard]] bool is_in_place() const;

  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace fl
