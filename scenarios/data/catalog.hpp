// Finds data sets by name: in the folder given with --data, in FEDBITS_DATA, in ./data, and at last inside the binary.
//
// A name is looked for in each folder as it is, below libsvm/, and each with .gz appended. An absolute path, or one that starts with a
// dot, names a file directly. A file's test set is the file of the same name with `.t` appended. A folder that holds a set of several files
// (images, text, tables) is found by its name in the same way, before any file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/dataset.hpp"
#include "scenarios/data/libsvm.hpp"

namespace fl {

// A data set that is known by name: what a correct copy looks like.
struct DataInfo {
  std::string name;         // "libsvm/a9a"; "a9a" finds it too
  std::string description;  // one line
  std::size_t rows = 0, features = 0, classes = 0;
  std::string sha256;  // of the unpacked text; "" when none is known
};
[[nodiscard]] FL_API const std::vector<DataInfo>& known_data();
[[nodiscard]] FL_API const DataInfo* find_data_info(const std::string& name);  // null when it is not a known one

// Where a data set was found: a file, or the binary itself.
struct DataLocation {
  std::string name;                     // as asked for
  std::filesystem::path file;           // or folder; empty when embedded
  std::span<const std::byte> embedded;  // empty when a file
  [[nodiscard]] std::string where() const { return file.empty() ? "inside fedbits" : file.string(); }
};

enum class DataState { missing, present, matches, differs };
[[nodiscard]] constexpr const char* to_string(DataState state) {
  constexpr const char* kNames[] = {"missing", "present", "matches", "differs"};
  return kNames[static_cast<int>(state)];
}

// One line of `fedbits data` or `fedbits data --verify`.
struct DataListing {
  DataInfo info;
  DataState state = DataState::missing;  // list: missing or present; verify: missing, matches or differs
  std::string where;                     // "" when missing
  std::string found;                     // verify: the checksum, or why there is none
};

class FL_API DataCatalog {
 public:
  // `data_folder` is the one given with --data; empty when none was. Throws ConfigError when it or FEDBITS_DATA is not a folder.
  explicit DataCatalog(const std::filesystem::path& data_folder = {});

  [[nodiscard]] const std::vector<std::filesystem::path>& folders() const { return folders_; }
  // Throws ConfigError with the places looked at and the nearest known name.
  [[nodiscard]] DataLocation find(const std::string& name) const;
  [[nodiscard]] std::optional<DataLocation> find_test(const DataLocation& train) const;

  [[nodiscard]] std::vector<DataListing> list() const;
  [[nodiscard]] std::vector<DataListing> verify() const;

 private:
  [[nodiscard]] std::optional<std::filesystem::path> find_folder(const std::string& name) const;
  [[nodiscard]] std::optional<DataLocation> try_find(const std::string& name) const;
  std::vector<std::filesystem::path> folders_;  // in the order of search
};

// Reads what was found, as LIBSVM text.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_data(const DataLocation& location, const LibsvmFormat& format);

}  // namespace fl
