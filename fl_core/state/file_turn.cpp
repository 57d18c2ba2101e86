#include "fl_core/state/file_turn.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fl {

FileTurn::FileTurn(std::filesystem::path file, Wait wait) : path_(std::move(file)) {
  for (;;) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) return;
    int locked = -1;
    do locked = ::flock(file_, wait == Wait::yes ? LOCK_EX : LOCK_EX | LOCK_NB);
    while (locked != 0 && errno == EINTR);
    const bool is_taken = locked != 0 && errno == EWOULDBLOCK;
    if (!is_taken && is_in_place()) return;
    ::close(std::exchange(file_, -1));
    if (is_taken) return;
  }
}

FileTurn::~FileTurn() {
  if (file_ >= 0) ::close(file_);
}

// Returns false when the process before has renamed or removed the file while this one waited for it.
bool FileTurn::is_in_place() const {
  struct stat held {
  }, found{};
  return ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &found) == 0 && held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

}  // namespace fl
