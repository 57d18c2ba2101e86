// The share of this machine that the runs of a study may use.
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/sweep/sweep_runner.hpp"

namespace fl {

// The numbers of runs and threads, and the memory.
struct MachineShare {
  int jobs = 1, threads = 1;
  Workers workers = Workers::processes;
  std::uint64_t memory_bytes = 0;  // for all runs; 0 = no limit
  MemoryLimit data_memory = {};    // for one data set
  StatePaging paging{};            // of each run
};

// Returns the number of parallel runs. If `asked` is 0, returns as many as the cores allow with `threads` threads each.
[[nodiscard]] FL_API int jobs_for(int asked, int threads);

// Reads the bound on the memory for the clients' state of a run, such as "2G"; "" = no bound. What does not fit is kept in `folder`. Throws
// ConfigError.
[[nodiscard]] FL_API StatePaging paging_of(const std::string& memory, const std::string& folder);

}  // namespace fl
