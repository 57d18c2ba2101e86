// From a configuration tree to a Scenario, with every problem of the tree at once.
#pragma once

#include <string>

#include "scenarios/config_tree.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/sections.hpp"

namespace fl {

// The scenario that `root` describes. What is wrong is added to `problems`; the result is usable only when nothing was.
[[nodiscard]] Scenario read_scenario(const Node& root, ProblemList& problems);

// Throws Error when a part has an option named like a key of its section: a mistake in the part, not in a scenario.
void check_no_shared_keys(const Part& part, Section& section);

}  // namespace fl
