// Which parts `fedbits check` checks, and with which checks.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/plugins/plugins.hpp"

namespace fl {

struct CheckArguments {
  std::vector<std::string> names, settings, plugins, only;
};

// Returns the named parts, or by default the parts of the plug-ins. Throws ConfigError with the nearest name for an unknown part, and if
// there is nothing to check.
[[nodiscard]] FL_API std::vector<PartName> parts_to_check(const CheckArguments& arguments, const std::vector<Plugin>& plugins);

// Throws ConfigError with the nearest name if `only` names a check that none of the parts has.
FL_API void require_known_checks(const std::vector<std::string>& only, const std::vector<PartName>& parts);

// Throws ConfigError if parts have a role without checks, so that they do not appear to have passed.
FL_API void require_checks(const std::vector<PartName>& parts);

}  // namespace fl
