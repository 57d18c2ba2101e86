// A plan as one JSON object, with all numbers in seconds, bytes and bits.
#pragma once

#include <iosfwd>
#include <vector>

#include "scenarios/sweep/study_plan.hpp"

namespace fl {

void write_plan(const StudyPlan& plan, const std::vector<Cell>& cells, int jobs, std::ostream& out);

}  // namespace fl
