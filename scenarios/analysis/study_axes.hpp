// Chooses the axis of a sweep that is the method and the axis that is the level of heterogeneity.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "scenarios/analysis/grid.hpp"
#include "scenarios/analysis/study.hpp"

namespace fl {

// Returns "'a', 'b'", for errors.
[[nodiscard]] std::string quoted_list(const std::vector<std::string>& names);

// Splits "a,b" into a, b.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::string& text);

// Sets the study's keys of the method and the level. If the method has several axes, they become one axis of the grid. Unknown names are
// problems.
void choose_axes(Study& study, Grid& grid, const StudyOptions& options, Problems& problems);

}  // namespace fl
