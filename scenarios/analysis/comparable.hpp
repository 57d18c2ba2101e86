// Which runs of a store may be compared: those of one study, whose resolved scenarios agree in everything but
//
//   - the tables and values that the axes of the sweep set;
//   - the seeds, while the four of them keep their distances; and the test rows that a seed draws by itself;
//   - values that tuning found for their cell (constants "tuning_candidates:KEY"), and a budget of bits (constant "budget_bits").
//
// A store may hold several studies: another number of rounds or another step size makes another one. Within a study a cell, the runs with
// one combination of labels, holds scenarios that differ in their seeds alone. Two different values under one label of an axis become two
// labels, "hard (threshold = 0.1)"; of values that were tuned more than once the cell keeps those of its newest run.
// docs/decisions/0015-what-makes-two-runs-comparable.md says why.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct ComparableRuns {
  std::string name{};                // what differs from the other studies, "rounds = 20"; the scenario's name where that tells
  std::vector<RunRecord> records{};  // in the order of the store
  std::vector<std::string> notes{};  // about labels that were told apart and runs that were left out
};

// Returns the studies, the one with the most runs first and of equal ones the one with the newest run. With `names_are_an_axis` runs of
// different names are one study, whatever else differs: scenario files are compared with each other.
[[nodiscard]] FL_API std::vector<ComparableRuns> comparable_runs(std::vector<RunRecord> records, bool names_are_an_axis = false);

}  // namespace fl
