// The client side of a run. A process that hosts clients assembles it from the scenario and its data, without any part of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "clients/host/client_process.hpp"
#include "clients/learning/minibatches.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/run_clients.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// Machine settings for clients. They do not change results, except that training on a GPU rounds differently.
struct ClientPlace {
  std::uint32_t block = 0;          // clients per block; 0 = chosen
  bool materialise = false;         // messages are bytes
  Device device = Device::cpu;      // where clients train, and where operators run if they support it
  Device memory = Device::cpu;      // of vectors, state and messages
  bool trains_on_cpu = false;       // all clients, whatever the device
  StatePaging paging{};             // limits on the memory for client state
  std::uint64_t device_bytes = 0;   // GPU bytes for this run alone, without data; 0 = the free memory
  std::uint64_t others_bytes = 0;   // share of device_bytes used outside the clients
  bool measures_gradients = false;  // full gradients are evaluated; their rows need memory beside those of clients
  RoundTimes* times = nullptr;
};

template <class T>
class ClientSide final : public RunClients<T> {
 public:
  // The arguments passed by reference outlive this object, and so do the shared slots. Throws ConfigError if the local update cannot draw
  // minibatches from the data.
  ClientSide(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method, const RunSettings& run,
             SharedReplica<T> shared, CohortSizes cohort, const ClientPlace& place, ThreadPool& pool);

  [[nodiscard]] CohortRunner<T>& clients() override { return *process_; }
  [[nodiscard]] ClientProbe<T>& probe() override { return process_->probe(); }
  void prepare(std::span<const double> x_star) override;
  void record_into(SampleRecorder* samples) override { oracle_->record_into(samples); }
  [[nodiscard]] std::string page_file() override { return state_->page_file(); }
  void commit_checkpoint() override { state_->commit_checkpoint(); }
  void require_nothing_after(std::uint64_t round) const override;

  [[nodiscard]] std::size_t size_bytes() const { return state_->size_bytes() + process_->size_bytes() + runner_->size_bytes(); }
  [[nodiscard]] WholeMinibatch whole_minibatch() const { return largest_minibatch(*oracle_, place_.measures_gradients); }
  [[nodiscard]] std::uint64_t most_bytes_on_device() const { return runner_->most_bytes_on_device(run_.P); }
  [[nodiscard]] std::uint64_t most_pinned_bytes() const { return runner_->most_pinned_bytes(); }
  // Returns the bytes of state needed by clients that have not taken part yet, once the run has drawn `draws` clients.
  [[nodiscard]] std::uint64_t growth_bytes(double draws) const;

  // The runner gives each message to a tap as soon as it is written.
  [[nodiscard]] BlockRunner<T>& runner() { return *runner_; }

  // For tests and tools.
  [[nodiscard]] ClientProcess<T>& process() { return *process_; }
  [[nodiscard]] ClientState<T>& state() { return *state_; }
  [[nodiscard]] const ClientState<T>& state() const { return *state_; }

 private:
  [[nodiscard]] std::uint64_t room_for_state() const;

  const RunMethod<T>& method_;
  const RunSettings& run_;
  ClientPlace place_;
  ThreadPool& pool_;
  std::unique_ptr<ClientState<T>> state_;
  std::unique_ptr<GradientOracle<T>> oracle_;
  std::unique_ptr<BlockRunner<T>> runner_;
  std::unique_ptr<ClientProcess<T>> process_;
};

extern template class ClientSide<float>;
extern template class ClientSide<double>;

}  // namespace fl
