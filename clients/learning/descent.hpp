// Local updates in a form that a GPU computes for many clients at once: steps along stochastic gradients.
#pragma once

#include <cstdint>

#include "clients/learning/local_work.hpp"

namespace fl {

struct Descent {
  bool moves = false;  // false: one gradient at the model received. true: y <- y - gamma v in each step, from y = w; w - y is sent
  LocalWork work;      // number of steps
  bool draws = true;   // whether the model draws random numbers of its own (dropout), as in stochastic gradients
  double weight_decay = 0, momentum = 0, proximal_mu = 0;  // v = beta v + grad f_i(y) + decay y + mu (y - w)
  bool by_optimizer = false;  // the local optimizer steps along grad f_i(y) + decay y + mu (y - w); there is no v
};

// Returns |a|_1 of w - y = gamma sum_u a_u g_u: the length of the path when each gradient is 1. Without momentum and mu it is the number of
// steps. Local optimizers say it by themselves (LocalOptimizer::work).
[[nodiscard]] inline double work_of(const Descent& descent, std::uint32_t steps, double gamma) {
  double moved = 0, v = 0;  // (w - y) / gamma, and the momentum
  for (std::uint32_t step = 0; step < steps; ++step) {
    v = descent.momentum * v + 1 - descent.proximal_mu * gamma * moved;
    moved += v;
  }
  return moved;
}

}  // namespace fl
