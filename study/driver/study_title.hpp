// The names of runs, for people.
#pragma once

#include <string>
#include <vector>

#include "scenarios/file/sweep.hpp"

namespace fl {

// Returns "name 3/12  alpha=0.1  top-1%".
[[nodiscard]] FL_API std::string title_of(const Cell& cell, std::size_t number, std::size_t count);

// Returns the name of the method whose bits are the budget of tuning or of the study: the labels of the budget's reference that differ from
// those of a cell; if all cells are references, the first label; "" without a budget.
[[nodiscard]] FL_API std::string label_of_budget(const std::vector<Cell>& cells);

}  // namespace fl
