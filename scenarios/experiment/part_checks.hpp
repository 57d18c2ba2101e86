// Which parts of a run go together.
#pragma once

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

template <class T>
struct CheckedParts {
  const Scenario& scenario;
  const FederatedProblem<T>& problem;
  const RunMethod<T>& method;
  const ServerOptimizer<T>& optimizer;
  const MeasureSet<T>& measures;
  bool wants_gap = false;  // f* is computed or given
};

// Throws ConfigError for parts that do not go together, with all problems at once.
template <class T>
void check_parts(const CheckedParts<T>& parts);

}  // namespace fl
