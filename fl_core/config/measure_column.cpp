#include "fl_core/config/measure_column.hpp"

#include <algorithm>

#include "fl_core/config/printable.hpp"

namespace fl {
namespace {

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_name_character(char c) { return is_small_letter(c) || (c >= '0' && c <= '9') || c == '_'; }
bool is_control_character(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string fault_of(const MeasureColumn& column) {
  const std::string& name = column.name;
  if (name.empty()) return "a column has no name";
  const std::string shown = "column \"" + printable(name.substr(0, kLongestColumnName)) + "\"";
  if (name.size() > kLongestColumnName) return shown + "... has a name of more than " + std::to_string(kLongestColumnName) + " characters";
  if (!is_small_letter(name.front()) || !std::ranges::all_of(name, is_name_character))
    return shown + " has a name with other characters than a-z, 0-9 and _ (a letter first)";
  if (column.definition.empty()) return shown + " has no definition, which the documentation prints";
  if (column.empty.empty()) return shown + " does not say when it is empty (\"never\", or a reason)";
  for (const std::string* text : {&column.unit, &column.definition, &column.empty, &column.title}) {
    if (text->size() > kLongestColumnText) return shown + " has a text of more than " + std::to_string(kLongestColumnText) + " characters";
    if (std::ranges::any_of(*text, is_control_character)) return shown + " has a text with control characters";
  }
  return {};
}

std::size_t place_of(std::span<const MeasureColumn> columns, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(columns, name, &MeasureColumn::name) - columns.begin());
}

}  // namespace fl
