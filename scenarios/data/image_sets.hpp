// Sets of IDX files in a folder under their publishers' names, training and test set together: MNIST, Fashion-MNIST (train-..., t10k-...),
// EMNIST (emnist-KIND-train-..., emnist-KIND-test-...).
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/data/load.hpp"

namespace fl {

// Throws DataError: a file that belongs to the set is missing, or damaged.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_image_set(const std::filesystem::path& folder, const FileDataOptions& options);

}  // namespace fl
