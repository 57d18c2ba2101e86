// Converts between Top-k with k entries of d and the threshold lambda at which the hard threshold is equally good. Source: A. N. Sahu et
// al., "Rethinking gradient sparsification as total error minimization", NeurIPS 2021, appendix D. lambda is on the scale of gradients; if
// the input is a step, the threshold is gamma lambda.
//
//   the paper's rule    lambda = 1 / (2 sqrt(k))
//   equal bounds        the last terms of theorems 6 and 7 (scenarios/experiment/bounds.hpp) are equal, delta = k / d:
//                       lambda^2 = 4 (1 - k/d) / k * ((2 d/k + M) zeta^2 + sigma^2); the rule is that of zeta = 0, sigma = 1/4, k << d
//   a given error       d gamma^2 lambda^2 = epsilon, the squared error of a step
#pragma once

#include "fl_core/config/device.hpp"

namespace fl {

// Gradient noise with E |xi|^2 <= M |grad f_i|^2 + sigma^2, and clients with mean |grad f_i|^2 <= |grad f|^2 + zeta^2.
struct NoiseAndSpread {
  double M = 0, sigma = 0.25, zeta = 0;
};

[[nodiscard]] FL_API double rule_lambda(double k);
[[nodiscard]] FL_API double rule_k(double lambda);
// Requires 0 < k <= d. Returns 0 if nothing is lost (k = d) or no k loses anything (zeta = sigma = 0).
[[nodiscard]] FL_API double equal_bounds_lambda(double k, double d, const NoiseAndSpread& noise);
// Returns the k in (0, d] whose lambda is the given one.
[[nodiscard]] FL_API double equal_bounds_k(double lambda, double d, const NoiseAndSpread& noise);
[[nodiscard]] FL_API double epsilon_lambda(double epsilon, double d, double gamma);
[[nodiscard]] FL_API double epsilon_of(double lambda, double d, double gamma);

}  // namespace fl
