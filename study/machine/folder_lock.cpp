#include "study/machine/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "fl_core/config/error.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {
// Number and length of waits for the workers of a sweep that was just killed, which hold its lock until they have ended.
constexpr int kAttempts = 20;
constexpr std::chrono::milliseconds kPause(50);
}  // namespace

FolderLock::FolderLock(fs::path folder, const Holder& holder) : folder_(std::move(folder)), path_(folder_ / holder.file) {
  for (int attempt = 1; !try_to_lock(); ++attempt) {
    if (attempt == kAttempts)
      throw StoreError("another " + holder.name + " is writing to " + folder_.string() + "; wait for it, or choose another folder with " +
                       holder.option);
    std::this_thread::sleep_for(kPause);
  }
}

FolderLock::~FolderLock() {
  if (is_in_place()) ::unlink(path_.c_str());  // before the lock is released: afterwards the file may belong to another sweep
  ::close(file_);
  std::error_code not_empty;
  for (const fs::path& folder : made_) fs::remove(folder, not_empty);
}

bool FolderLock::try_to_lock() {
  make_folders();
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0 && errno != ENOENT) throw StoreError("cannot write " + path_.string() + ": " + std::strerror(errno));
  if (file_ < 0) return false;  // another process has just removed the folder
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0 && is_in_place()) return true;
  ::close(std::exchange(file_, -1));
  return false;
}

// Returns false if the path no longer names the locked file, so that other sweeps would lock another one.
bool FolderLock::is_in_place() const {
  struct stat held {
  }, found{};
  return ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &found) == 0 && held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

void FolderLock::make_folders() {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path path = fs::absolute(folder_); !fs::exists(path, error) && path.has_relative_path(); path = path.parent_path())
    missing.push_back(path);
  fs::create_directories(folder_, error);
  if (!error && !missing.empty()) made_ = std::move(missing);
}

}  // namespace fl
