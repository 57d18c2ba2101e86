// Who takes part in a round, and with which weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fl_core/options.hpp"
#include "fl_core/random.hpp"

namespace fl {

// The cohort of one round. Weights: f = sum_i w_i f_i over all clients.
//   cohort_weight      weights of the estimate of grad f from the cohort alone
//   population_weight  w_i: weights of sums over all clients' state, of which only the cohort's part moves
struct RoundPlan {
  std::vector<std::uint32_t> cohort;  // ascending ids
  std::vector<double> cohort_weight, population_weight;
};

class FL_API Participation {
 public:
  virtual ~Participation() = default;
  // How many clients a round has at most.
  [[nodiscard]] virtual std::size_t cohort_size(std::size_t num_clients) const = 0;
  // Fills plan for a round; weights are w_i [N], summing to 1.
  virtual void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const = 0;
};

}  // namespace fl
