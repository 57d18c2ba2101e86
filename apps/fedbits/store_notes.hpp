// Tells about a store and a study on stderr: damaged runs, how a store was repaired, options that depart from its analysis plan, written
// files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "study/results/planned_options.hpp"

namespace fl {

// Reports damaged runs with advice. Returns the exit code: 1 if any run is damaged.
int tell_damaged(const std::string& store, const std::vector<DamagedRun>& damaged);
// Reports that a store was damaged as a whole when it was opened for writing, and how it was repaired.
void tell_rescue(const RunStore& store);
void tell_departures(const PlannedOptions& options);
// Prints "WHAT written to A and B" on stderr, so that standard output contains only the table. Omits empty paths, pipes and everything
// below /dev, such as /dev/stdout; prints nothing if no path is left.
void tell_written(const std::string& what, const std::vector<std::filesystem::path>& paths);

}  // namespace fl
