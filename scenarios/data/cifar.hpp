// CIFAR-10 and CIFAR-100 in their binary form: images {3,32,32}, red, green and blue plane after one another.
//
//   CIFAR-10    data_batch_1.bin .. data_batch_5.bin, test_batch.bin: records of 1 label and 3072 bytes
//   CIFAR-100   train.bin, test.bin: records of a coarse label, a fine label and 3072 bytes
// Batches of CIFAR-10 that are not there are left out as long as those before the last one are complete. Names of classes come from
// batches.meta.txt, fine_label_names.txt and coarse_label_names.txt, where they are.
// Source: A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009; https://www.cs.toronto.edu/~kriz/cifar.html
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/data/bytes.hpp"
#include "scenarios/data/load.hpp"

namespace fl {

// The labels at the beginning of a record, and the one that is used. CIFAR-10 unless set.
struct CifarRecords {
  std::size_t num_labels = 1, which = 0, num_classes = 10;
  std::string names_file = "batches.meta.txt";
  [[nodiscard]] std::size_t bytes() const { return num_labels + 3 * 32 * 32; }
};

// Reads the records of files in their order; `rows` > 0 keeps only the first, which must be there. Throws DataError: no whole number of
// records, a label beyond its classes with the record's number, a packed file of more than 50,000 records.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_cifar(std::vector<DataReader> files, const CifarRecords& records, std::size_t rows,
                                           const std::string& name);

// label_column of CIFAR-100: "fine" (also "") or "coarse". Throws DataError: no whole number of records, a label beyond, a batch that is
// missing between others; ConfigError for another label_column.
template <class T>
[[nodiscard]] FL_API LoadedData<T> load_cifar(const std::filesystem::path& folder, const FileDataOptions& options);

}  // namespace fl
