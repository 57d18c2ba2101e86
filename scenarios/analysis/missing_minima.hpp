// Tells of runs that have no f_gap because no minimum of f was found.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// Returns a sentence about the runs whose f is convex and has no known minimum (clients/learning/optimum.hpp), "" if there are none.
[[nodiscard]] FL_API std::string missing_minima(const std::vector<RunRecord>& records);

}  // namespace fl
