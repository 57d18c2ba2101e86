// Handles damaged runs of a store: they are left out of all computations and outputs, and each is reported once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"

namespace fl {

// Returns the summaries of the runs that are whole and not in `damaged`. Adds newly found damaged runs to `damaged`.
[[nodiscard]] std::vector<RunRecord> list_whole(const RunStore& store, std::vector<DamagedRun>& damaged);
// Returns the rounds of a run. If they are damaged, returns nothing and adds the run to `damaged`.
[[nodiscard]] std::optional<std::vector<RoundRow>> whole_rows(const RunStore& store, const std::string& run,
                                                              std::vector<DamagedRun>& damaged);

// Reports damaged runs on stderr with advice. Returns the exit code: 1 if any run is damaged.
int tell_damaged(const std::string& store, const std::vector<DamagedRun>& damaged);
// Reports that a store was damaged as a whole when it was opened for writing, and how it was repaired.
void tell_rescue(const RunStore& store);

}  // namespace fl
