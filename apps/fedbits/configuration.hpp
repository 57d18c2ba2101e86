// The resolved configuration of stored runs as cells of a table: every key by its dotted path, and all of them as one JSON object.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

// The value of one key: as JSON, as a cell of a CSV file, and as a scenario file writes it.
struct ConfigurationValue {
  std::string json{}, cell{}, toml{};
};

// The values of a run's resolved scenario by dotted path. A table within a list has its number, from 1, in the path. Empty for a record
// without a scenario.
using Configuration = std::map<std::string, ConfigurationValue>;
[[nodiscard]] Configuration configuration_of(const RunRecord& run);

// Returns the resolved scenario as one JSON object, keys in the order of the alphabet; "" for a record without a scenario.
[[nodiscard]] std::string configuration_json(const RunRecord& run);

// Returns the keys that some of the runs lack or in which they differ, in the order of the alphabet. Runs without a scenario say nothing.
[[nodiscard]] std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);

}  // namespace fl
