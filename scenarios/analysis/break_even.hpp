// The uplink rate below which a method's messages take less time than the baseline's.
//
// A message of S bits, which its client needs c seconds to make, takes c + S / rate. So a method is faster than the baseline at rates below
//   (S_baseline - S) / (c - c_baseline)     if its messages are shorter and take longer to make
// at every rate if they are shorter and are made no slower, and at no rate if they are neither.
#pragma once

#include <optional>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/study.hpp"

namespace fl {

// Returns the rate in bit/s: infinity = every rate, 0 = none. No value for the baseline, and where the runs do not have the columns of the
// measure `round_times`. Means over rounds and runs.
[[nodiscard]] FL_API std::optional<double> break_even_rate(const Study& study, const StudyCell& cell);

}  // namespace fl
