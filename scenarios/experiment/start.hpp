// The start of a run: its first model, and the optimum if measures or local updates need it.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

struct Start {
  const std::vector<double>* x_star = nullptr;  // x* of the problem, which owns it; null if it was not needed
  double f_star = std::numeric_limits<double>::quiet_NaN();
};

// Returns whether the scenario asks for f - f* and the problem can compute f*.
template <class T>
[[nodiscard]] bool wants_gap(const Scenario& scenario, const FederatedProblem<T>& problem);

// Writes the first model to `model` [P], which holds zeros, and finds the optimum if it is needed. With `looks_for_errors` the scenario is
// checked and does not run, so its optimum, which could take any time, is not computed.
template <class T>
[[nodiscard]] Start start_model(const Scenario& scenario, FederatedProblem<T>& problem, const LocalUpdate<T>& local, bool looks_for_errors,
                                std::span<T> model);

// gamma of a run, and the theorem that it comes from if the rule of local.learning_rate names one.
struct StepSize {
  double value = 1;
  std::string theorem;  // "" = none
  double rate = 1;      // TheoryStep::rate
};

// Returns gamma from the rule of local.learning_rate.
template <class T>
[[nodiscard]] StepSize step_size_of(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method);

}  // namespace fl
