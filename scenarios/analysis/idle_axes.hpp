// Finds labels of an axis that change nothing: a key that another key leaves without effect, or a value that never comes to bear.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/grid.hpp"

namespace fl {

// Returns a sentence for every set of labels of an axis whose runs are the same (replicates.hpp) in pairs: in every combination of the
// other axes that two of the labels have, and for every seed. Runs that are not finished are the same as none.
[[nodiscard]] FL_API std::vector<std::string> idle_axes(const Grid& grid);

}  // namespace fl
