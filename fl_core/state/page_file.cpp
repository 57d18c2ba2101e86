#include "fl_core/state/page_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/wide_hash.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kDiskPage = 4096;      // bytes
constexpr std::size_t kLargeRecord = 16384;  // bytes; from here on records begin on pages, so that none is read to write its neighbour
constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes; small against a second-level cache
constexpr const char* kMark = ".pages-";

std::size_t stride_of(std::size_t record_bytes) {
  return record_bytes < kLargeRecord ? record_bytes : (record_bytes + kDiskPage - 1) / kDiskPage * kDiskPage;
}

bool has_name(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

PageFile::PageFile(PageFileOptions options, std::size_t record_bytes)
    : options_(std::move(options)), record_bytes_(record_bytes), stride_(stride_of(record_bytes)) {}

PageFile::~PageFile() { leave(); }

void PageFile::leave() {
  if (file_ < 0) return;
  if (is_named_ && !is_kept_) ::unlink(path_.c_str());
  ::close(std::exchange(file_, -1));
}

void PageFile::fail(const std::string& step) const {
  const int reason = errno;
  throw StoreError("cannot keep client state in " + (path_.empty() ? options_.folder : path_).string() + ": " + step + ": " +
                   std::strerror(reason) +
                   "; free some space, choose another folder with --state-folder, or allow more memory with --state-memory; the last "
                   "checkpoint, if any, is untouched");
}

// Another process that looks for leftovers may take the file away between its making and its locking: then a new one is made.
void PageFile::make() {
  if (file_ >= 0) return;
  std::error_code error;
  fs::create_directories(options_.folder, error);
  const std::string begin = (options_.folder / (options_.name + kMark + std::to_string(::getpid()) + "-")).string();
  for (int number = 1; file_ < 0; ++number) {
    path_ = begin + std::to_string(number);
    file_ = options_.system->open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file_ < 0 && errno == EEXIST) continue;
    if (file_ < 0) fail("open");
    const bool is_locked = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno != EWOULDBLOCK) fail("lock");
    if (!is_locked || !has_name(file_)) ::close(std::exchange(file_, -1));
  }
  is_named_ = options_.can_be_kept;
  if (!is_named_) ::unlink(path_.c_str());
}

std::string PageFile::name() {
  make();
  return path_.filename().string();
}

void PageFile::adopt(const std::string& name, std::uint32_t num_places) {
  leave();
  if (owner_of_page_file(name).empty()) throw ArchiveError("it names '" + name + "', which is no state file");
  path_ = options_.folder / fs::path(name).filename();
  const std::string what = "its state file " + path_.string();
  const int file = options_.system->open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
  if (file < 0)
    throw ArchiveError(what + " cannot be opened: " + std::strerror(errno) + " (--state-folder names the folder where it lies)");
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    throw ArchiveError(what + " is used by another process");
  }
  file_ = file;
  is_kept_ = is_named_ = true;
  num_places_ = num_places;
  free_ = {};
  struct stat status {};
  if (::fstat(file_, &status) == 0 && !S_ISREG(status.st_mode)) throw ArchiveError(what + " is no regular file");
  const std::uint64_t least = num_places == 0 ? 0 : offset_of(num_places - 1) + record_bytes_;
  if (::fstat(file_, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < least)
    throw ArchiveError(what + " has " + std::to_string(status.st_size) + " bytes of at least " + std::to_string(least));
  (void)!::ftruncate(file_, static_cast<off_t>(size_bytes()));  // what was added since is of no use; should it stay, it is overwritten
}

void PageFile::set_taken(const std::vector<bool>& taken) {
  for (std::uint32_t place = 0; place < num_places_; ++place)
    if (!taken[place]) free_.push(place);
}

std::uint32_t PageFile::take_place() {
  if (free_.empty()) return num_places_++;
  const std::uint32_t place = free_.top();
  free_.pop();
  return place;
}

// A piece is hashed as soon as the kernel has copied it: then it lies in the cache.
std::uint64_t PageFile::write(std::uint32_t place, RecordParts parts) {
  make();
  WideHash hash;
  std::uint64_t at = offset_of(place);
  for (std::span<std::byte> part : parts)
    while (!part.empty()) {
      errno = ENOSPC;  // a short write sets no reason of its own
      const std::int64_t written = options_.system->write_at(file_, part.data(), std::min(part.size(), kPiece), at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("write");
      at += static_cast<std::uint64_t>(written);
      hash.add(part.first(static_cast<std::size_t>(written)));
      part = part.subspan(static_cast<std::size_t>(written));
    }
  return hash.value();
}

std::uint64_t PageFile::read(std::uint32_t place, RecordParts parts) const {
  WideHash hash;
  std::uint64_t at = offset_of(place);
  for (std::span<std::byte> part : parts)
    while (!part.empty()) {
      errno = EIO;  // the end of the file sets no reason
      const std::int64_t got = options_.system->read_at(file_, part.data(), std::min(part.size(), kPiece), at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail("read");
      at += static_cast<std::uint64_t>(got);
      hash.add(part.first(static_cast<std::size_t>(got)));
      part = part.subspan(static_cast<std::size_t>(got));
    }
  return hash.value();
}

std::string PageFile::text_of(std::uint32_t place) const {
  return path_.string() + ", bytes " + std::to_string(offset_of(place)) + " to " + std::to_string(offset_of(place) + record_bytes_ - 1);
}

void PageFile::will_need(std::uint32_t place) const {
  ::posix_fadvise(file_, static_cast<off_t>(offset_of(place)), static_cast<off_t>(record_bytes_), POSIX_FADV_WILLNEED);
}

void PageFile::sync() {
  make();
  if (options_.system->fsync(file_) != 0) fail("fsync");
  const int folder = options_.system->open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (folder < 0) fail("open the folder");
  const int synced = options_.system->fsync(folder);
  options_.system->close(folder);
  if (synced != 0) fail("fsync of the folder");
}

std::string owner_of_page_file(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t mark = name.find(kMark);
  return mark == std::string::npos ? "" : name.substr(0, mark);
}

bool remove_page_file(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return errno == ENOENT;
  const bool is_free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  if (is_free) ::unlink(path.c_str());
  ::close(file);
  return is_free;
}

}  // namespace fl
