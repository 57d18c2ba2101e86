// NumPy's arrays: a folder with features.npy and labels.npy, and test_features.npy and test_labels.npy where there is a test set.
//
//   features   float32 or float64 [m,D], or more dimensions: images [m,channels,height,width] or [m,height,width]; uint8 images of these
//              shapes stay bytes, all else becomes dense rows
//   labels     [m] or [m,1] of any of these types: whole numbers for classes, which are numbered as they
//              ascend. Integers are exact, 64 bits of them; of floating point, classes go to 2^53 and targets have all that it has
// Types: float32, float64, bool, uint8, int8, uint16, int16, uint32, int32, int64, little-endian, finite. An array in Fortran order is put
// into C order in memory. Source of the format: NumPy enhancement proposal 1, versions 1 to 3.
#pragma once

#include <filesystem>
#include <vector>

#include "scenarios/data/bytes.hpp"
#include "scenarios/data/load.hpp"

namespace fl {

// One array of features and one of labels, as a set holds them. `classes` are the labels of the training set in ascending order; they are
// found where it is empty. Throws as load_npy does.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_npy_pair(DataReader features, DataReader labels, std::size_t rows, const std::string& name,
                                              LabelKind kind, std::vector<std::int64_t>& classes);

// Throws DataError naming the file: no such array, another type or order, truncated, another number of labels than rows.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_npy(const std::filesystem::path& folder, const FileDataOptions& options);

// Returns all numbers of one array of any shape, in their order. Throws DataError as above.
[[nodiscard]] FL_API std::vector<double> read_npy_numbers(const std::filesystem::path& file);
[[nodiscard]] FL_API std::vector<double> npy_numbers(DataReader reader);

}  // namespace fl
