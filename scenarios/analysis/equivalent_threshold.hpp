// The threshold lambda at which the hard threshold is as good as Top-k with k entries of d, and back: A. N. Sahu et al., "Rethinking
// gradient sparsification as total error minimization", NeurIPS 2021, appendix D. lambda is on the scale of gradients; where the input is a
// step the threshold is gamma lambda.
//
//   the paper's rule    lambda = 1 / (2 sqrt(k))
//   equal bounds        the last terms of theorems 6 and 7 (scenarios/experiment/bounds.hpp) alike, delta = k / d:
//                       lambda^2 = 4 (1 - k/d) / k * ((2 d/k + M) zeta^2 + sigma^2); the rule is that of zeta = 0, sigma = 1/4, k << d
//   a given error       d gamma^2 lambda^2 = epsilon, the squared error of a step
#pragma once

#include "fl_core/config/device.hpp"

namespace fl {

// Gradients whose noise has E |xi|^2 <= M |grad f_i|^2 + sigma^2, clients with mean |grad f_i|^2 <= |grad f|^2 + zeta^2.
struct NoiseAndSpread {
  double M = 0, sigma = 0.25, zeta = 0;
};

[[nodiscard]] FL_API double rule_lambda(double k);
[[nodiscard]] FL_API double rule_k(double lambda);
// 0 < k <= d. lambda = 0 where nothing is lost (k = d) or nothing is lost by any k (zeta = sigma = 0).
[[nodiscard]] FL_API double equal_bounds_lambda(double k, double d, const NoiseAndSpread& noise);
// In (0, d]: the k whose lambda is this one.
[[nodiscard]] FL_API double equal_bounds_k(double lambda, double d, const NoiseAndSpread& noise);
[[nodiscard]] FL_API double epsilon_lambda(double epsilon, double d, double gamma);
[[nodiscard]] FL_API double epsilon_of(double lambda, double d, double gamma);

}  // namespace fl
