// Refuses data that cannot fit before the machine starts to swap.
#pragma once

#include <string>

#include "fl_core/device.hpp"

namespace fl {

// Throws ConfigError when `bytes` is more than the memory of this machine: "<what> would take X GiB of memory, the machine has Y GiB;
// <way_out>".
FL_API void require_memory(double bytes, const std::string& what, const std::string& way_out);

}  // namespace fl
