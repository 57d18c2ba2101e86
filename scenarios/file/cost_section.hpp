// The table [costs] of a scenario.
#pragma once

#include "scenarios/file/sections.hpp"

namespace fl {

// Returns the table, which fills `costs`. It is refused without the part `devices`; both must outlive it.
[[nodiscard]] Section costs_section(CostOptions& costs, const Part& devices);

}  // namespace fl
