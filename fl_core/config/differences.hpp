// How a part differs from the publication that it is named after, in one sentence: `fedbits list` and the reference of scenarios print it.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

struct Difference {
  std::string role, name;
  std::string text;  // what the source does, and what is done here
};

// Registers a difference. Called before main by the file of the part, once for each device that the file is compiled for. Throws Error if
// the part has another one already.
FL_API bool add_difference(const Difference& difference);
// Returns the text of a part, "" if nothing is known to differ.
[[nodiscard]] FL_API std::string difference_of(const std::string& role, const std::string& name);

}  // namespace fl
