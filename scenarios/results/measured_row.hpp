// Distinguishes rounds that were measured from rounds that only have counts of sent data.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Columns that every round has. They count the sent data.
inline constexpr std::array<std::string_view, 4> kCountedColumns = {"bits_up_published", "bits_up_entropy", "density", "residual_age"};

// Returns true if any column other than the counts has a value.
[[nodiscard]] inline bool is_measured(const RoundRow& row) {
  return std::ranges::any_of(kRoundColumns, [&row](const RoundColumn& column) {
    const auto* member = std::get_if<double RoundRow::*>(&column.member);
    return member != nullptr && !std::isnan(row.**member) && std::ranges::find(kCountedColumns, column.name) == kCountedColumns.end();
  });
}

}  // namespace fl
