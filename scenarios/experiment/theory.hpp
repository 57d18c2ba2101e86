// Which convergence theorems speak of a run: the assumptions that its parts have to satisfy, and the constants of the theorems for its
// record. What the theorems say is in scenarios/experiment/bounds.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clients/local_update.hpp"
#include "compressors/compressor.hpp"
#include "compressors/exchange.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// What theorems ask of the parts of a run beside its numbers.
template <class T>
struct TheoryParts {
  const Scenario& scenario;
  const LocalUpdate<T>& local;
  const Exchange<T>& exchange;
  Unit unit = Unit::gradient;
  double step_size = 0;
};

// The variance of minibatch gradients, as bounds that hold everywhere: E|xi_i|^2 <= sigma_i^2.
struct GradientNoise {
  double mean = 0;     // sum_i w_i sigma_i^2
  double of_mean = 0;  // sum_i w_i^2 sigma_i^2, the variance of the clients' weighted mean: sigma^2 / n where all are alike
};

// sigma_i^2 = v_i / b for b rows with replacement, and v_i (m_i - b) / (b (m_i - 1)) without, v_i the variance of one row's gradient
// (BoundedGradients). Zeros for full gradients; none where the model knows no bound, or rows are not drawn but read from a file.
template <class T>
[[nodiscard]] std::optional<GradientNoise> gradient_noise(const FederatedProblem<T>& problem, const SamplingOptions& sampling);

// The assumptions that theorems share.
[[nodiscard]] bool has_everyone(const Scenario& scenario);
[[nodiscard]] bool has_constant_step(const Schedule& schedule);
[[nodiscard]] bool steps_plainly(const Part& server);
[[nodiscard]] bool averages_by_weight(const Scenario& scenario);
[[nodiscard]] bool sends_models_exactly(const Scenario& scenario);

// Whether a theorem's assumptions hold, its numbers and step size left aside: error feedback (or an exact or unbiased operator without),
// one gradient of each client, full participation, an exact downlink, plain steps of the server, a compressor that is absolute or a
// contraction everywhere.
template <class T>
[[nodiscard]] bool has_theory(const TheoryParts<T>& parts);

// The numbers of a problem that enter the theorems; L with the regulariser.
struct TheoryNumbers {
  double L = 0, L_max = 0;    // of f, and the largest of any f_i
  double largest_weight = 1;  // of a client
  GradientNoise noise{};
};

// The constants "theorem", "theorem_L" and "theorem_kappa" or "theorem_delta", for the record of a run; none where gamma is too large.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers);

// The same of theorems 4 and 5, for convex f_i: "average_theorem", "average_L", "average_kappa", "average_mu" and "average_R0_sq". `mu` is
// the strong convexity of every f_i, `distance_sq` that of x_0 from x*. None for a contraction: those theorems have no such term.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers, double mu,
                                                                    double distance_sq);

// What both kinds of theorems say of noise: "theorem_M", "theorem_sigma_sq", "theorem_mean_sigma_sq" and "theorem_largest_weight" where
// there is any, and "theorem_in_expectation" = 1 where the operator or the minibatches are random.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> noise_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers);

}  // namespace fl
