// Differences between a part and the publication that it is named after, one sentence each. `fedbits list` and the scenario reference
// print them.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

struct Difference {
  std::string role, name;
  std::string text;  // what the source does, and what fedbits does instead
};

// Registers a difference. The file of the part calls it before main, once for each device that the file is compiled for. Throws Error if
// the part already has another one.
FL_API bool add_difference(const Difference& difference);
// Returns the text of a part, or "" if no difference is known.
[[nodiscard]] FL_API std::string difference_of(const std::string& role, const std::string& name);

}  // namespace fl
