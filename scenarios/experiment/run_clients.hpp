// The clients of a run as seen by the process that leads it: simulated in this process (ClientSide), or reached through a ClientSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "clients/learning/sample_file.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/round/client_probe.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "scenarios/experiment/client_sums.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"
#include "server/delivery_policy.hpp"

namespace fl {

// Largest and likely number of clients in a round.
struct CohortSizes {
  std::size_t most = 0, likely = 0;
  std::size_t awaited = 0;  // messages that a round is made for, less than `most` with over-selection; 0 = those of all clients
  std::size_t waves = 1;    // rounds that may be open at the same time
};

template <class T>
class RunClients {
 public:
  virtual ~RunClients() = default;

  [[nodiscard]] virtual CohortRunner<T>& clients() = 0;
  // Returns the probe that answers the measures' questions about clients.
  [[nodiscard]] virtual ClientProbe<T>& probe() = 0;
  // Returns the sums of clients whose rows only they have. Throws Error if the rows are in this process.
  [[nodiscard]] virtual ClientSums<T>& sums() { throw Error("the rows of these clients are in this process"); }
  // Gives x* [P] to local updates that start from it.
  virtual void prepare(std::span<const double> x_star) = 0;
  // Records the rows of minibatches into `samples`; null stops recording.
  virtual void record_into(SampleRecorder* samples) = 0;
  // page_file() returns the file of client state that a checkpoint refers to, or "". commit_checkpoint() tells that the checkpoint is on
  // disk.
  [[nodiscard]] virtual std::string page_file() = 0;
  virtual void commit_checkpoint() = 0;
  // Throws ArchiveError if a client has state of a later round.
  virtual void require_nothing_after(std::uint64_t round) const = 0;
};

// The facts of a run that a ClientSource needs. The referenced objects outlive its clients.
template <class T>
struct ClientRequest {
  const Cell& cell;
  const FederatedProblem<T>& problem;
  const RunMethod<T>& method;
  const RunSettings& run;
  const DeliveryPolicy& delivery;
  SharedState<T>& shared;  // the replica of this process
  const MeasureSet<T>& measures;
  CohortSizes cohort;
  ThreadPool& pool;
};

// Reaches clients that are not simulated in this process. Throws ConfigError for features that they do not support.
class ClientSource {
 public:
  virtual ~ClientSource() = default;
  // Returns the part of role "delivery" that a run with these clients has: the scenario's, or the one that settings of this source make.
  // Throws ConfigError if the two disagree.
  [[nodiscard]] virtual Part delivery_of(const Part& written) const { return written; }
  [[nodiscard]] virtual std::unique_ptr<RunClients<float>> clients_of(const ClientRequest<float>& request) = 0;
  [[nodiscard]] virtual std::unique_ptr<RunClients<double>> clients_of(const ClientRequest<double>& request) = 0;
};

}  // namespace fl
