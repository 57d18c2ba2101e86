// A plan as one JSON object, with all numbers in seconds, bytes and bits.
#pragma once

#include <iosfwd>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/sweep/study_plan.hpp"

namespace fl {

FL_API void write_plan(const StudyPlan& plan, const std::vector<Cell>& cells, int jobs, std::ostream& out);

}  // namespace fl
