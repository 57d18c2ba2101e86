// One column of rounds.csv that a measure fills, with what tables, pages and reports say about it.
//
// A store keeps the description beside the numbers, so that a program without the measure's plug-in reads and shows them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

struct MeasureColumn {
  enum class Type { real, count };         // count: a whole number from 0 to 2^53
  enum class Better { lower, higher };     // which of two values is the better one
  enum class Shown { plain, share, gap };  // share: in [0, 1], compared by percentage points; gap: >= 0, on a logarithmic axis
  std::string name{};                      // a-z, 0-9 and _, a letter first
  std::string unit{};                      // "loss", "bits"; "" = a pure number
  std::string definition{};                // one line
  std::string empty = "not due";           // when a row has no value
  std::string title{};                     // in the report's menu and on its axes; "" = the name
  Type type = Type::real;
  Better better = Better::lower;
  Shown shown = Shown::plain;
  bool is_compared = true;  // by a report that names no measures
  bool operator==(const MeasureColumn&) const = default;
};

[[nodiscard]] constexpr const char* to_string(MeasureColumn::Type type) { return type == MeasureColumn::Type::count ? "count" : "real"; }
[[nodiscard]] constexpr const char* to_string(MeasureColumn::Better better) {
  return better == MeasureColumn::Better::higher ? "higher" : "lower";
}
[[nodiscard]] constexpr const char* to_string(MeasureColumn::Shown shown) {
  return shown == MeasureColumn::Shown::share ? "share" : shown == MeasureColumn::Shown::gap ? "gap" : "plain";
}

inline constexpr std::size_t kMostMeasureColumns = 256;  // of one run, beside those that every run has
inline constexpr std::size_t kLongestColumnName = 64;    // characters
inline constexpr std::size_t kLongestColumnText = 1000;  // characters of a unit, a definition or a title

// Returns what is wrong with a column by itself (its name, a text with control characters or without an end), or "".
[[nodiscard]] FL_API std::string fault_of(const MeasureColumn& column);

// Returns the place of the column `name`, or the number of columns.
[[nodiscard]] FL_API std::size_t place_of(std::span<const MeasureColumn> columns, std::string_view name);

}  // namespace fl
