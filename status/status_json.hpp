// JSON as the page of `--status` and the lines between processes have it.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace fl::net {

using Json = nlohmann::ordered_json;

// Returns a number. Infinity is a text, as in the data of the report, and NaN is null.
inline Json json_number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// Returns the text, in one line. What is no UTF-8 is replaced.
inline std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace fl::net
