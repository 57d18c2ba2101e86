// The standard normal distribution: its probabilities Phi(z) and its quantiles.
#pragma once

#include "fl_core/config/device.hpp"

namespace fl {

// Returns Phi(z), the probability of a number of at most z.
[[nodiscard]] FL_API double normal_probability(double z);
// Returns z with Phi(z) = p, 0 < p < 1.
[[nodiscard]] FL_API double normal_quantile(double p);

}  // namespace fl
