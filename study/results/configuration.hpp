// Lists the resolved configuration of stored runs as table cells: every key by its dotted path, and all keys as one JSON object.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The value of one key in three forms: JSON, a cell of a CSV file, and the syntax of a scenario file.
struct ConfigurationValue {
  std::string json{}, cell{}, toml{};
};

// Maps dotted paths to the values of a run's resolved scenario. The path of a table in a list contains its number, counted from 1. Empty
// for a record without a scenario.
using Configuration = std::map<std::string, ConfigurationValue>;
[[nodiscard]] FL_API Configuration configuration_of(const RunRecord& run);

// Returns the resolved scenario as one JSON object, with keys in alphabetical order; "" for a record without a scenario.
[[nodiscard]] FL_API std::string configuration_json(const RunRecord& run);

// Returns the keys that are missing in some of the runs or differ between runs, in alphabetical order. Runs without a scenario are ignored.
[[nodiscard]] FL_API std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);

}  // namespace fl
