// Numbers as people read them.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns four significant digits: "0.3184", "1.23e-09"; "-" for NaN.
[[nodiscard]] FL_API std::string short_text(double value);

// Returns bits with a decimal prefix and four significant digits: "976 bit", "1.234 Mbit"; "-" for NaN.
[[nodiscard]] FL_API std::string human_bits(double bits);

}  // namespace fl
