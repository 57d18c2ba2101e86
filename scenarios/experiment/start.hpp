// Where a run starts: its first model, and the optimum that measures and local updates ask for.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "clients/local_update.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

struct Start {
  const std::vector<double>* x_star = nullptr;  // x* of the problem, which keeps it; null where nobody asked for it
  double f_star = std::numeric_limits<double>::quiet_NaN();
};

// Whether the scenario wants f - f*, and the problem can know f*.
template <class T>
[[nodiscard]] bool wants_gap(const Scenario& scenario, const FederatedProblem<T>& problem);

// Writes the first model to `model` [P], which holds zeros, and finds the optimum where it is asked for. Another scenario than the one that
// runs is looked at for its errors alone: its optimum may be anything, and take any time, and is not computed.
template <class T>
[[nodiscard]] Start start_model(const Scenario& scenario, FederatedProblem<T>& problem, const LocalUpdate<T>& local, bool looks_for_errors,
                                std::span<T> model);

// Returns gamma, as the rule of local.learning_rate says.
template <class T>
[[nodiscard]] double step_size_of(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method);

}  // namespace fl
