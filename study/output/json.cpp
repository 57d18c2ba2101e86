#include "study/output/json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "study/output/numbers.hpp"

namespace fl {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double value) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  return exact_text(value);
}

}  // namespace fl
