// The bytes of a data file, unpacked when it is gzip (told by its first two bytes, not by its name).
//
// Only regular files are read. Memory grows with what has arrived and never with what a header announces; a packed file is unpacked as far
// as its reader can use it and no further, and never beyond the memory that data may take.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fl_core/config/device.hpp"
#include "fl_core/config/regular_file.hpp"
#include "scenarios/data/gunzip.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {

// The most bytes that a packed text or a packed file of another kind without a size of its own unpacks to.
inline constexpr std::uint64_t kMostPackedText = std::uint64_t{2} << 30;

// Data whose contents are read where they are wanted: straight from a plain file or from memory, after unpacking from packed ones.
class FL_API DataReader {
 public:
  // Throws DataError: missing, no regular file, unreadable, or larger than the memory that data may take. An empty file is no error.
  explicit DataReader(const std::filesystem::path& file, const MemoryLimit& memory = {});
  // The same for bytes in memory, which must stay there; `name` is what errors call them.
  DataReader(std::span<const std::byte> bytes, const std::filesystem::path& name, const MemoryLimit& memory = {});
  DataReader(DataReader&&) noexcept = default;
  DataReader& operator=(DataReader&&) = delete;

  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  [[nodiscard]] const MemoryLimit& memory() const { return memory_; }
  [[nodiscard]] std::size_t unpacked_bytes() const { return unpacked_.size(); }  // so far
  [[nodiscard]] bool is_packed() const { return gunzip_.has_value(); }
  // Returns the size of the contents, unpacked. Of packed contents no more than `enough` bytes are unpacked: the result is `enough` where
  // they have as many or more. Throws DataError: damaged, or more than the memory that data may take.
  [[nodiscard]] std::size_t size_up_to(std::size_t enough);
  // `out` = the bytes from `begin` on, which size_up_to has found. Throws DataError when the disk does not deliver them.
  void read(std::size_t begin, std::span<std::byte> out) const;
  // Returns all of it. Throws DataError when packed contents have more than kMostPackedText bytes.
  [[nodiscard]] std::string take() &&;

 private:
  void begin_unpacking(PackedBytes packed);

  std::filesystem::path name_;
  MemoryLimit memory_;
  std::shared_ptr<const RegularFile> file_;  // null for bytes in memory
  std::span<const std::byte> bytes_;         // in memory
  std::optional<Gunzip> gunzip_;             // of packed contents
  std::string unpacked_;
};

// Returns the whole file. Throws DataError: missing, no regular file, unreadable, empty, larger than its limits, or a gzip stream that is
// truncated or damaged.
[[nodiscard]] FL_API std::string read_data_file(const std::filesystem::path& file, const MemoryLimit& memory = {});

// Returns a whole text, without the mark that UTF-8 may begin with. Throws DataError as read_data_file does, and "file:line:column: ..."
// for a byte 0, which no text holds.
[[nodiscard]] FL_API std::string read_text_file(const std::filesystem::path& file, const MemoryLimit& memory = {});

// The same for bytes in memory; `name` is what errors call them.
[[nodiscard]] FL_API std::string unpack_data(std::span<const std::byte> bytes, const std::string& name, const MemoryLimit& memory = {});
[[nodiscard]] FL_API std::string unpack_text(std::span<const std::byte> bytes, const std::string& name, const MemoryLimit& memory = {});

// Returns how many of a file's `available` rows to keep if `asked` are requested (0 = all). Throws DataError if there are fewer.
[[nodiscard]] FL_API std::size_t rows_kept(std::size_t asked, std::size_t available, const std::filesystem::path& file);

}  // namespace fl
