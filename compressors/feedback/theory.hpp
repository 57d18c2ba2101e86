// Step sizes that convergence theorems prescribe: the facts that theorems speak of, what a feedback answers, and the theorems that several
// feedbacks share. docs/maths.md lists all of them with their sources.
//
// Theorems are stated for f = (1/n) sum_i f_i. With weights, f = sum_i w_i f_i, their proofs go through with
//   the quadratic mean   sqrt(sum_i w_i L_i^2)   for sqrt((1/n) sum_i L_i^2)     (means of squared norms are weighted, by Jensen)
//   max_i w_i            for 1/n                 where independent errors of clients add up: sum_i w_i^2 e_i <= max_i w_i sum_i w_i e_i
// and both are the published ones for w_i = 1/n.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"

namespace fl {

// A round as theorems see it.
struct FL_API RoundFacts {
  bool full_participation = true;
  bool constant_step = true;       // no schedule
  bool averages_by_weight = true;  // the server's weights are those of f
  bool plain_server = true;        // x <- x - gamma estimate
  bool exact_downlink = true;
};

// A problem and a run as theorems see them. Smoothness constants include the regularisers.
struct FL_API TheoryFacts {
  double L = 0;                     // of f
  std::vector<double> L_i;          // [n] of every f_i
  std::vector<double> weights;      // [n] w_i, which add up to 1
  double mu = 0;                    // strong convexity of f; 0 where none is known
  bool clients_are_convex = false;  // every f_i is

  std::vector<Contract> contracts;  // of each channel's operator, for its scope
  std::string local_update;         // kind
  // Whether a client sends one (stochastic) gradient of f_i at the model received, or the step along it.
  bool sends_one_gradient = true;
  std::int64_t local_steps = 1;  // 0 where they are counted in epochs
  std::int64_t batch = 0;        // rows per gradient; 0 = all of them
  // Whether a bound on the variance of a minibatch's gradient is known that holds everywhere (A3 with M = 0).
  bool has_bounded_noise = true;
  RoundFacts round;

  [[nodiscard]] double L_max() const;
  [[nodiscard]] double L_quadratic_mean() const;  // sqrt(sum_i w_i L_i^2)
  [[nodiscard]] double largest_weight() const;    // 1/n where all are equal
};

// The largest step size under which a theorem holds, or the reason why there is none.
struct TheoryStep {
  std::optional<double> value;
  std::string theorem;  // its name, for people
  std::string why_not;  // a sentence without its full stop

  [[nodiscard]] static TheoryStep of(double value, std::string theorem) { return {value, std::move(theorem), ""}; }
  [[nodiscard]] static TheoryStep none(std::string why_not) { return {std::nullopt, "", std::move(why_not)}; }
};

namespace theory {

// What a theorem allows gradients to be.
enum class Gradients { full, bounded_noise };

// Returns the first condition of the theorems below that a run does not satisfy, as a sentence; "" where all hold.
[[nodiscard]] FL_API std::string unmet(const TheoryFacts& facts, Gradients gradients);
// The same without those on gradients, for methods whose local update is an estimator of its own.
[[nodiscard]] FL_API std::string unmet_by_the_round(const TheoryFacts& facts);

// delta of a contraction; an unbiased operator with omega < 1 has delta = 1 - omega.
[[nodiscard]] FL_API std::optional<double> contraction(const Contract& contract);
[[nodiscard]] FL_API bool is_lossless(const Contract& contract);

// 1 / (L + Lq sqrt(B/A)), Lq the quadratic mean: estimates h_i with E|h_i - g_i|^2 <= (1-A)|h_i - y_i|^2 + B|g_i - y_i|^2, where g_i and
// y_i are the gradient and the one before.
[[nodiscard]] FL_API double three_point_step(const TheoryFacts& facts, double A, double B);
// A = 1 - sqrt(1-delta) and B = (1-delta) / A, those of EF21.
struct ThreePoints {
  double A = 1, B = 0;
};
[[nodiscard]] FL_API ThreePoints ef21_points(double delta);

// EF21 with full gradients, or with a momentum eta < 1 and stochastic ones.
[[nodiscard]] FL_API TheoryStep ef21(const TheoryFacts& facts, double momentum);
// EF-BV, in the class of what is known of C: a contraction, or unbiased.
[[nodiscard]] FL_API TheoryStep ef_bv(const TheoryFacts& facts, double lambda, double nu);
// Error feedback around operators that follow each other: EF14 for one.
[[nodiscard]] FL_API TheoryStep error_feedback(const TheoryFacts& facts);

}  // namespace theory
}  // namespace fl
