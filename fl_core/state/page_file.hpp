// A file of fixed-size records, for state that does not stay in memory. Records are numbered by places 0, 1, ...
//
// The file is created when the first record is written, under a unique name:
//
//   FOLDER/RUN.pages-PID-NUMBER          or, in a folder shared by several studies,  FOLDER/RUN.TAG.pages-PID-NUMBER
//
// The file is removed when its owner ends, unless a checkpoint refers to it (`keep`). The owner holds a lock on the file that ends with
// the process, however it terminates: a file that is not locked and that no checkpoint refers to is a leftover (is_page_file_in_use).
// Records are read and written by explicit calls: a full disk is then an error with a reason, whereas a mapped file would terminate the
// process. The kernel may drop its cached copy of the file. bench/results/engine.md compares both ways, and reads that bypass the cache.
//
// A disk, a cable or another program may return bytes that differ from those written. Therefore each write and each read returns the
// record's checksum (fl_core/state/wide_hash.hpp). The owner stores the checksum of the write outside the file and compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/state/file_system.hpp"

namespace fl {

struct PageFileOptions {
  std::filesystem::path folder;  // created if missing
  std::string name = "state";    // prefix of the file's name
  bool can_be_kept = false;      // false: the file is unlinked as soon as it is open, so that nothing is left behind
  FileSystem* system = &FileSystem::real();
};

// The pieces of memory that form one record, in order.
using RecordParts = std::span<const std::span<std::byte>>;

class FL_API PageFile {
 public:
  PageFile(PageFileOptions options, std::size_t record_bytes);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // Reopens a file that a checkpoint refers to and whose places 0 .. num_places-1 may be in use. Throws ArchiveError if it is missing, too
  // short or used by another process.
  void adopt(const std::string& name, std::uint32_t num_places);
  // Marks places as used; the rest are free. Call after adopt().
  void set_taken(const std::vector<bool>& taken);

  [[nodiscard]] std::uint32_t take_place();
  void give_back(std::uint32_t place) { free_.push(place); }
  // Return the checksum of the record's bytes. Throw StoreError with path, step and reason.
  [[nodiscard]] std::uint64_t write(std::uint32_t place, RecordParts parts);
  [[nodiscard]] std::uint64_t read(std::uint32_t place, RecordParts parts) const;
  // Returns "PATH, bytes 4096 to 8191", the location of a record, for error texts.
  [[nodiscard]] std::string text_of(std::uint32_t place) const;
  // Tells the kernel that a record will be read soon.
  void will_need(std::uint32_t place) const;
  // Makes everything written so far durable, including the file's name.
  void sync();
  // Keeps the file when its owner ends, because a checkpoint refers to it.
  void keep() { is_kept_ = true; }

  [[nodiscard]] bool can_be_kept() const { return options_.can_be_kept; }
  [[nodiscard]] std::size_t record_bytes() const { return record_bytes_; }
  [[nodiscard]] std::uint32_t num_places() const { return num_places_; }  // ever allocated
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t place) const { return std::uint64_t{place} * stride_; }
  [[nodiscard]] std::string name();  // without its folder; creates the file
  [[nodiscard]] std::uint64_t size_bytes() const { return std::uint64_t{num_places_} * stride_; }

 private:
  void make();
  void leave();
  [[noreturn]] void fail(const std::string& step) const;

  PageFileOptions options_;
  std::size_t record_bytes_, stride_;
  std::filesystem::path path_;
  int file_ = -1;
  bool is_kept_ = false, is_named_ = false;
  std::uint32_t num_places_ = 0;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;  // lowest first, so that the file stays short
};

// Returns the owner of a page file, "RUN" or "RUN.TAG", if `path` has the name of a page file.
[[nodiscard]] FL_API std::string owner_of_page_file(const std::filesystem::path& path);
// Removes a page file unless a process uses it. Returns whether it is gone.
FL_API bool remove_page_file(const std::filesystem::path& path);

}  // namespace fl
