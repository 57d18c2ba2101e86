// Finds the convergence theorems that apply to a run: the assumptions that its parts must satisfy, and the constants of the theorems for
// the run's record. scenarios/experiment/bounds.hpp states the theorems.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "compressors/compressor.hpp"
#include "compressors/exchange.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The parts of a run that the theorems' assumptions concern.
template <class T>
struct TheoryParts {
  const Scenario& scenario;
  const LocalUpdate<T>& local;
  const Exchange<T>& exchange;
  Unit unit = Unit::gradient;
  double step_size = 0;
};

// Bounds on the variance of minibatch gradients that hold at every model: E|xi_i|^2 <= sigma_i^2.
struct GradientNoise {
  double mean = 0;     // sum_i w_i sigma_i^2
  double of_mean = 0;  // sum_i w_i^2 sigma_i^2, the variance of the clients' weighted mean: sigma^2 / n if all clients are alike
};

// Returns sigma_i^2 = v_i / b for b rows with replacement, and v_i (m_i - b) / (b (m_i - 1)) without, where v_i is the variance of one
// row's gradient (BoundedGradients). Returns zeros for full gradients, and nothing if the model knows no bound or rows are read from a
// file.
template <class T>
[[nodiscard]] std::optional<GradientNoise> gradient_noise(const FederatedProblem<T>& problem, const SamplingOptions& sampling);

// The assumptions that the theorems share.
[[nodiscard]] bool has_everyone(const Scenario& scenario);
[[nodiscard]] bool has_constant_step(const Schedule& schedule);
[[nodiscard]] bool steps_plainly(const Part& server);
[[nodiscard]] bool averages_by_weight(const Scenario& scenario);
[[nodiscard]] bool sends_models_exactly(const Scenario& scenario);
[[nodiscard]] bool changes_nothing(const Part& postprocessor);

// Returns whether a theorem's assumptions on the parts hold, regardless of numbers and step size: error feedback (or an exact or unbiased
// operator without), one gradient of each client, full participation, an exact downlink, plain steps of the server, and a compressor that
// is absolute or a contraction everywhere.
template <class T>
[[nodiscard]] bool has_theory(const TheoryParts<T>& parts);

// The numbers of a problem that enter the theorems. L includes the regulariser.
struct TheoryNumbers {
  double L = 0, L_max = 0;    // of f, and the largest of any f_i
  double largest_weight = 1;  // of any client
  GradientNoise noise{};
};

// Returns the constants "theorem", "theorem_L" and "theorem_kappa" or "theorem_delta" for a run's record; none if gamma is too large.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers);

// Returns the constants of theorems 4 and 5, for convex f_i: "average_theorem", "average_L", "average_kappa", "average_mu" and
// "average_R0_sq". `mu` is the strong convexity of every f_i, `distance_sq` the squared distance of x_0 from x*. Returns none for a
// contraction, which theorems 4 and 5 do not cover.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers, double mu,
                                                                    double distance_sq);

// Returns the constants of the noise, for both kinds of theorems: "theorem_M", "theorem_sigma_sq", "theorem_mean_sigma_sq" and
// "theorem_largest_weight" if there is noise, and "theorem_in_expectation" = 1 if the operator or the minibatches are random.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> noise_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers);

}  // namespace fl
