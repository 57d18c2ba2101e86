// Allows only one sweep at a time to write to a folder, by an exclusive lock on FOLDER/sweep.lock. The lock ends with the process, for
// whatever reason.
//
// Workers inherit the lock, so it is held until the last of them has ended. The file exists while the lock is held. A killed sweep leaves
// an empty file, which the next sweep takes over.
#pragma once

#include <filesystem>
#include <vector>

namespace fl {

class FolderLock {
 public:
  // Creates the folder if it is missing. Throws StoreError if another sweep holds the lock or the folder is not writable.
  explicit FolderLock(std::filesystem::path folder);
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
