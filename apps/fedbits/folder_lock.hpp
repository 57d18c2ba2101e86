// One sweep at a time writes to a folder: an exclusive lock on FOLDER/sweep.lock, which goes with the process, however it ends.
//
// Workers inherit it, so it is held until the last of them has ended. The file is there while the lock is held; a killed sweep leaves an
// empty one that the next takes over.
#pragma once

#include <filesystem>
#include <vector>

namespace fl {

class FolderLock {
 public:
  // Makes the folder where there is none. StoreError when another sweep holds it or it cannot be written.
  explicit FolderLock(std::filesystem::path folder);
  ~FolderLock();  // takes away what it made, folders only where nothing was put into them
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
