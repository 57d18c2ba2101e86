// How the rows of a data set lie with the clients: a count per client and class, split anew from the scenario that a run was stored with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/data/catalog.hpp"

namespace fl {

inline constexpr std::size_t kMostPictures = 12;          // in a report
inline constexpr std::size_t kMostPicturedClients = 200;  // the first of them
inline constexpr std::size_t kMostPicturedClasses = 100;

struct SplitPicture {
  std::vector<std::size_t> panels{};               // that have this split
  std::uint64_t seed = 0;                          // whose split it is
  std::size_t num_clients = 0;                     // of the split; `rows` may hold fewer
  std::vector<std::string> classes{};              // [C]
  std::vector<std::vector<std::uint32_t>> rows{};  // [clients][C]
  std::string missing{};                           // why there is no picture: data that are not here, or differ; "" when there is one
};

// One picture per distinct split of the smallest seeds of the panels.
[[nodiscard]] FL_API std::vector<SplitPicture> split_pictures(const Study& study, const DataCatalog& catalog);

}  // namespace fl
