// Damaged runs of a store: they are left out of whatever is computed or written, and named once each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"

namespace fl {

// The summaries of the runs that are whole and not in `damaged`, to which it adds what it finds.
[[nodiscard]] std::vector<RunRecord> list_whole(const RunStore& store, std::vector<DamagedRun>& damaged);
// The rounds of a run, unless they are damaged, which it then adds.
[[nodiscard]] std::optional<std::vector<RoundRow>> whole_rows(const RunStore& store, const std::string& run,
                                                              std::vector<DamagedRun>& damaged);

// Names damaged runs on stderr and says what to do. Returns the exit code: 1 where there are any.
int tell_damaged(const std::string& store, const std::vector<DamagedRun>& damaged);
// Says that a store was damaged as a whole when it was opened for writing, and what became of it.
void tell_rescue(const RunStore& store);

}  // namespace fl
