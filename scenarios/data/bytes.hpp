// The bytes of a data file, unpacked when it is gzip (told by its first two bytes, not by its name).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "fl_core/device.hpp"

namespace fl {

// A data file whose contents are read where they are wanted: straight from a plain file, after unpacking from a packed one.
class FL_API DataReader {
 public:
  // Throws DataError as read_data_file does, except that an empty file is none of its concern.
  explicit DataReader(const std::filesystem::path& file);
  ~DataReader();
  DataReader(DataReader&& other) noexcept
      : file_(std::move(other.file_)),
        size_(other.size_),
        descriptor_(std::exchange(other.descriptor_, -1)),
        unpacked_(std::move(other.unpacked_)) {}
  DataReader& operator=(DataReader&&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }  // bytes, unpacked
  // `out` = the bytes from `begin` on; they must be there. Throws DataError when the disk does not deliver them.
  void read(std::size_t begin, std::span<std::byte> out) const;
  [[nodiscard]] std::string take() &&;  // all of it

 private:
  std::filesystem::path file_;
  std::size_t size_ = 0;
  int descriptor_ = -1;   // of a plain file
  std::string unpacked_;  // of a packed one
};

// The whole of it. Throws DataError: missing, a folder, unreadable, empty, or a gzip stream that is truncated or damaged.
[[nodiscard]] FL_API std::string read_data_file(const std::filesystem::path& file);

// The same for bytes in memory; `name` is what errors call them.
[[nodiscard]] FL_API std::string unpack_data(std::span<const std::byte> bytes, const std::string& name);

// How many of the `available` rows of a file to keep when `asked` are asked for (0 = all). Throws DataError when there are fewer.
[[nodiscard]] FL_API std::size_t rows_kept(std::size_t asked, std::size_t available, const std::filesystem::path& file);

}  // namespace fl
