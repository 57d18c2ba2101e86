// The splits that a study's cells are played on: who holds how many rows of which class. Nothing is run.
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
  std::string label;  // "partition.alpha = 0.1": the axes that data and split depend on; "" = none
  std::uint64_t seed = 0, hash = 0;
  std::vector<std::string> classes;  // [C] their names; empty without classes
  std::vector<ClientSkew> clients;   // [n]
  std::string note;                  // Partitioner::note
};

// The different splits of the smallest seed, in the order of the cells; at most `most`. Throws ConfigError or DataError.
[[nodiscard]] FL_API std::vector<SplitStatistics> split_statistics(const std::vector<Cell>& cells, const DataCatalog& catalog,
                                                                   std::size_t most);

// The study's split as a file holds it, of the smallest seed. Throws ConfigError where the study has several, or data cannot be read.
[[nodiscard]] FL_API SplitFile only_split(const std::vector<Cell>& cells, const DataCatalog& catalog);

}  // namespace fl
