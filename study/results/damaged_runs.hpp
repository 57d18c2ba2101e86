// Damaged runs of a store: they are left out of all computations and outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"

namespace fl {

// Returns the summaries of the runs that are whole and not in `damaged`. Adds newly found damaged runs to `damaged`.
[[nodiscard]] FL_API std::vector<RunRecord> list_whole(const RunStore& store, std::vector<DamagedRun>& damaged);
// Returns the rounds of a run. If they are damaged, returns nothing and adds the run to `damaged`.
[[nodiscard]] FL_API std::optional<std::vector<RoundRow>> whole_rows(const RunStore& store, const std::string& run,
                                                                     std::vector<DamagedRun>& damaged);
// Returns sentences about a store that was damaged as a whole when it was opened for writing, and how it was repaired.
[[nodiscard]] FL_API std::vector<std::string> rescue_notes(const RunStore& store);

}  // namespace fl
