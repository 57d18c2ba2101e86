// Models whose stochastic gradients have a variance that is bounded everywhere: sigma^2 in convergence theorems, with M = 0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API BoundedGradients {
 public:
  virtual ~BoundedGradients() = default;
  // Returns a bound, valid at every x, on the variance of one row's gradient, (1/m) sum_j |g_j - (1/m) sum_k g_k|^2 over m rows. Returns no
  // value if the variance grows with x. The regulariser is common to all rows and drops out.
  [[nodiscard]] virtual std::optional<double> gradient_variance(std::span<const std::uint32_t> rows) const = 0;
};

}  // namespace fl
