// Finds data sets by name: in the folder given with --data, in FEDBITS_DATA, in ./data, and at last inside the binary.
//
// A name is looked for in each folder as it is, below libsvm/, and each with .gz appended. An absolute path, or one that starts with a
// dot, names a file directly. A path is looked for beside the scenario file and in the working folder before (find_path). A file's test set
// is the file of the same name with `.t` appended. A folder that holds a set of several files (images, text, tables) is found by its name
// in the same way, before any file.
//
// A scenario that came from another machine must not choose which files of this one are read: DataCatalog::confined() finds nothing
// outside of the folders that the user of this machine has named, wherever a path or a link leads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "scenarios/data/libsvm.hpp"

namespace fl {

// One file of a known data set.
struct DataFile {
  std::string path;                  // below the data folder
  std::string sha256;                // of its contents, unpacked; "" when none is known
  std::string url = {};              // where its publisher keeps it, or the archive that holds it; "" when nobody publishes it as such
  std::string member = {};           // its name inside of an archive; "" when it is none
  std::uint64_t most_bytes = 0;      // of its contents, unpacked; 0 = not known
  std::string download_sha256 = {};  // of what `url` delivers where that is packed; "" where `url` delivers the contents themselves
};

// A data set that is known by name: what a correct copy looks like, and who publishes it.
struct DataInfo {
  std::string name;  // "libsvm/a9a"; "a9a" finds it too
  std::string description = {};
  std::size_t rows = 0, features = 0, classes = 0;  // of the training set; text in rows of 80 characters or words
  std::string shape = {};                           // of a row: "1x28x28"; "" = its features
  std::string licence = {};                         // "" = none is stated
  std::string publisher = {};                       // a page about it
  std::vector<DataFile> files = {};
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

enum class DataState { missing, present, incomplete, matches, differs };
[[nodiscard]] constexpr const char* to_string(DataState state) {
  constexpr const char* kNames[] = {"missing", "present", "incomplete", "matches", "differs"};
  return kNames[static_cast<int>(state)];
}

// One line of `fedbits data` or `fedbits data --verify`.
struct DataListing {
  DataInfo info;
  DataState state = DataState::missing;  // list: missing or present; verify: anything else but present, unless there is no checksum
  std::string where;                     // "" when missing
  std::string found;                     // verify: what is wrong with which files
};

class FL_API DataCatalog {
 public:
  // `data_folder` is the one given with --data; empty when none was. Throws ConfigError when it or FEDBITS_DATA is not a folder.
  // Each data set may take the memory of `memory`.
  explicit DataCatalog(const std::filesystem::path& data_folder = {}, const MemoryLimit& memory = {});
  // Returns a catalog that finds what lies below `data_folder`, FEDBITS_DATA or one of the files and folders `also`, links resolved, and
  // nothing else: relative paths are looked for in the folders alone. Throws ConfigError where one of them does not exist.
  [[nodiscard]] static DataCatalog confined(const std::filesystem::path& data_folder, const std::vector<std::filesystem::path>& also = {},
                                            const MemoryLimit& memory = {});

  [[nodiscard]] const std::vector<std::filesystem::path>& folders() const { return folders_; }
  [[nodiscard]] const MemoryLimit& memory() const { return memory_; }
  // Throws ConfigError with the places looked at and the nearest known name.
  [[nodiscard]] DataLocation find(const std::string& name) const;
  // Finds what a path of the scenario names, of a file or of a folder that holds a data set: beside the scenario file, whose folder is
  // `folder`, in the working folder, then as find() does. Throws ConfigError with all places.
  [[nodiscard]] DataLocation find_path(const std::string& path, const std::filesystem::path& folder) const;
  // Returns the place of another file that a scenario names: an empty path as it is; else where find_path() looks. Throws ConfigError about
  // `key` with all places.
  [[nodiscard]] std::string find_input(const std::string& key, const std::string& path, const std::filesystem::path& folder) const;
  // Throws ConfigError where a confined catalog would be left by a link among the files of a folder.
  void require_links_inside(const std::filesystem::path& folder) const;
  // Returns the file of that name, or nothing if there is none.
  [[nodiscard]] std::optional<DataLocation> try_find(const std::string& name) const;
  [[nodiscard]] std::optional<DataLocation> find_test(const DataLocation& train) const;

  [[nodiscard]] std::vector<DataListing> list() const;
  [[nodiscard]] std::vector<DataListing> verify() const;

 private:
  DataCatalog(const MemoryLimit& memory, bool is_confined) : memory_(memory), is_confined_(is_confined) {}
  void add_data_folders(const std::filesystem::path& data_folder);
  [[nodiscard]] std::optional<std::filesystem::path> find_folder(const std::string& name) const;
  [[nodiscard]] std::vector<std::filesystem::path> places_of(const std::string& path, const std::filesystem::path& folder) const;
  [[nodiscard]] std::vector<std::filesystem::path> places_of_name(const std::string& name) const;
  [[nodiscard]] bool may_read(const std::filesystem::path& place) const;
  [[nodiscard]] std::optional<std::filesystem::path> find_file(const std::filesystem::path& place) const;
  [[nodiscard]] std::string text_of_confinement(const std::vector<std::filesystem::path>& places) const;

  std::vector<std::filesystem::path> folders_;  // in the order of search
  MemoryLimit memory_;
  bool is_confined_ = false;
  std::vector<std::filesystem::path> roots_;  // of a confined catalog, without links: what lies below them may be read
};

// Reads what was found, as LIBSVM text.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_data(const DataLocation& location, const LibsvmFormat& format);

}  // namespace fl
