// All problems of one cell, where code that puts a run together stops at its first: what the problem names is mended, and the cell is tried
// again. Problems that the mending itself may have made are left out.
#pragma once

#include <functional>

#include "scenarios/file/scenario.hpp"

namespace fl {

// Sets the keys that the problems name to values that fit every scenario. Returns false if one of them has none, such as a model.
[[nodiscard]] bool mend(Scenario& scenario, const Problems& problems);

// Returns the problems of a scenario: `first`, which are known, and those that `attempt` throws as ConfigError for the mended scenario.
// Problems come in the order in which they were found, each once.
[[nodiscard]] Problems all_problems(const Scenario& scenario, const Problems& first, const std::function<void(const Scenario&)>& attempt);

}  // namespace fl
