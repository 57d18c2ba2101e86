// Formats texts and numbers as JSON for exports and logs.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

[[nodiscard]] FL_API std::string json_text(const std::string& text);  // quoted
[[nodiscard]] FL_API std::string json_number(double value);           // null for NaN; 1e999, which parses as infinity, for infinity

}  // namespace fl
