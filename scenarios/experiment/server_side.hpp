// The server side of a run. The leading process assembles it around a CohortRunner and does not know which clients are behind that.
#pragma once

#include <memory>
#include <span>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/async_rule.hpp"
#include "server/delivery_policy.hpp"
#include "server/round.hpp"
#include "server/round_clock.hpp"

namespace fl {

// The parts of a server that a scenario names. They are checked before anything is assembled.
template <class T>
struct ServerParts {
  std::unique_ptr<Participation> participation;
  std::unique_ptr<ServerOptimizer<T>> optimizer;
  std::unique_ptr<AggregationRule> aggregation;
  std::unique_ptr<DeliveryPolicy> delivery;
  std::unique_ptr<AsyncRule> asynchronous;
};

// Throws ConfigError if the part rejects its options.
[[nodiscard]] std::unique_ptr<DeliveryPolicy> make_delivery(const Part& part);

// Throws ConfigError if a part rejects its options.
template <class T>
[[nodiscard]] ServerParts<T> make_server_parts(const Scenario& scenario, const FederatedProblem<T>& problem);

// Values computed before the run starts, and machine settings.
struct ServerPlace {
  double step_size = 1;       // gamma
  Device sums = Device::cpu;  // memory of the sums of messages: pinned if a GPU computes them
  RoundTimes* times = nullptr;
  bool keeps_messages = false;  // keeps downlink messages for clients in other processes
  RoundClock* clock = nullptr;  // of an asynchronous run
};

// The clients of a run as the server sees them.
template <class T>
struct ServerClients {
  CohortRunner<T>& runner;
  ClientProbe<T>* probe = nullptr;  // null if measures cannot query the clients
};

template <class T>
struct ServerSide {
  ServerParts<T> parts;
  std::unique_ptr<ServerState<T>> state;
  std::unique_ptr<Downlink<T>> downlink;
  std::unique_ptr<ServerRounds<T>> round;
};

// Returns a server that plays rounds with the model in `model` [P]. The arguments passed by reference outlive it; `shared` is the replica
// of the shared state in this process.
template <class T>
[[nodiscard]] ServerSide<T> make_server_side(const Scenario& scenario, const LayerTable& layers, ServerParts<T> parts,
                                             const RunMethod<T>& method, const RunSettings& run, SharedState<T>& shared,
                                             ServerClients<T> clients, const ServerPlace& place, std::span<T> model, ThreadPool& pool);

// Initialises kept parameters from the first model: every client begins with its values, and they are the mean.
template <class T>
void start_kept(const RunSettings& run, std::span<const T> model, SharedState<T>& shared, ServerState<T>& state);

}  // namespace fl
