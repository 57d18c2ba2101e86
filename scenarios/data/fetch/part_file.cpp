#include "scenarios/data/fetch/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fl_core/config/error.hpp"

namespace fl {

std::string kept_text(std::uint64_t bytes) {
  return bytes == 0 ? "" : "; " + std::to_string(bytes) + " bytes are kept, the same command goes on from there";
}

PartFile::PartFile(const std::filesystem::path& path) : path_(path) {
  // Another process may finish and remove the file between the opening and the lock.
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries)
    if (open_once()) return;
  throw ConfigError(path_.string() + ": other processes make and remove this file; wait until they are done");
}

PartFile::~PartFile() { close(); }

void PartFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

// Returns false where the file is no longer the one under its name.
bool PartFile::open_once() {
  // O_NOFOLLOW: a link is refused, so that nobody else says which file is written. O_NONBLOCK: a pipe does not wait.
  constexpr int kFlags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  descriptor_ = ::open(path_.c_str(), kFlags);
  if (descriptor_ < 0 && errno == ENOENT) {
    descriptor_ = ::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (descriptor_ < 0 && errno == EEXIST) return false;
  }
  const auto refuse = [this](const std::string& why) {
    close();
    throw ConfigError(path_.string() + ": " + why);
  };
  if (descriptor_ < 0 && errno == ELOOP) refuse("is a symbolic link, and a download does not follow one; remove it");
  if (descriptor_ < 0) refuse(std::string("cannot be written: ") + std::strerror(errno));
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) refuse("is no regular file; remove it");
  if (facts.st_uid != ::geteuid()) refuse("belongs to another user; remove it or fetch into another folder");
  if (facts.st_nlink > 1) refuse("has another name elsewhere (a hard link); remove it");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse("another process is downloading this file");
  if (::fstat(descriptor_, &facts) != 0 || facts.st_nlink == 0) {
    close();
    return false;
  }
  if (::fchmod(descriptor_, S_IRUSR | S_IWUSR) != 0) refuse(std::string("cannot be made private: ") + std::strerror(errno));
  return true;
}

std::uint64_t PartFile::size() const {
  struct stat facts {};
  ::fstat(descriptor_, &facts);
  return static_cast<std::uint64_t>(facts.st_size);
}

void PartFile::clear() {
  if (::ftruncate(descriptor_, 0) != 0) fail(errno);
}

bool PartFile::append(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
      return false;
    }
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

std::string PartFile::read_all() const {
  std::string bytes(size(), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error(path_.string() + ": cannot be read at byte " + std::to_string(done));
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

void PartFile::remove() {
  std::error_code error;
  std::filesystem::remove(path_, error);
  if (error) throw Error(path_.string() + ": cannot be removed: " + error.message());
}

void PartFile::rename(const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(path_, to, error);
  if (error) throw Error(path_.string() + ": cannot be renamed to " + to.string() + ": " + error.message());
}

void PartFile::fail(int error) const { throw Error(path_.string() + ": cannot be written: " + std::strerror(error) + kept_text(size())); }

}  // namespace fl
