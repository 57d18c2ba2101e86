// From a configuration tree to a Scenario, with every problem of the tree at once.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/file/sections.hpp"

namespace fl {

// The scenario that `root` describes. What is wrong is added to `problems`; the result is usable only when nothing was.
[[nodiscard]] Scenario read_scenario(const Node& root, ProblemList& problems);

// Returns the paths of all keys that the scenario's tables and parts have, such as "local.learning_rate".
[[nodiscard]] std::vector<std::string> keys_of(const Scenario& scenario);

// Returns the type of a key, as the reference names it ("number", "integer", "number or rule", ...); nothing for a key that the scenario
// does not have. The path may lead into a part that an option names ("compressor.up.shift.levels").
[[nodiscard]] std::optional<std::string> type_of_key(const Scenario& scenario, const std::string& path);

// Throws Error when a part has an option named like a key of its section: a mistake in the part, not in a scenario.
void check_no_shared_keys(const Part& part, Section& section);

// Reads the tables `changed` of the tree into a scenario that was read from a tree with the same keys, whose values differed in these
// tables alone.
void read_tables(const Node& root, const std::set<std::string>& changed, Scenario& scenario, ProblemList& problems);

}  // namespace fl
