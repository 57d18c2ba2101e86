// The rates of this machine's processor, measured on one thread, for the devices of a scenario. They are written for people to copy: no
// result of a run contains them by itself.
#pragma once

#include "fl_core/config/device.hpp"

namespace fl {

struct MachineRates {
  double flops = 0;      // operations per second of a product of two matrices [256,256], float32
  double bandwidth = 0;  // bytes per second of x <- x + y, vectors of 64 MiB
};

// Measures each rate for about half of `seconds`, and returns the median of the repetitions.
[[nodiscard]] FL_API MachineRates measure_rates(double seconds);

}  // namespace fl
