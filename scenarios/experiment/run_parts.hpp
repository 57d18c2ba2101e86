// The parts of one run, as Experiment keeps them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/state/shared_state.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "scenarios/experiment/contract_watch.hpp"
#include "scenarios/experiment/evaluator.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/late_losses.hpp"
#include "scenarios/experiment/model_average.hpp"
#include "scenarios/experiment/run_clients.hpp"
#include "scenarios/experiment/run_clock.hpp"
#include "scenarios/experiment/run_measures.hpp"
#include "scenarios/experiment/server_side.hpp"
#include "scenarios/file/measure_schedule.hpp"
#include "scenarios/file/measure_set.hpp"

namespace fl {

// The measures, their schedule, and the objects that compute them.
template <class T>
struct RunMeasuring {
  RunMeasuring(const Scenario& scenario, FederatedProblem<T>& problem, ThreadPool& pool, Device device)
      : schedule(scenario, problem.model().traits().starts_at_random), set(scenario, schedule), evaluator(problem, pool, device) {}
  MeasureSchedule schedule;
  MeasureSet<T> set;
  Evaluator<T> evaluator;
  std::unique_ptr<RunMeasures<T>> run{};
  std::optional<ContractWatch> watch{};  // set if messages are measured
  std::optional<LateLosses<T>> late{};   // set if losses are measured at the end
};

// The memory that holds vectors, state and messages, and the reasons for sharing it between host and GPU.
struct RunMemory {
  Device device = Device::cpu;
  std::vector<std::string> host_needs{};
};

// Both sides of the run, and the replica of the shared state in this process, which both use.
template <class T>
struct RunSides {
  std::unique_ptr<SharedState<T>> shared;
  std::unique_ptr<RunClients<T>> clients;
  ClientSide<T>* simulated = nullptr;  // equals `clients` if they are simulated in this process
  std::unique_ptr<RunClock<T>> clock;  // null: the run knows no time
  ServerSide<T> server;
};

// Facts about the path from x_0 to x*.
struct PathFacts {
  double f_star = kNotMeasured;
  std::optional<ModelAverage> average;                                       // set if it is measured
  double start_distance_sq = kNotMeasured, client_convexity = kNotMeasured;  // |x_0 - x*|^2, least mu_i; set with `average`
};

}  // namespace fl
