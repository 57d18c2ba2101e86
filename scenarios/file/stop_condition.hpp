// A condition of [stop] on a column of the scenario's measures: "update_cosine >= 0.9".
#pragma once

#include <optional>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

struct StopCondition {
  std::string column;
  bool is_at_least = false;  // else at most
  double bound = 0;
  // A value that is not measured meets nothing.
  [[nodiscard]] bool is_met(double value) const { return is_at_least ? value >= bound : value <= bound; }
};

// Returns the condition, or nothing unless the text is a name, ">=" or "<=", and a finite number.
[[nodiscard]] FL_API std::optional<StopCondition> parse_stop_condition(const std::string& text);

}  // namespace fl
