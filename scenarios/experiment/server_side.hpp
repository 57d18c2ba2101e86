// The server side of a run: what the process that leads it assembles around a CohortRunner. It does not know which clients are behind that.
#pragma once

#include <memory>
#include <span>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/round.hpp"

namespace fl {

// The parts of a server that a scenario names, which are checked before anything is assembled.
template <class T>
struct ServerParts {
  std::unique_ptr<Participation> participation;
  std::unique_ptr<ServerOptimizer<T>> optimizer;
};

// Throws ConfigError for a part that its options refuse.
template <class T>
[[nodiscard]] ServerParts<T> make_server_parts(const Scenario& scenario, const FederatedProblem<T>& problem);

// What a run has found out before it is played, and what the machine decides.
struct ServerPlace {
  double step_size = 1;       // gamma
  Device sums = Device::cpu;  // the memory of sums of messages: pinned where a GPU adds them up
  RoundTimes* times = nullptr;
  bool keeps_messages = false;  // of the downlink, for clients in other processes
};

// The clients of a run as the server has them.
template <class T>
struct ServerClients {
  CohortRunner<T>& runner;
  ClientProbe<T>* probe = nullptr;  // null where measures cannot ask them
};

template <class T>
struct ServerSide {
  ServerParts<T> parts;
  std::unique_ptr<ServerState<T>> state;
  std::unique_ptr<Downlink<T>> downlink;
  std::unique_ptr<Round<T>> round;
};

// Returns a server that plays rounds with the model in `model` [P]. What is named outlives it; `shared` is the replica of the shared state
// in this process.
template <class T>
[[nodiscard]] ServerSide<T> make_server_side(const Scenario& scenario, const LayerTable& layers, ServerParts<T> parts,
                                             const RunMethod<T>& method, const RunSettings& run, SharedState<T>& shared,
                                             ServerClients<T> clients, const ServerPlace& place, std::span<T> model, ThreadPool& pool);

// Takes the statistics of the first model where they stay with the clients: every client begins with them, and they are the mean.
template <class T>
void start_statistics(const RunSettings& run, std::span<const T> model, SharedState<T>& shared, ServerState<T>& state);

}  // namespace fl
