// The minimiser x* and the minimum f* of f = sum_i w_i f_i by Newton's method, and a bound on how far f(x*) can be from the minimum.
//
//   (H + damping) p = -grad f(x),  x += t p,  t halved until f falls by 1e-4 t <p, -grad f>
//
// Up to kDenseNewton parameters, H is dense and factored (LDL^T). Above, conjugate gradients with Hessian-vector products compute p to a
// tolerance that tightens with the gradient (R. S. Dembo, T. Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
// optimization", Math. Programming 26, 1983). For tiny steps, function values no longer distinguish better points from worse ones. Full
// steps then continue as long as |grad f| halves, and the point with the smallest gradient is returned.
//
// Columns of very different sizes spoil both: the search then starts again in the parameters x_j sqrt(h_j), where h_j bounds the second
// derivative along x_j. Whether a point is good enough is decided by a bound on f(x) - min f, the smaller of
//
//   |grad f(x)|^2 / (2 mu)                                    mu > 0: strong convexity
//   lambda^2 = grad f(x)^T H(x)^-1 grad f(x)                  if rho lambda <= 1/4 (SecondOrder::relative_change)
//
// docs/maths.md derives the second one. Above kDenseNewton parameters and where H is singular, lambda comes from conjugate gradients, and
// what they leave out is bounded with their smallest Ritz value, an estimate of the least eigenvalue.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clients/learning/objective.hpp"

namespace fl {

struct Optimum {
  std::vector<double> x;     // [P]
  double f = 0;              // f(x)
  double gradient_norm = 0;  // |grad f(x)|
  int iterations = 0;        // Newton steps
  double error = 0;          // bound on f(x) - min f; infinity if none is known
  double largest = 0;        // the larger of |f(0)| and |f(x)|

  // Returns whether f - f* has the digits that results show: the error is at most kOptimumDigits of the values of f.
  [[nodiscard]] bool is_known() const;
};

inline constexpr double kOptimumDigits = 1e-12;

inline constexpr std::size_t kDenseNewton = 2000;

// Starts from zero. If mu is 0, there may be no minimiser (separable data without l2), and the result says by is_known() whether one was
// found. Throws ConfigError if mu is above 0 and the minimum cannot be computed to kOptimumDigits.
[[nodiscard]] FL_API Optimum minimise(const Exec& exec, const Objective& f, std::size_t largest_dense = kDenseNewton);

// Does the same for a model. Also throws ConfigError unless the model is convex.
template <class T>
[[nodiscard]] Optimum find_optimum(const Exec& exec, const Model<T>& model, std::span<const Shard> shards,
                                   std::span<const double> weights) {
  if (!model.is_convex())
    throw ConfigError(
        "x* and f* are computed for convex problems only; this one is not (nonconvex above 2*l2, or an indefinite quadratic)");
  return minimise(exec, Objective::of(model, shards, weights));
}

}  // namespace fl
