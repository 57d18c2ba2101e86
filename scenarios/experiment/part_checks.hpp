// Checks which parts of a run can be combined.
#pragma once

#include <optional>
#include <string>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/aggregation_rule.hpp"
#include "server/async_rule.hpp"
#include "server/delivery_policy.hpp"
#include "server/participation.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

template <class T>
struct CheckedParts {
  const Scenario& scenario;
  const FederatedProblem<T>& problem;
  const RunMethod<T>& method;
  const ServerOptimizer<T>& optimizer;
  const AggregationRule& aggregation;
  const DeliveryPolicy& delivery;
  const AsyncRule& asynchronous;
  const Participation& participation;
  const MeasureSet<T>& measures;
  bool wants_gap = false;     // f* is computed or given
  bool has_arrivals = false;  // messages have measured times of arrival: the clients are in other processes
};

// Adds problems for an operator that follows a step size which its input does not contain. `unit` is that of a client's vector; no value
// stands for the server's message. `section` is named in the problems.
FL_API void check_followed_steps(const Domain& domain, const std::string& section, std::optional<Unit> unit, Problems& problems);

// Throws ConfigError, with all problems at once, if the parts cannot be combined.
template <class T>
void check_parts(const CheckedParts<T>& parts);

}  // namespace fl
