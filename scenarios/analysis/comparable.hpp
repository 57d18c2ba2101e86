// Groups the runs of a store by study. Runs of one study may be compared; their resolved scenarios agree in everything except
//
//   - the tables and values that the axes of the sweep set;
//   - the four seeds, if their distances from each other are equal, and the test rows that each run's own seed draws;
//   - values that tuning found for their cell (constants "tuning_candidates:KEY"), and a budget of bits (constant "budget_bits").
//
// A store may hold several studies: another number of rounds or another step size makes another study. A cell is the set of runs with one
// combination of labels; within a study its scenarios differ only in their seeds. Two different values under one label of an axis become
// two labels, "hard (threshold = 0.1)". If values were tuned more than once, the cell keeps those of its newest run.
// docs/decisions/0015-what-makes-two-runs-comparable.md gives the reasons.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct ComparableRuns {
  std::string name{};                // the difference from the other studies, "rounds = 20", or the scenario's name if that is enough
  std::vector<RunRecord> records{};  // in the order of the store
  std::vector<std::string> notes{};  // about labels that were split and runs that were left out
};

// Returns the studies, ordered by decreasing number of runs and, for equal numbers, with the newest run first. With `names_are_an_axis`
// runs of different names form one study even if they differ otherwise, so that scenario files can be compared with each other.
[[nodiscard]] FL_API std::vector<ComparableRuns> comparable_runs(std::vector<RunRecord> records, bool names_are_an_axis = false);

}  // namespace fl
