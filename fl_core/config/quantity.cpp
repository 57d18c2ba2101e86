#include "fl_core/config/quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace fl {

QuantityUnits decimal_units() {
  static constexpr std::array<QuantityUnit, 5> units = {{{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
  return units;
}

QuantityUnits binary_units() {
  static constexpr std::array<QuantityUnit, 5> units = {{{"", 1}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}}};
  return units;
}

QuantityUnits time_units() {
  static constexpr std::array<QuantityUnit, 3> units = {{{"s", 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}}};
  return units;
}

QuantityUnits no_units() {
  static constexpr std::array<QuantityUnit, 1> units = {{{"", 1}}};
  return units;
}

std::optional<double> read_quantity(std::string_view text, QuantityUnits units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor, divisor] : units)
    if (rest == name) return number * factor / divisor;
  return std::nullopt;
}

std::string unit_names(QuantityUnits units) {
  std::string names;
  for (const auto& [name, factor, divisor] : units)
    if (*name != '\0') names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Field& quantity_field(Schema& schema, std::string name, double& value, QuantityUnits units, std::string doc) {
  const auto set = [&value, units](const Value& given) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&given.data);
    Schema plain;
    if (text == nullptr) return plain.field("number", value, "").assign(given);
    const std::optional<double> number = read_quantity(*text, units);
    if (!number || !std::isfinite(*number))
      return "must be a number, or a text of a number and a unit (" + unit_names(units) + "), is " + to_string(given);
    value = *number;
    return std::nullopt;
  };
  return schema.add(Field(std::move(name), "number or text with a unit", std::move(doc), set, [&value] { return Value{value}; }));
}

}  // namespace fl
