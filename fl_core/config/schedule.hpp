// How a step size changes over the rounds: gamma_r = gamma * factor(r).
#pragma once

#include <cstdint>

#include "fl_core/config/options.hpp"

namespace fl {

// First a warm-up, rounds 1 .. W, in which the factor grows as r / W; then, with t = r - 1 - W rounds since and R rounds in all:
//   constant  1
//   step      decay_factor ^ floor(t / decay_rounds)
//   cosine    final + (1 - final) (1 + cos(pi t / (R - W))) / 2
// Sources: P. Goyal et al., "Accurate, large minibatch SGD", 2017 (warm-up); I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent
// with warm restarts", ICLR 2017 (cosine, here without restarts).
struct Schedule {
  enum class Kind { constant, step, cosine };
  Kind kind = Kind::constant;
  std::int64_t warmup_rounds = 0;
  std::int64_t decay_rounds = 10;
  double decay_factor = 0.5;
  double final_factor = 0;

  // For round r = 1, 2, ... of `rounds`; in (0, 1] but for a cosine that ends at zero.
  [[nodiscard]] FL_API double factor(std::uint32_t round, std::uint32_t rounds) const;
};
FL_API void describe(Schema& schema, Schedule& schedule);

}  // namespace fl
