// JSON: texts and numbers as exports and logs write them.
#pragma once

#include <string>

namespace fl {

[[nodiscard]] std::string json_text(const std::string& text);  // quoted
[[nodiscard]] std::string json_number(double value);           // null for NaN; 1e999, which reads as infinity, for infinity

}  // namespace fl
