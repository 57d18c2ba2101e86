// The keys of a device's rates.
#pragma once

#include <limits>
#include <string>

#include "fl_core/config/quantity.hpp"
#include "timing/devices.hpp"

namespace fl {

struct DeviceRatesOptions {
  double flops = 0, bandwidth = 0, memory = 0;

  [[nodiscard]] DeviceRates rates() const { return {flops, bandwidth, memory > 0 ? memory : std::numeric_limits<double>::infinity()}; }
};

// Adds `flops`, `bandwidth` and `memory`. The documentation is about `whose`: "of each client".
inline void describe_rates(Schema& schema, DeviceRatesOptions& options, const std::string& whose) {
  constexpr double kMost = 1e24;
  quantity_field(schema, "flops", options.flops, decimal_units(), "floating-point operations per second " + whose)
      .above(0)
      .at_most(kMost)
      .unit("1/s")
      .required();
  quantity_field(schema, "bandwidth", options.bandwidth, decimal_units(), "bytes per second from and to the memory " + whose)
      .above(0)
      .at_most(kMost)
      .unit("byte/s")
      .required();
  quantity_field(schema, "memory", options.memory, binary_units(), "memory " + whose + " (K, M, G are powers of 1024); 0: no limit")
      .at_least(0)
      .at_most(kMost)
      .unit("byte");
}

}  // namespace fl
