// Kinds of devices, each with its share of the clients.
#pragma once

#include <string>
#include <vector>

#include "timing/client_quantiles.hpp"
#include "timing/devices.hpp"

namespace fl {

struct DeviceKind {
  std::string name;
  double share = 1;
  DeviceRates rates;
};

// Deals kinds to clients by their quantiles, the slowest kind to the lowest ones.
class FL_API DeviceTiers {
 public:
  DeviceTiers() = default;
  explicit DeviceTiers(std::vector<DeviceKind> kinds);
  void open(const QuantileOptions& options, const ClientFacts& clients);

  [[nodiscard]] const DeviceRates& rates(std::uint32_t client) const { return kinds_[kind_[client]].rates; }
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::size_t kind(std::uint32_t client) const { return kind_[client]; }

 private:
  std::vector<DeviceKind> kinds_;    // ascending by operations per second
  std::vector<std::uint32_t> kind_;  // [N]
};

}  // namespace fl
