// Bounds of convergence theorems beside what they bound: the mean of |grad f|^2 over the rounds of a run so far, and f - f* at the weighted
// average of its models.
//
// Error feedback, every client in every round, a constant step size gamma, T rounds; gradients with noise xi_i, E|xi_i|^2 <=
// M |grad f_i|^2 + sigma_i^2, and n = 1 / max_i w_i:
//   (1/T) sum_{t<T} |grad f(x_t)|^2  <=                                                                    with gamma <=
//     theorem 8, nothing is lost     2 D / (gamma T) +   gamma L N                                         1 / (L (1 + M/n))
//     theorem 6, absolute (kappa)    4 D / (gamma T) + 2 gamma L N + 2 gamma^2 L^2 kappa^2                 1 / (2 L (1 + M/n))
//     theorem 7, contraction (delta) 8 D / (gamma T) + 4 gamma L N                                         both that and
//                                      + 8 gamma^2 L^2 (1-delta)/delta ((2/delta + M) zeta^2 + sigma^2)    delta / (4 L sqrt(1-delta))
// with N = M zeta^2 / n + sum_i w_i^2 sigma_i^2 and sigma^2 = sum_i w_i sigma_i^2; and for convex f_i, mu-strongly where mu > 0, with
// R_0 = |x_0 - x*|, weights (1 - gamma mu / 2)^{-(t+1)} and gamma <= 1 / (4 L (1 + 2 M/n))
//   f(average of x_0 .. x_{T-1}) - f*  <=
//     theorem 4, absolute, mu > 0    2 ( R_0^2 exp(-gamma mu T / 2) / gamma + gamma N* + 3 L kappa^2 gamma^2 )
//     theorem 5, absolute, mu = 0    2 ( R_0^2 / (gamma T) + gamma N* + 2 L kappa^2 gamma^2 )
// with kappa = 0 where nothing is lost and N* = 2 M zeta^2(x*) / n + sum_i w_i^2 sigma_i^2. D = f(x_0) - f*; L the smoothness of every
// client's f_i (theorem 8 where nothing is lost: of f, which is all that its proof uses), regulariser included; kappa on the scale of
// gradients; zeta^2 the largest heterogeneity met on the way (with C = 1). Full gradients have M = 0, sigma = 0. Minibatches have M = 0 and
// a sigma that the model knows (BoundedGradients). An unbiased operator without feedback is noise itself: M = omega, and 1 + omega times
// the minibatches' sigma^2. Where a compressor keeps its promise in expectation only, or gradients are those of minibatches, the bound is
// one on the expectation. A. N. Sahu, A. Dutta, A. M. Abdelmoniem, T. Banerjee, M. Canini, P. Kalnis, "Rethinking gradient sparsification
// as total error minimization", NeurIPS 2021. tests/golden/theory_test.cpp holds runs to these and to the lemmas behind them.
#pragma once

#include <span>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Whether a run measured what the theorems speak of: the gradient of all rows at x_0 .. x_{T-1}, so in every row but perhaps the last.
[[nodiscard]] FL_API bool measures_every_gradient(std::span<const RoundRow> rows);

// After T = 1, 2, ... rounds. Empty for a run that no theorem speaks of (scenarios/experiment/theory.hpp).
struct BoundedMean {
  int theorem = 0;
  bool in_expectation = false;          // of the operator's or the minibatches' randomness
  std::vector<double> measured, bound;  // [rounds]
};
[[nodiscard]] FL_API BoundedMean bounded_mean(const RunRecord& record, std::span<const RoundRow> rows);

// Of every round in which the average was evaluated; empty for a run that neither theorem speaks of.
struct BoundedAverage {
  int theorem = 0;
  bool in_expectation = false;          // of the operator's or the minibatches' randomness
  std::vector<std::size_t> row;         // into the run's rows
  std::vector<double> measured, bound;  // [rows]
};
[[nodiscard]] FL_API BoundedAverage bounded_average(const RunRecord& record, std::span<const RoundRow> rows);

}  // namespace fl
