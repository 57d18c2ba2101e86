// Computes the distribution of a data set's rows over clients: a count per client and class. The split is recomputed from the stored
// scenario of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/data/catalog.hpp"

namespace fl {

inline constexpr std::size_t kMostPictures = 12;          // per report
inline constexpr std::size_t kMostPicturedClients = 200;  // the first clients of the split
inline constexpr std::size_t kMostPicturedClasses = 100;

struct SplitPicture {
  std::vector<std::size_t> panels{};               // panels with this split
  std::uint64_t seed = 0;                          // seed of the split
  std::size_t num_clients = 0;                     // clients of the split; `rows` may hold fewer
  std::vector<std::string> classes{};              // [C]
  std::vector<std::vector<std::uint32_t>> rows{};  // [clients][C]
  std::string missing{};                           // reason why there is no picture (data missing or changed); "" if there is one
};

// Returns one picture per distinct split of the smallest seeds of the panels.
[[nodiscard]] FL_API std::vector<SplitPicture> split_pictures(const Study& study, const DataCatalog& catalog);

}  // namespace fl
