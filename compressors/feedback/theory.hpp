// Step sizes that convergence theorems prescribe: the facts that theorems use, the answer of a feedback, and the theorems that several
// feedbacks share. docs/maths.md lists all theorems with their sources.
//
// Theorems are stated for f = (1/n) sum_i f_i. Their proofs also hold for weights, f = sum_i w_i f_i, with
//   the quadratic mean   sqrt(sum_i w_i L_i^2)   for sqrt((1/n) sum_i L_i^2)     (means of squared norms are weighted, by Jensen)
//   max_i w_i            for 1/n                 if independent errors of clients add up: sum_i w_i^2 e_i <= max_i w_i sum_i w_i e_i
// Both equal the published constants for w_i = 1/n.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"

namespace fl {

// The properties of a round that theorems use.
struct FL_API RoundFacts {
  bool full_participation = true;
  bool constant_step = true;       // no schedule
  bool averages_by_weight = true;  // the server averages with the weights w_i of f
  bool plain_server = true;        // x <- x - gamma estimate
  bool exact_downlink = true;
  bool no_postprocessor = true;  // neither vectors nor the estimate are changed
};

// The properties of a problem and a run that theorems use. Smoothness constants include the regularisers.
struct FL_API TheoryFacts {
  double L = 0;                     // smoothness constant of f
  std::vector<double> L_i;          // [n] smoothness constants of the f_i
  std::vector<double> weights;      // [n] w_i, which add up to 1
  double mu = 0;                    // strong convexity of f; 0 = unknown
  double client_mu = 0;             // least strong convexity of any f_i, for learning_rate = "tight" alone; 0 = unknown
  bool clients_are_convex = false;  // every f_i is convex

  std::vector<Contract> contracts;  // of each channel's operator in its scope
  std::string local_update;         // kind
  // Whether a client sends one (stochastic) gradient of f_i at the model received, or the step along it.
  bool sends_one_gradient = true;
  std::int64_t local_steps = 1;  // 0 = counted in epochs
  std::int64_t batch = 0;        // rows per gradient; 0 = all of them
  // Whether a uniform bound on the variance of a minibatch's gradient is known (A3 with M = 0).
  bool has_bounded_noise = true;
  RoundFacts round;

  [[nodiscard]] double L_max() const;
  [[nodiscard]] double L_quadratic_mean() const;  // sqrt(sum_i w_i L_i^2)
  [[nodiscard]] double largest_weight() const;    // 1/n if all are equal; larger if the operators' errors are not independent
};

// Returns W of E|sum_i w_i (C(x_i) - x_i)|^2 <= W omega sum_i w_i |x_i|^2: max_i w_i where the clients' errors are independent.
[[nodiscard]] FL_API double weight_of_errors(const Contract& contract, double largest_weight);

// The largest step size for which a theorem holds, or the reason why there is none.
struct TheoryStep {
  std::optional<double> value;
  std::string theorem;  // name of the theorem, for display
  std::string why_not;  // a sentence without its full stop
  double rate = 1;      // factor of the worst case's distance per round, of a tight step; 1 = none is stated

  [[nodiscard]] static TheoryStep of(double value, std::string theorem) { return {value, std::move(theorem), ""}; }
  [[nodiscard]] static TheoryStep none(std::string why_not) { return {std::nullopt, "", std::move(why_not)}; }
};

namespace theory {

// The gradients that a theorem allows.
enum class Gradients { full, bounded_noise };

// Returns the first condition of the theorems below that a run violates, as a sentence, or "" if all hold.
[[nodiscard]] FL_API std::string unmet(const TheoryFacts& facts, Gradients gradients);
// As unmet(), without the conditions on gradients, for methods whose local update is its own estimator.
[[nodiscard]] FL_API std::string unmet_by_the_round(const TheoryFacts& facts);

// Returns delta of a contraction. An unbiased operator with omega < 1 has delta = 1 - omega.
[[nodiscard]] FL_API std::optional<double> contraction(const Contract& contract);
[[nodiscard]] FL_API bool is_lossless(const Contract& contract);

// Returns 1 / (L + Lq sqrt(B/A)), where Lq is the quadratic mean, for estimates h_i with E|h_i - g_i|^2 <= (1-A)|h_i - y_i|^2 + B|g_i -
// y_i|^2. Here g_i is the gradient and y_i the previous gradient.
[[nodiscard]] FL_API double three_point_step(const TheoryFacts& facts, double A, double B);
// The constants of EF21: A = 1 - sqrt(1-delta) and B = (1-delta) / A.
struct ThreePoints {
  double A = 1, B = 0;
};
[[nodiscard]] FL_API ThreePoints ef21_points(double delta);

// Returns the step of EF21 with full gradients, or with momentum eta < 1 and stochastic gradients.
[[nodiscard]] FL_API TheoryStep ef21(const TheoryFacts& facts, double momentum);
// Returns the step of EF-BV for the known class of C: contraction or unbiased.
[[nodiscard]] FL_API TheoryStep ef_bv(const TheoryFacts& facts, double lambda, double nu);
// Returns the step of error feedback around a sequence of operators (EF14 has one operator).
[[nodiscard]] FL_API TheoryStep error_feedback(const TheoryFacts& facts);

// Returns the best step of EF and of EF21 for strongly convex f_i, full gradients and a contraction that holds for every message, with the
// rate of its worst case. With s = sqrt(1 - delta), means weighted by w_i:
//   gamma = 2 (1 - s) / ((1 + s) mean(L_i + mu)),   rate = (k (1 - s) + sqrt(k^2 (1 - s)^2 + 4 s)) / 2,  k = mean(L_i - mu) / mean(L_i +
//   mu)
// The step is that of D. B. Thomsen, A. Taylor, A. Dieuleveut, 2025 (one client) and 2026 (many), the same for both methods and for every
// n. The rate is the spectral radius of their one-dimensional worst case, f = L x^2 / 2 with an operator that always errs by -s
// (docs/maths.md).
[[nodiscard]] FL_API TheoryStep tight(const TheoryFacts& facts);

}  // namespace theory
}  // namespace fl
