// The resolved scenario of a stored run as a tree of values, for tables and programs that are no scenario reader.
#pragma once

#include <string>

#include "fl_core/config/options.hpp"

namespace fl {

// Returns the text, one that fedbits stored, as a table of values and tables, keys in the order of the alphabet. Unlike the reader of
// scenarios it takes every key as it stands, so that scenarios of other versions and of plug-ins can be shown. Throws ConfigError for a
// text that is not TOML.
[[nodiscard]] FL_API Value stored_scenario(const std::string& resolved_toml, const std::string& source);

}  // namespace fl
