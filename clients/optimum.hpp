// The minimiser x* and the minimum f* of f = sum_i w_i f_i, to machine precision, by Newton's method.
//
//   (H + damping) p = -grad f(x),  x += t p,  t halved until f falls by 1e-4 t <p, -grad f>
//
// Up to kDenseNewton parameters, H is dense and factored (LDL^T). Above, conjugate gradients with Hessian-vector products compute p to a
// tolerance that tightens with the gradient (R. S. Dembo, T. Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
// optimization", Math. Programming 26, 1983). For tiny steps, function values no longer distinguish better points from worse ones. Full
// steps then continue as long as |grad f| halves, and the point with the smallest gradient is returned.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clients/objective.hpp"

namespace fl {

struct Optimum {
  std::vector<double> x;     // [P]
  double f = 0;              // f(x)
  double gradient_norm = 0;  // |grad f(x)|
  int iterations = 0;        // Newton steps
};

inline constexpr std::size_t kDenseNewton = 2000;

// Starts from zero. Throws ConfigError if no minimiser of f can be found (separable data without l2).
[[nodiscard]] FL_API Optimum minimise(const Exec& exec, const Objective& f, std::size_t largest_dense = kDenseNewton);

// Does the same for a model. Throws ConfigError unless the model is convex.
template <class T>
[[nodiscard]] Optimum find_optimum(const Exec& exec, const Model<T>& model, std::span<const Shard> shards,
                                   std::span<const double> weights) {
  if (!model.is_convex())
    throw ConfigError(
        "x* and f* are computed for convex problems only; this one is not (nonconvex above 2*l2, or an indefinite quadratic)");
  return minimise(exec, Objective::of(model, shards, weights));
}

}  // namespace fl
