// Opens files that users or other programs wrote. Only regular files are accepted, and their size is known and bounded before reading.
//
// A named pipe would block a reader and a device is endless, so both are rejected at once, as are folders and sockets. Type and size are
// queried from the open file, so that no other file can replace it before it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "fl_core/config/device.hpp"
#include "fl_core/config/error.hpp"

namespace fl {

// Reports a file that cannot be read. The text is "FILE: REASON"; `reason` alone states the fault and the way out.
class FL_API FileError : public Error {
 public:
  FileError(const std::filesystem::path& file, std::string reason)
      : Error(file.string() + ": " + reason), file_(file), reason_(std::move(reason)) {}
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::filesystem::path file_;
  std::string reason_;
};

// The largest accepted size of a file, and the advice that follows in the error text: "; ADVICE".
struct SizeLimit {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  std::string advice{};
};

// An open regular file. Reads do not move a file position, so several threads may read at the same time.
class FL_API RegularFile {
 public:
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  RegularFile& operator=(RegularFile&&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }  // bytes, when it was opened
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Fills `out` with the bytes from `begin` on. Throws FileError if the disk fails or the file has become shorter.
  void read(std::uint64_t begin, std::span<std::byte> out) const;
  // Returns all bytes.
  [[nodiscard]] std::string read_all() const;

 private:
  friend RegularFile open_regular_file(const std::filesystem::path& file, const SizeLimit& limit);
  RegularFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Opens a file for reading. Throws FileError if it is missing, not permitted, not a regular file (the error names its type), or larger
// than the limit. Never blocks.
[[nodiscard]] FL_API RegularFile open_regular_file(const std::filesystem::path& file, const SizeLimit& limit = {});

// Returns all bytes of a file. Throws FileError as open_regular_file does.
[[nodiscard]] FL_API std::string read_regular_file(const std::filesystem::path& file, const SizeLimit& limit = {});

}  // namespace fl
