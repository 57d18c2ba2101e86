// Compares measured convergence with the bounds of theorems: the mean of |grad f|^2 over the rounds so far, and f - f* at the weighted
// average of the models.
//
// The theorems assume error feedback, full participation and a constant step size gamma over T rounds. Gradients have noise xi_i with
// E|xi_i|^2 <= M |grad f_i|^2 + sigma_i^2, and n = 1 / max_i w_i:
//   (1/T) sum_{t<T} |grad f(x_t)|^2  <=                                                                    with gamma <=
//     theorem 8, lossless            2 D / (gamma T) +   gamma L N                                         1 / (L (1 + M/n))
//     theorem 6, absolute (kappa)    4 D / (gamma T) + 2 gamma L N + 2 gamma^2 L^2 kappa^2                 1 / (2 L (1 + M/n))
//     theorem 7, contraction (delta) 8 D / (gamma T) + 4 gamma L N                                         both that and
//                                      + 8 gamma^2 L^2 (1-delta)/delta ((2/delta + M) zeta^2 + sigma^2)    delta / (4 L sqrt(1-delta))
// with N = M zeta^2 / n + sum_i w_i^2 sigma_i^2 and sigma^2 = sum_i w_i sigma_i^2. For convex f_i (mu-strongly convex if mu > 0), with R_0
// = |x_0 - x*|, weights (1 - gamma mu / 2)^{-(t+1)} and gamma <= 1 / (4 L (1 + 2 M/n)):
//   f(average of x_0 .. x_{T-1}) - f*  <=
//     theorem 4, absolute, mu > 0    2 ( R_0^2 exp(-gamma mu T / 2) / gamma + gamma N* + 3 L kappa^2 gamma^2 )
//     theorem 5, absolute, mu = 0    2 ( R_0^2 / (gamma T) + gamma N* + 2 L kappa^2 gamma^2 )
// with N* = 2 M zeta^2(x*) / n + sum_i w_i^2 sigma_i^2, and kappa = 0 if compression is lossless.
//
// D is f(x_0) - f*. L is the smoothness of every client's f_i, regulariser included; if nothing is lost, theorem 8 needs only
// that of f. kappa is on the scale of gradients. zeta^2 is the largest heterogeneity measured during the run (with C = 1). Full
// gradients have M = 0 and sigma = 0. Minibatches have M = 0 and a sigma that the model knows (BoundedGradients). An unbiased operator
// without feedback adds noise itself: M = omega, and the minibatches' sigma^2 is multiplied by 1 + omega. If the compressor's contract
// holds in expectation only, or gradients are those of minibatches, then the bound is on the expectation.
//
// Source: A. N. Sahu, A. Dutta, A. M. Abdelmoniem, T. Banerjee, M. Canini, P. Kalnis, "Rethinking gradient sparsification as total error
// minimization", NeurIPS 2021. tests/golden/theory_test.cpp checks runs against these bounds and against the lemmas behind them.
#pragma once

#include <span>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Returns whether a run measured the quantity that the theorems bound: the gradient of all rows at x_0 .. x_{T-1}, hence in every row
// except perhaps the last.
[[nodiscard]] FL_API bool measures_every_gradient(std::span<const RoundRow> rows);

// The mean of |grad f|^2 and its bound after T = 1, 2, ... rounds. Empty if no theorem applies to the run
// (scenarios/experiment/theory.hpp).
struct BoundedMean {
  int theorem = 0;
  bool in_expectation = false;          // the bound is on the expectation over the operator's or the minibatches' randomness
  std::vector<double> measured, bound;  // [rounds]
};
[[nodiscard]] FL_API BoundedMean bounded_mean(const RunRecord& record, std::span<const RoundRow> rows);

// f - f* at the average and its bound, for every round in which the average was evaluated. Empty if neither theorem applies to the run.
struct BoundedAverage {
  int theorem = 0;
  bool in_expectation = false;          // as above
  std::vector<std::size_t> row;         // index into the run's rows
  std::vector<double> measured, bound;  // [rows]
};
[[nodiscard]] FL_API BoundedAverage bounded_average(const RunRecord& record, std::span<const RoundRow> rows);

// f - f*, and (f(x_0) - f*) rate^(2 r), for every round r >= 1 in which f was evaluated. The rate is that of the worst case of a tight step
// ("tight_rate", compressors/feedback/theory.hpp): f - f* falls at least as fast up to a constant factor. Empty for runs with other steps.
struct PredictedRate {
  std::vector<std::size_t> row;  // index into the run's rows
  std::vector<double> measured, predicted;
};
[[nodiscard]] FL_API PredictedRate predicted_rate(const RunRecord& record, std::span<const RoundRow> rows);

}  // namespace fl
