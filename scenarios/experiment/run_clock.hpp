// The clock of a run, with the parts that a scenario names for it.
#pragma once

#include <memory>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/round_clock.hpp"
#include "server/timed_cohort.hpp"
#include "timing/client_work.hpp"

namespace fl {

// Devices, links and availability of the clients of a run. Each is there even where the scenario names none.
struct RunTiming {
  std::unique_ptr<Devices> devices;
  std::unique_ptr<Network> network;
  std::unique_ptr<Availability> availability;
};

// Throws ConfigError if a part rejects its options or the clients.
template <class T>
[[nodiscard]] RunTiming make_timing(const Scenario& scenario, const FederatedProblem<T>& problem);

// The clock of a run and what it reads. `cohort` is the runner of the run's clients.
template <class T>
struct RunClock {
  RunTiming timing;
  std::unique_ptr<ClientWork> work;
  std::unique_ptr<RoundClock> clock, by_ratio;  // the second one knows no messages (RoundTimeline::by_ratio_s)
  std::unique_ptr<TimedCohort<T>> cohort;
};

// Returns the clock of a scenario that has one, around the clients of the run. `awaited` is TimedCohort's. All arguments outlive it.
template <class T>
[[nodiscard]] std::unique_ptr<RunClock<T>> make_clock(const Scenario& scenario, const FederatedProblem<T>& problem,
                                                      const RunMethod<T>& method, const DeliveryPolicy& delivery, CohortRunner<T>& clients,
                                                      std::size_t awaited);

}  // namespace fl
