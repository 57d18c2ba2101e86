// Determines values before a sweep runs: the best values of keys for every combination, the threshold at which a compressor sends as many
// bits as another one, and the budget of bits at which runs stop.
//
// All values are found on tuning seeds, which the study itself does not use, and judged by the training objective, never by the test set.
// Every combination tries the same values and the same seeds. The cost of a candidate is the mean over the seeds of its end points
// (scenarios/results/end_point.hpp), which are means of the measure over the last fifth of a budget B:
//   at = "bits"    B bits: the mean over the tuning seeds of the bits that the method `budget_of` sends in the scenario's rounds with the
//                  file's own values. A candidate runs until it has sent B, or for kMostRounds times the rounds, and is judged at its end
//   at = "rounds"  the scenario's rounds
// A candidate that diverges or fails on one of the seeds is infinitely bad.
//   at = "target"  the method `target_of` is tuned at the scenario's rounds; its end point, moved by the margin, is the target of its
//   panel.
//                  Then the candidates of all methods, its own too, run until they measure the target or for kMostRounds times the rounds.
//                  The best has the fewest seeds that never reach it, which are censored: their bits are not known, only that they are more
//                  than were sent. Among equals the geometric mean of the others' bits decides. Where no candidate reaches it on any seed,
//                  the one that ends nearest to it is taken
//
// If the best value of a grid lies at an end, the grid is extended there, at most kMostExtensions times (scenarios/sweep/tuning_grid.hpp).
// The matched option is searched again for each candidate, because the step size affects how many entries pass a threshold. Bits are
// matched in the scenario's rounds (scenarios/file/bit_search.hpp).
//
// Tuning runs are ordinary runs. They have their own store, so an interrupted tuning can continue and its runs can be examined. Their
// scenarios differ from the study's in the seeds, the tried values and, for a budget, in `rounds` and [stop]. They measure nothing on the
// test set, which takes longer than the training rows where it is the larger one, unless stop.accuracy asks for it.
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
#include "scenarios/sweep/sweep_runner.hpp"

namespace fl {

inline constexpr std::uint64_t kTuningSeeds = 1000000;  // steps from a study's first seed to its first tuning seed
inline constexpr int kMostExtensions = 4;

// A value that tuning found for one combination.
struct TunedOption {
  AxisLabels axis_labels;
  std::string option;  // "local.learning_rate", "compressor.up.threshold"
  Value value;
  std::size_t candidates = 1;    // number of compared candidates, the same for all keys of a combination
  std::vector<Value> tried{};    // values of this key; none if bits were matched
  double measure = 0;            // mean of the end points with this value
  std::size_t evaluations = 0;   // in the shortest end point of the best candidate; 0 if nothing was compared
  bool at_edge = false;          // the best value is the smallest or largest of an extended grid: a better one may lie outside
  std::string note{};            // reason why the grid ended at this value; "" if the value lies inside
  double bits = 0;               // mean uplink bits in the scenario's rounds, or until the budget is reached
  double target_bits = 0;        // bits of the reference; 0 if nothing was matched
  MatchedBits match{};           // result of the match, if bits were matched
  double budget_bits = 0;        // budget at which candidates were compared; 0 for rounds
  double target = kNotMeasured;  // level that candidates had to reach; NaN without a target. `bits` are then those at which they did
  std::size_t missed = 0;        // tuning seeds on which the best candidate never reached it
};

// Follows the runs of tuning, which come in batches.
class TuningObserver {
 public:
  virtual ~TuningObserver() = default;
  // A batch begins. `purpose` says what it looks for: "comparing candidates". Returns what is to be told of it.
  [[nodiscard]] virtual SweepEvents begin(const std::string& purpose, const std::vector<Cell>& runs,
                                          const std::vector<std::size_t>& pending, int workers) = 0;
  virtual void end() = 0;
};

struct TuningMachine {
  int workers = 1;
  Workers kind = Workers::processes;
  int threads = 1;                 // threads of each run
  std::uint64_t memory_bytes = 0;  // total for all workers; 0 = no limit
  std::filesystem::path store;     // folder of the tuning runs
  StatePaging paging{};            // paging of each run
  std::function<void(const std::string&)> note;
  StopToken stop{};
  TuningObserver* observer = nullptr;  // may be null
};

// Tunes `cells`, sets the found values in them and returns these values. Does nothing if no key is tuned. Throws ConfigError if a reference
// sends no bits or no value works. If it is asked to stop, nothing is set or returned. Workers that are processes are forked: no thread may
// exist then.
FL_API std::vector<TunedOption> tune_cells(std::vector<Cell>& cells, const DataCatalog& catalog, const TuningMachine& machine);

// Sets the values that earlier tuning runs in `store` found in `cells` and returns them. Nothing runs and nothing is written. If runs are
// missing, nothing is set and the result is empty.
FL_API std::vector<TunedOption> recall_tuning(std::vector<Cell>& cells, const std::filesystem::path& store);

// Returns a line for every key that has one value alone, or whose grid cannot be extended at an end that is no bound of the option: where
// the best value lies there, a better one outside is not looked for.
[[nodiscard]] FL_API std::vector<std::string> grids_that_end(const std::vector<Cell>& cells);

inline constexpr int kExpectedSteps = 8;  // expected steps of a bisection, when tuning is planned: two or three until both sides are
                                          // known, and then halves of a factor of ten in the threshold until 2% of the bits

// The expected number of tuning runs for the combination that begins at `cell`, if no grid is extended.
struct TuningEffort {
  std::size_t cell = 0;
  std::size_t candidates = 1;
  double runs = 0;         // runs of the scenario's rounds
  double budget_runs = 0;  // runs that end at the budget
};
[[nodiscard]] FL_API std::vector<TuningEffort> expected_tuning(const std::vector<Cell>& cells);

}  // namespace fl
