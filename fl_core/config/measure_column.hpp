// One column of rounds.csv that a measure fills, with its description for tables, pages and reports.
//
// A store keeps the description with the numbers, so that a program without the measure's plug-in can read and show them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

struct MeasureColumn {
  enum class Type { real, count };         // count: an integer from 0 to 2^53
  enum class Better { lower, higher };     // direction in which the measure improves
  enum class Shown { plain, share, gap };  // share: in [0, 1], compared in percentage points; gap: >= 0, on a logarithmic axis
  std::string name{};                      // a-z, 0-9 and _; starts with a letter
  std::string unit{};                      // "loss", "bits"; "" = dimensionless
  std::string definition{};                // one line
  std::string empty = "not due";           // reason shown when a row has no value
  std::string title{};                     // for the report's menu and axes; "" = the name
  Type type = Type::real;
  Better better = Better::lower;
  Shown shown = Shown::plain;
  bool is_compared = true;  // in a report that names no measures
  bool operator==(const MeasureColumn&) const = default;
};

[[nodiscard]] constexpr const char* to_string(MeasureColumn::Type type) { return type == MeasureColumn::Type::count ? "count" : "real"; }
[[nodiscard]] constexpr const char* to_string(MeasureColumn::Better better) {
  return better == MeasureColumn::Better::higher ? "higher" : "lower";
}
[[nodiscard]] constexpr const char* to_string(MeasureColumn::Shown shown) {
  return shown == MeasureColumn::Shown::share ? "share" : shown == MeasureColumn::Shown::gap ? "gap" : "plain";
}

inline constexpr std::size_t kMostMeasureColumns = 256;  // per run, in addition to the columns of every run
inline constexpr std::size_t kLongestColumnName = 64;    // characters
inline constexpr std::size_t kLongestColumnText = 1000;  // characters of a unit, a definition or a title

// Returns the fault of a column (an invalid name, or a text that has control characters or is too long), or "".
[[nodiscard]] FL_API std::string fault_of(const MeasureColumn& column);

// Returns the index of the column `name`, or the number of columns if there is none.
[[nodiscard]] FL_API std::size_t place_of(std::span<const MeasureColumn> columns, std::string_view name);

}  // namespace fl
