// Tables in CSV: a header with the columns' names, then one row per line.
//
//   age, "job, held", income           a column whose first cell is a number holds numbers, one feature;
//   39, "clerk, state", <=50K          every other one, and those in `categories`, holds names: a feature of 0 or 1 for each,
//   50, manager, >50K                  in the order of the alphabet
// The label's column is `label_column`, by name or number from 1; the last one unless it is given. Classes are numbered by ascending
// number, or by the alphabet where one of them is none; with labels = "target" they are numbers. A name that the training file does not
// have is a row of zeros in a test file; a label that it does not have is an error. Test columns are found by their names.
#pragma once

#include <filesystem>
#include <optional>

#include "scenarios/data/load.hpp"

namespace fl {

// Throws DataError "file:line:column: ...": another number of cells than the header has, a cell that should be a number; and ConfigError
// for columns that are not there.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_csv(const std::filesystem::path& file, const std::optional<std::filesystem::path>& test,
                                            const FileDataOptions& options);

}  // namespace fl
