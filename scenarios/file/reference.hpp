// docs/scenario-reference.md, written from the descriptions that also read and check scenario files.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Markdown: every table of a scenario file, every registered part, and for each key its type, default, constraint, unit and meaning.
[[nodiscard]] FL_API std::string scenario_reference();

}  // namespace fl
