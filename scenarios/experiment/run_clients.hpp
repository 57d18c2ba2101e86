// The clients of a run as the process that leads it has them: simulated there (ClientSide), or reached in another way (ClientSource).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "clients/sample_file.hpp"
#include "fl_core/round/client_probe.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

// How many clients a round has.
struct CohortSizes {
  std::size_t most = 0, likely = 0;
};

template <class T>
class RunClients {
 public:
  virtual ~RunClients() = default;

  [[nodiscard]] virtual CohortRunner<T>& clients() = 0;
  // Answers what measures ask of clients.
  [[nodiscard]] virtual ClientProbe<T>& probe() = 0;
  // Lets the local update begin at x* [P], where it needs that.
  virtual void prepare(std::span<const double> x_star) = 0;
  // Where the rows of minibatches are recorded; null: nowhere.
  virtual void record_into(SampleRecorder* samples) = 0;
  // The file of client state that a checkpoint refers to, "" without one; and that the checkpoint is on disk.
  [[nodiscard]] virtual std::string page_file() = 0;
  virtual void commit_checkpoint() = 0;
  // Throws ArchiveError where a client remembers a later round.
  virtual void require_nothing_after(std::uint64_t round) const = 0;
};

// What a run knows of itself when it asks for its clients. All of it outlives them.
template <class T>
struct ClientRequest {
  const Cell& cell;
  const FederatedProblem<T>& problem;
  const RunMethod<T>& method;
  const RunSettings& run;
  SharedState<T>& shared;  // the replica of this process
  const MeasureSet<T>& measures;
  CohortSizes cohort;
  ThreadPool& pool;
};

// Reaches clients that are not simulated in this process. Throws ConfigError for what they cannot do.
class ClientSource {
 public:
  virtual ~ClientSource() = default;
  [[nodiscard]] virtual std::unique_ptr<RunClients<float>> clients_of(const ClientRequest<float>& request) = 0;
  [[nodiscard]] virtual std::unique_ptr<RunClients<double>> clients_of(const ClientRequest<double>& request) = 0;
};

}  // namespace fl
