// LIBSVM text: one row per line, `label index:value index:value ...`, indices from 1 and ascending, absent entries 0.
//
// Labels may be any whole numbers of 64 bits ({0,1}, {1,2}, {-1,1}, many), exactly: class numbers 0 .. C-1 follow the ascending labels, so
// class 1 of two is the larger one. Rows are kept dense [m,D] or as CSR. `#` starts a comment that ends with its line; blank lines are
// skipped. A line that cannot be read throws DataError: `file:line:column: what is wrong`. Source of the format: C.-C. Chang and C.-J. Lin,
// "LIBSVM: a library for support vector machines", ACM TIST, 2011.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {

enum class Storage { automatic, dense, sparse };
enum class LabelKind { classes, target };

struct LibsvmFormat {
  Storage storage = Storage::automatic;  // automatic: dense when more than a quarter of all entries is not zero
  LabelKind labels = LabelKind::classes;
  std::size_t num_features = 0;               // D; 0: the largest index of the whole file. An index beyond a given D is an error.
  std::size_t num_rows = 0;                   // rows to keep from the front; 0: all. Features and classes are the whole file's.
  std::vector<std::string> class_names = {};  // the training set's; a label that is not among them is an error. Empty: found in the file.
  MemoryLimit memory = {};
};

// Reads a file, plain or gzip. `name` becomes Dataset::name.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_libsvm(const std::filesystem::path& file, const std::string& name, const LibsvmFormat& format = {});

// Reads text in memory; errors call it `file_name`.
template <class T>
[[nodiscard]] FL_API Dataset<T> parse_libsvm(std::string_view text, const std::string& file_name, const LibsvmFormat& format = {});

// Returns the format with which a test set fits its training set: the same features, classes and storage.
template <class T>
[[nodiscard]] FL_API LibsvmFormat format_like(const Dataset<T>& train);

// Throws DataError unless rows of at least two classes are there.
template <class T>
FL_API void validate_for_classification(const Dataset<T>& data);

}  // namespace fl
