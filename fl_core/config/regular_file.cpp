#include "fl_core/config/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fl_core/config/stopping.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPiece = std::size_t{64} << 20;  // that is read at once

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "no regular file";
}

[[noreturn]] void refuse_kind(const fs::path& file, mode_t mode) {
  throw FileError(file, "is " + kind_of(mode) + "; an ordinary file is needed here (write the contents to one and name that)");
}

std::string text_of_size(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f %s", size, kUnits[unit]);
  return text.data();
}

}  // namespace

RegularFile open_regular_file(const fs::path& file, const SizeLimit& limit) {
  // O_NONBLOCK: the opening of a pipe does not wait for a writer. O_NOCTTY: a terminal does not become the program's own.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat facts {};
  if (descriptor < 0) {
    const int reason = errno;
    if (reason != ENOENT && ::stat(file.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) refuse_kind(file, facts.st_mode);
    throw FileError(file, std::string("cannot be opened: ") + std::strerror(reason));
  }
  RegularFile opened(file, descriptor);
  if (::fstat(descriptor, &facts) != 0) throw FileError(file, std::string("cannot be examined: ") + std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse_kind(file, facts.st_mode);
  opened.size_ = static_cast<std::uint64_t>(facts.st_size);
  if (opened.size_ > limit.bytes)
    throw FileError(file, "has " + text_of_size(opened.size_) + ", and at most " + text_of_size(limit.bytes) + " are read" +
                              (limit.advice.empty() ? "" : "; " + limit.advice));
  return opened;
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RegularFile::read(std::uint64_t begin, std::span<std::byte> out) const {
  for (std::size_t done = 0; done < out.size();) {
    check_for_stop();
    const std::size_t piece = std::min(kPiece, out.size() - done);
    const ssize_t count = ::pread(descriptor_, out.data() + done, piece, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(path_, "cannot be read at byte " + std::to_string(begin + done) + ": " + std::strerror(errno));
    if (count == 0)
      throw FileError(path_, "ends at byte " + std::to_string(begin + done) + ", and had " + std::to_string(size_) +
                                 " bytes when it was opened; do not change the file while it is read");
    done += static_cast<std::size_t>(count);
  }
}

std::string RegularFile::read_all() const {
  std::string bytes(size_, '\0');
  read(0, std::as_writable_bytes(std::span<char>(bytes)));
  return bytes;
}

std::string read_regular_file(const fs::path& file, const SizeLimit& limit) { return open_regular_file(file, limit).read_all(); }

}  // namespace fl
