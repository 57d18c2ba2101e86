// Data sets that are folders of files under their publishers' names, training and test set together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "scenarios/data/load.hpp"

namespace fl {

// Whether a folder holds such a set: *train-images-idx3-ubyte and its labels (IDX).
[[nodiscard]] FL_API bool holds_image_set(const std::filesystem::path& folder);

// Reads it. `rows` > 0 keeps only the first training rows. Throws DataError: a file that belongs to the set is missing, or damaged.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_image_set(const std::filesystem::path& folder, const std::string& name, std::size_t rows,
                                                  bool with_test);

}  // namespace fl
