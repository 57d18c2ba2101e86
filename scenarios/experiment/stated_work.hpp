// The work of a run's clients and server, added up from what its parts state and from the table [costs] of the scenario.
//
//   local work      gradients of the model on the rows of the round, and the steps along them on vectors [P]
//   a message       postprocessor, feedback and operators, per parameter; the code, per bit
// docs/maths.md has the formulas. The units are those of fl_core/round/stated_cost.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/experiment/tier_seconds.hpp"
#include "scenarios/file/scenario.hpp"
#include "timing/client_work.hpp"
#include "timing/devices.hpp"

namespace fl {

// Returns the work of a run. The problem and the method must outlive it. Throws ConfigError for parts that state no cost, with the keys of
// [costs] that do.
template <class T>
[[nodiscard]] std::unique_ptr<ClientWork> make_client_work(const Scenario& scenario, const FederatedProblem<T>& problem,
                                                           const RunMethod<T>& method);

// The bits of a client in a round: of its messages, and of what it receives.
struct ClientBits {
  double up = 0, down = 0;
};

// Returns the seconds by kinds of devices; empty if the scenario has no [devices].
template <class T>
[[nodiscard]] std::vector<TierSeconds> tier_seconds(const Scenario& scenario, const FederatedProblem<T>& problem,
                                                    const RunMethod<T>& method, const ClientBits& bits);

}  // namespace fl
