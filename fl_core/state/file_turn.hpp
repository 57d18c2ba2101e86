// A lock on a file that one process holds at a time. The lock ends with the process, however it terminates.
//
// Processes that write a file under a temporary name and rename it afterwards use the lock to share that name. On a file system without
// locks, the lock is granted at once.
#pragma once

#include <filesystem>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API FileTurn {
 public:
  enum class Wait { yes, no };

  // Creates the file if it is missing. If the file cannot be opened, the lock is not held; the writer then finds the reason.
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
