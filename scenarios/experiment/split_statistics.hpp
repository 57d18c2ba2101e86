// The splits of a study's cells: the number of rows of each class per client. Nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/data/catalog.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/partitioners/skew.hpp"
#include "scenarios/partitioners/split_file.hpp"

namespace fl {

struct SplitStatistics {
  std::string label;  // values of the axes that affect data and split, such as "partition.alpha = 0.1"; "" = none
  std::uint64_t seed = 0, hash = 0;
  std::vector<std::string> classes;  // [C] names; empty without classes
  std::vector<ClientSkew> clients;   // [n]
  std::string note;                  // Partitioner::note
};

// Returns the distinct splits of the smallest seed, at most `most`, in the order of the cells. Throws ConfigError or DataError.
[[nodiscard]] FL_API std::vector<SplitStatistics> split_statistics(const std::vector<Cell>& cells, const DataCatalog& catalog,
                                                                   std::size_t most);

// Returns the study's split for the smallest seed, in the form of a file. Throws ConfigError if the study has several, or if data cannot be
// read.
[[nodiscard]] FL_API SplitFile only_split(const std::vector<Cell>& cells, const DataCatalog& catalog);

}  // namespace fl
