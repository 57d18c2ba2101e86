// What a sweep leaves to be found out before it runs: the best value of a key for every combination, and the threshold at which a
// compressor sends as many bits as another.
//
// Everything is found on tuning seeds, which the study itself does not use, and judged by the training objective at the end, never by the
// test set. Every combination gets the same values and the same seeds. A matched combination is matched anew for each value that is
// tried, because how much passes a threshold depends on the step size.
//
// Bits are matched by bisection in the logarithm of the option until the totals sent upwards, means over the tuning seeds, agree within
// 2%. The runs are ordinary runs: they are kept in a store of their own, so an interrupted tuning goes on where it was, and can be looked
// at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/state_pager.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/sweep.hpp"

namespace fl {

inline constexpr double kMatchTolerance = 0.02;         // of the reference's bits
inline constexpr std::uint64_t kTuningSeeds = 1000000;  // steps from a study's first seed to its first tuning seed

struct TunedOption {
  std::vector<std::pair<std::string, std::string>> axis_labels;
  std::string option;      // "local.learning_rate", "compressor.up.threshold"
  Value value;             // the one that was found
  double measure = 0;      // mean over tuning seeds with it; infinite where a run diverged
  double bits = 0;         // sent upwards, mean
  double target_bits = 0;  // of the reference; 0 where nothing was to be matched
  bool at_edge = false;    // the best value is the least or the greatest that was tried: the grid may be too narrow
};

struct TuningMachine {
  int workers = 1;
  int threads = 1;                 // of each run
  std::uint64_t memory_bytes = 0;  // that all workers may take; 0 = no limit
  std::filesystem::path store;     // folder of the tuning runs
  StatePaging paging{};            // of each run
  std::function<void(const std::string&)> note;
  std::function<int()> signal;
};

// Sets what was found in `cells` and tells it. Nothing happens where nothing is to be tuned. Throws ConfigError when bits cannot be matched
// or no value works. Where a signal came nothing is set or told. No thread may exist.
FL_API std::vector<TunedOption> tune_cells(std::vector<Cell>& cells, const DataCatalog& catalog, const TuningMachine& machine);

// Sets in `cells` what earlier tuning runs in `store` had found, and tells it. Nothing runs or is written; where runs are missing nothing
// is set, and the answer is empty.
FL_API std::vector<TunedOption> recall_tuning(std::vector<Cell>& cells, const std::filesystem::path& store);

inline constexpr int kExpectedSteps = 8;  // of a bisection, when tuning is planned: two or three until both sides are known, and then
                                          // halves of a factor of ten in the threshold until 2% of the bits

// How many runs tuning is expected to have for the combination that begins at `cell`.
struct TuningEffort {
  std::size_t cell = 0;
  double runs = 0;
};
[[nodiscard]] FL_API std::vector<TuningEffort> expected_tuning(const std::vector<Cell>& cells);

}  // namespace fl
