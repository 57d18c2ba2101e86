#include "timing/device_tiers.hpp"

#include <algorithm>
#include <utility>

#include "timing/shares.hpp"

namespace fl {

DeviceTiers::DeviceTiers(std::vector<DeviceKind> kinds) : kinds_(std::move(kinds)) {
  std::ranges::stable_sort(kinds_, {}, [](const DeviceKind& kind) { return kind.rates.operations_per_s; });
}

void DeviceTiers::open(const QuantileOptions& options, const ClientFacts& clients) {
  ClientQuantiles quantiles;
  quantiles.open(options, clients, Purpose::devices);
  std::vector<double> shares;
  for (const DeviceKind& kind : kinds_) shares.push_back(kind.share);
  kind_.resize(clients.num_clients);
  for (std::uint32_t i = 0; i < kind_.size(); ++i) kind_[i] = static_cast<std::uint32_t>(kind_at(quantiles.quantile(i), shares));
}

std::vector<std::string> DeviceTiers::names() const {
  std::vector<std::string> names;
  for (const DeviceKind& kind : kinds_) names.push_back(kind.name);
  return names;
}

}  // namespace fl
