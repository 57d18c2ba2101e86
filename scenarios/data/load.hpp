// The [data] table of a scenario that names a file or a folder: the training set, and the test set that goes with it.
//
//   [data]
//   name = "a9a"          # looked for by the catalog; a9a.t beside it becomes the test set
//   rows = 32000          # optional: the first rows only
// docs/data.md describes the formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "fl_core/config/options.hpp"
#include "fl_core/data/dataset.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/data/format_options.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {

struct FileDataOptions {
  std::string name;                   // of a data set, or a path
  bool is_path = false;               // then it is looked for beside the scenario file first
  std::filesystem::path folder = {};  // the scenario file's
  std::string test = "auto";
  std::int64_t rows = 0;
  std::int64_t features = 0;
  Storage storage = Storage::automatic;
  LabelKind labels = LabelKind::classes;
  FormatOptions formats = {};
  double test_fraction = 0;     // of each client's data, where that has an order in time: the last of it becomes the test set
  std::uint64_t test_seed = 0;  // draws the rows of other data that are held out, where what is read depends on them
  MemoryLimit memory = {};      // load_data takes the catalog's
};

template <class T>
struct LoadedData {
  Dataset<T> train;
  std::optional<Dataset<T>> test;
  std::string train_where, test_where;  // for the log and the results; "" when there is none
  bool is_held_out = false;             // the test set is the test_fraction
  std::size_t num_dropped_roles = 0;    // text by role: roles without the text for one row, or with less than min_text
  std::size_t num_dropped_rows = 0;     // CSV, missing = "drop": rows with a missing value
  std::size_t num_dropped_test_rows = 0;
};

// Throws ConfigError when a file is not found, DataError when it cannot be read or does not fit.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_data(const FileDataOptions& options, const DataCatalog& catalog);

}  // namespace fl
