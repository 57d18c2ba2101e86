// Whole numbers in texts, exactly: labels and ids that differ stay different, however many digits they have.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the value of a decimal number ("-3", "+3", "3.0", "3e2") that is a whole one of 64 bits; none for every other text, also for a
// number with a fraction however small and for one beyond 64 bits.
[[nodiscard]] FL_API std::optional<std::int64_t> whole_number_in(std::string_view text);

}  // namespace fl
