// Other defaults for a part's options than its own: for tools that try parts out.
#pragma once

#include <string>

#include "fl_core/config/options.hpp"

namespace fl {

// From now on Registry::default_options() gives these. For one thread, before any part is made. Throws ConfigError where there is no such
// part.
FL_API void set_default_options(const std::string& role, const std::string& name, Options defaults);

}  // namespace fl
