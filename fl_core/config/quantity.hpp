// Quantities as texts with a unit, such as "10M" bit/s or "50ms", for scenarios (quantity_field) and for command lines (read_quantity).
//
//   quantity_field(schema, "latency", o.latency, time_units(), "time of a bit on its way").at_least(0).unit("s");
// takes the number 0.05 and the text "50ms".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fl_core/config/options.hpp"

namespace fl {

struct QuantityUnit {
  const char* name = "";
  double factor = 1, divisor = 1;  // a text is rounded once, to the number that a scenario would write: 10us is 1e-5
};
using QuantityUnits = std::span<const QuantityUnit>;

[[nodiscard]] FL_API QuantityUnits decimal_units();  // none, K, M, G, T: powers of 1000, for rates
[[nodiscard]] FL_API QuantityUnits binary_units();   // none, K, M, G, T: powers of 1024, for amounts of memory
[[nodiscard]] FL_API QuantityUnits time_units();     // s, ms, us; a time needs a unit
[[nodiscard]] FL_API QuantityUnits no_units();

// Returns the number that a text states with one of the units; nothing if it is no number or has another unit.
[[nodiscard]] FL_API std::optional<double> read_quantity(std::string_view text, QuantityUnits units);

// Returns "K, M, G, T" for error texts, and "" for no units.
[[nodiscard]] FL_API std::string unit_names(QuantityUnits units);

// Adds a field for a number, which a scenario may also write as a text with a unit. The resolved text has the number.
FL_API Field& quantity_field(Schema& schema, std::string name, double& value, QuantityUnits units, std::string doc);

}  // namespace fl
