// Replaces the default options of a part, for tools that compare parts.
#pragma once

#include <string>

#include "fl_core/config/options.hpp"

namespace fl {

// Makes Registry::default_options() return `defaults` from now on, in all threads. Parts that exist already keep theirs. Throws
// ConfigError for an unknown part.
FL_API void set_default_options(const std::string& role, const std::string& name, Options defaults);

}  // namespace fl
