#include "scenarios/file/stop_condition.hpp"

#include <charconv>
#include <cmath>

namespace fl {
namespace {

std::string without_spaces_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

std::optional<StopCondition> parse_stop_condition(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos || sign + 1 >= text.size() || text[sign + 1] != '=') return std::nullopt;
  StopCondition condition{.column = without_spaces_around(text.substr(0, sign)), .is_at_least = text[sign] == '>'};
  const std::string number = without_spaces_around(text.substr(sign + 2));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), condition.bound);
  const bool is_number = error == std::errc{} && end == number.data() + number.size() && std::isfinite(condition.bound);
  if (condition.column.empty() || !is_number) return std::nullopt;
  return condition;
}

}  // namespace fl
