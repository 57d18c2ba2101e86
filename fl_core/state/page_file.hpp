// A file of records of one size, for state that does not stay in memory. A record lies at a place 0, 1, ...
//
// The file is made when the first record is written, under a name of its own:
//
//   FOLDER/RUN.pages-PID-NUMBER          or, in a folder that several studies may share,  FOLDER/RUN.TAG.pages-PID-NUMBER
//
// It is taken away when its owner ends, unless a checkpoint has been made that refers to it (`keep`). Its owner holds a lock on it, which
// goes with the process, however that ends: a file that nobody has locked and no checkpoint refers to is a leftover (is_page_file_in_use).
// Records are read and written by explicit calls: a full disk is then an error with a reason, where a mapped file would end the process;
// the copy that the kernel keeps is its own to give up. Both ways and reads past that copy were measured: docs/benchmarks.md.
//
// A disk, a cable or another program may give back other bytes than were written, so every write and every read returns the record's
// checksum (fl_core/state/wide_hash.hpp). Its owner keeps the one of the write, which lies apart from the file, and compares.
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
  std::filesystem::path folder;  // made where it is missing
  std::string name = "state";    // what the file's name begins with
  bool can_be_kept = false;      // false: its name goes as soon as it is open, so that nothing can be left behind
  FileSystem* system = &FileSystem::real();
};

// A record is put together from these pieces of memory, one after another.
using RecordParts = std::span<const std::span<std::byte>>;

class FL_API PageFile {
 public:
  PageFile(PageFileOptions options, std::size_t record_bytes);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // Goes on with a file that a checkpoint refers to, whose places 0 .. num_places-1 may be taken. Throws ArchiveError when it is not there,
  // is too short or another process has it.
  void adopt(const std::string& name, std::uint32_t num_places);
  // Which of them are taken; the others are given out again. After adopt.
  void set_taken(const std::vector<bool>& taken);

  [[nodiscard]] std::uint32_t take_place();
  void give_back(std::uint32_t place) { free_.push(place); }
  // Both return the checksum of the record's bytes, and throw StoreError with path, step and reason.
  [[nodiscard]] std::uint64_t write(std::uint32_t place, RecordParts parts);
  [[nodiscard]] std::uint64_t read(std::uint32_t place, RecordParts parts) const;
  // "PATH, bytes 4096 to 8191": where a record lies, for errors.
  [[nodiscard]] std::string text_of(std::uint32_t place) const;
  // Tells the kernel that a record will be read.
  void will_need(std::uint32_t place) const;
  // Everything written so far lasts, the file's name included.
  void sync();
  // A checkpoint refers to the file: it stays when its owner ends.
  void keep() { is_kept_ = true; }

  [[nodiscard]] bool can_be_kept() const { return options_.can_be_kept; }
  [[nodiscard]] std::size_t record_bytes() const { return record_bytes_; }
  [[nodiscard]] std::uint32_t num_places() const { return num_places_; }  // that were ever given out
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t place) const { return std::uint64_t{place} * stride_; }
  [[nodiscard]] std::string name();  // without its folder; makes the file
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
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;  // the lowest first: the file stays short
};

// Whether `path` has the name of a page file, and whose: "RUN" or "RUN.TAG".
[[nodiscard]] FL_API std::string owner_of_page_file(const std::filesystem::path& path);
// Takes a page file away unless a process has it. Returns whether it is gone.
FL_API bool remove_page_file(const std::filesystem::path& path);

}  // namespace fl
