// Allows only one process at a time to write to a folder, by an exclusive lock on a file in it. The lock ends with the process, for
// whatever reason.
//
// Workers of a sweep inherit the lock, so it is held until the last of them has ended. The file exists while the lock is held. A killed
// process leaves an empty file, which the next one takes over.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API FolderLock {
 public:
  // The holder of the lock: the file's name, "sweep", and the option that names the folder.
  struct Holder {
    std::string file = "sweep.lock", name = "sweep", option = "--out";
  };
  // Creates the folder if it is missing. Throws StoreError if another process holds the lock or the folder is not writable.
  explicit FolderLock(std::filesystem::path folder, const Holder& holder);
  explicit FolderLock(std::filesystem::path folder) : FolderLock(std::move(folder), Holder()) {}
  ~FolderLock();  // removes the created file, and created folders if they are empty
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  [[nodiscard]] bool try_to_lock();
  [[nodiscard]] bool is_in_place() const;
  void make_folders();

  std::filesystem::path folder_, path_;
  std::vector<std::filesystem::path> made_;  // deepest first
  int file_ = -1;
};

}  // namespace fl
