// Options of parts that are set beside any scenario, as `fedbits check --set k=5` does.
#pragma once

#include <string>
#include <vector>

#include "scenarios/plugins/plugins.hpp"

namespace fl {

// Makes "option=value" the default of every one of these parts that has the option, until the process ends. Throws ConfigError, with all
// problems, for an option that none of them has and for values that one of them refuses.
FL_API void set_defaults(const std::vector<PartName>& parts, const std::vector<std::string>& settings);

}  // namespace fl
