#include "server/delivery.hpp"

namespace fl {

void Delivery::take(std::span<const std::uint8_t> counts, std::span<double> weights) {
  double all = 0, arrived = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += weights[i];
    if (counts[i] != 0 || delivered_[i] == 0) {
      arrived += weights[i];
      continue;
    }
    ++refused;
    delivered_[i] = 0;
    weights[i] = 0;
  }
  refused_ += refused;
  if (refused == 0 || arrived == 0) return;
  for (double& weight : weights) weight *= all / arrived;
}

}  // namespace fl
