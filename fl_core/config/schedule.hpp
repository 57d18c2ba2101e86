// The schedule of a step size over the rounds: gamma_r = gamma * factor(r).
#pragma once

#include <cstdint>

#include "fl_core/config/options.hpp"

namespace fl {

// During the warm-up, rounds 1 .. W, the factor grows as r / W. Afterwards, with t = r - 1 - W and R rounds in total:
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

  // Returns the factor of round r = 1, 2, ... of `rounds`. It lies in (0, 1], except that a cosine may end at zero.
  [[nodiscard]] FL_API double factor(std::uint32_t round, std::uint32_t rounds) const;
};
FL_API void describe(Schema& schema, Schedule& schedule);

}  // namespace fl
