// The tables of a scenario that speak of simulated time, or of when messages count.
#pragma once

#include "scenarios/file/sections.hpp"

namespace fl {

// Return tables that fill these. All arguments outlive them.
[[nodiscard]] Section devices_section(Part& part, ServerTiming& server);
[[nodiscard]] Section network_section(Part& part, ServerTiming& server);
[[nodiscard]] Section availability_section(Part& part);
[[nodiscard]] Section delivery_section(Part& part);
[[nodiscard]] Section asynchronous_section(Part& part);

}  // namespace fl
