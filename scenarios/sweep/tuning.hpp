// What a sweep leaves to be found out before it runs: the best values of keys for every combination, the threshold at which a compressor
// sends as many bits as another, and the budget of bits that runs go on to.
//
// Everything is found on tuning seeds, which the study itself does not use, and judged by the training objective, never by the test set.
// Every combination gets the same values and the same seeds. A candidate stands for the mean over the seeds of its end points
// (scenarios/results/end_point.hpp): the mean of the measure over the last fifth of a budget B,
//   at = "bits"    B bits, those that the method `budget_of` sends in the scenario's rounds with the file's own values, the mean over the
//                  tuning seeds; a candidate runs until it has sent B, or for kMostRounds times the rounds, and is judged where it ended
//   at = "rounds"  the scenario's rounds
// A candidate that diverges or fails on one of the seeds is infinitely bad.
//
// A grid whose best value lies at an end goes on there, at most kMostExtensions times (scenarios/sweep/tuning_grid.hpp). The matched option
// is searched anew for each candidate, because how much passes a threshold depends on the step size; bits are matched in the scenario's
// rounds (scenarios/file/bit_search.hpp).
//
// The runs are ordinary runs: they are kept in a store of their own, so an interrupted tuning goes on where it was, and can be looked at.
// Their scenarios differ from the study's in the seeds, the values that are tried, and for a budget in `rounds` and [stop].
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/state/state_pager.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/file/bit_search.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

inline constexpr std::uint64_t kTuningSeeds = 1000000;  // steps from a study's first seed to its first tuning seed
inline constexpr int kMostExtensions = 4;

// A value that was found for one combination.
struct TunedOption {
  AxisLabels axis_labels;
  std::string option;  // "local.learning_rate", "compressor.up.threshold"
  Value value;
  std::size_t candidates = 1;   // that were compared, the same for all keys of a combination
  double measure = 0;           // mean of the end points with it
  std::size_t evaluations = 0;  // in the shortest end point of the best candidate; 0 where nothing was compared
  bool at_edge = false;         // the best value is the least or the greatest of an extended grid: a better one may lie outside
  std::string note{};           // why the grid ended at this value; "" where the value lies inside
  double bits = 0;              // sent upwards in the scenario's rounds, or with a budget until it is reached; the mean
  double target_bits = 0;       // of the reference; 0 where nothing was to be matched
  MatchedBits match{};          // where something was
  double budget_bits = 0;       // at which candidates were compared; 0 for rounds
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

// Sets what was found in `cells` and tells it. Nothing happens where nothing is to be tuned. Throws ConfigError when a reference sends no
// bits or no value works. If a signal arrives, nothing is set or told. Call before starting any thread (the function forks).
FL_API std::vector<TunedOption> tune_cells(std::vector<Cell>& cells, const DataCatalog& catalog, const TuningMachine& machine);

// Sets in `cells` what earlier tuning runs in `store` had found, and tells it. Nothing runs or is written; where runs are missing nothing
// is set, and the answer is empty.
FL_API std::vector<TunedOption> recall_tuning(std::vector<Cell>& cells, const std::filesystem::path& store);

inline constexpr int kExpectedSteps = 8;  // of a bisection, when tuning is planned: two or three until both sides are known, and then
                                          // halves of a factor of ten in the threshold until 2% of the bits

// How many runs tuning is expected to have for the combination that begins at `cell`, if no grid is extended.
struct TuningEffort {
  std::size_t cell = 0;
  std::size_t candidates = 1;
  double runs = 0;         // of the scenario's rounds
  double budget_runs = 0;  // that end at the budget
};
[[nodiscard]] FL_API std::vector<TuningEffort> expected_tuning(const std::vector<Cell>& cells);

}  // namespace fl
