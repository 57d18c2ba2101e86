// Runs one cell, from the problem to its results: assembles the parts, plays the rounds, measures, and records the outcome.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/learning/minibatches.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/experiment/calibration.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "scenarios/experiment/device_need.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/experiment/record.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/experiment/run_parts.hpp"
#include "scenarios/experiment/start.hpp"
#include "scenarios/experiment/theory.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_record.hpp"
#include "server/round.hpp"

namespace fl {

class ServerData;

// Machine settings. They do not change results, except that training on a GPU rounds in another order.
struct MachineOptions {
  int threads = 1;
  std::uint32_t block = 0;                  // clients per block; 0 = chosen
  bool materialise = false;                 // encode and decode every message
  Device device = Device::cpu;              // where clients train, and where operators run if they support it
  bool trains_on_cpu = false;               // all clients, whatever the device
  bool keeps_managed = false;               // for tests: vectors, state and messages on a GPU use managed memory even if not needed
  StatePaging paging{};                     // limits on the memory for client state
  std::uint64_t device_bytes = 0;           // GPU bytes for this run alone, without data; 0 = the free memory
  ModelOutput models{};                     // where the final model is written
  std::filesystem::path samples{};          // folder for the rows of all minibatches, as HASH.csv; "" = not recorded
  RoundTimes* times = nullptr;              // sums of the seconds of rounds; may be null
  ClientSource* source = nullptr;           // of clients outside this process; may be null
  const ServerData* server_data = nullptr;  // read instead of data sets, by a server whose clients alone have training rows; may be null
  bool looks_for_errors = false;            // checks the scenario only: no run, no optimum
};

// Returns the file of a run in that folder.
[[nodiscard]] inline std::filesystem::path sample_file_of(const std::filesystem::path& folder, const std::string& run) {
  return folder / (run + ".csv");
}

// Called with the latest row, for row 0 and after every round. The run ends as interrupted when it returns false.
using RoundCallback = std::function<bool(const RoundRow&)>;

template <class T>
class Experiment {
 public:
  // Throws ConfigError, with all problems at once, if the parts cannot be combined.
  Experiment(const Cell& cell, FederatedProblem<T>& problem, ThreadPool& pool, const MachineOptions& machine);

  // Throws StoreError when a checkpoint cannot be written or used.
  RunResult run(const RoundCallback& callback, const CheckpointPlan& plan = {});

  // Plays rounds for about `seconds`, at least one of each kind (scenarios/experiment/calibration.cpp). The experiment cannot be used
  // afterwards.
  [[nodiscard]] Calibration calibrate(double seconds, const std::function<bool()>& goes_on = {});

  // Accessors for tests and tools, for runs whose clients are simulated.
  [[nodiscard]] ClientState<T>& clients() { return sides_.simulated->state(); }
  [[nodiscard]] SharedState<T>& shared() { return *sides_.shared; }
  [[nodiscard]] ServerState<T>& state() { return *sides_.server.state; }
  [[nodiscard]] BlockRunner<T>& runner() { return sides_.simulated->runner(); }
  [[nodiscard]] ClientProcess<T>& process() { return sides_.simulated->process(); }
  [[nodiscard]] ServerRounds<T>& round() { return *sides_.server.round; }
  [[nodiscard]] const Downlink<T>& downlink() const { return *sides_.server.downlink; }
  [[nodiscard]] const Exchange<T>& exchange() const { return method_.exchange; }
  [[nodiscard]] const Feedback<T>& feedback() const { return *method_.feedback; }
  [[nodiscard]] std::span<T> model() { return model_.span(); }
  [[nodiscard]] double step_size() const { return step_.value; }
  // Returns gamma with the theorem that it comes from.
  [[nodiscard]] const StepSize& step() const { return step_; }
  // Returns what the operators of the clients promise, by channel.
  [[nodiscard]] std::vector<Contract> contracts() const;
  // Returns the unit of what clients compress.
  [[nodiscard]] Unit unit() const { return method_.unit; }
  [[nodiscard]] Evaluator<T>& evaluator() { return measuring_.evaluator; }
  [[nodiscard]] std::size_t size_bytes() const;  // host memory, or GPU memory if a GPU is used
  // The part of size_bytes() for gradients whose rows are computed at once; on the host, one per thread.
  [[nodiscard]] WholeMinibatch whole_minibatch() const;
  // Returns the needs with --device cuda, whether or not this run uses it.
  [[nodiscard]] DeviceNeed device_need() const;

 private:
  void choose_memory();
  void assemble(ServerParts<T> parts);
  void require_plain_messages() const;
  [[nodiscard]] std::size_t over_select(Participation& participation, double factor) const;
  [[nodiscard]] std::unique_ptr<ClientSide<T>> simulate_clients(CohortSizes cohort);
  void start();
  void start_average(const std::vector<double>& x_star);
  [[nodiscard]] std::uint64_t round_bytes_on_device() const;
  void persist(Archive& archive, std::vector<RoundRow>& rows);
  void require_rounds_until(std::uint64_t round, const std::vector<RoundRow>& rows) const;
  [[nodiscard]] RoundRow row_of_start();
  [[nodiscard]] RoundRow play(std::uint32_t round, const DueMeasures& due);
  // Returns whether losses that are due are measured at the end of the run.
  [[nodiscard]] bool are_losses_late(const DueMeasures& due) const;
  void keep_late_losses(std::vector<RoundRow>& rows, const DueMeasures& due);
  void watch_contract(std::uint32_t round);
  [[nodiscard]] double seconds_per_round(const DueMeasures& due, double seconds, std::size_t most, const std::function<bool()>& goes_on,
                                         std::vector<RoundBits>& played);
  [[nodiscard]] double seconds_of_rare_measures();
  template <class F>
  [[nodiscard]] double seconds_in_evaluated_rounds(const F& evaluate);
  [[nodiscard]] double seconds_of_test_set();
  [[nodiscard]] double seconds_of_losses();
  [[nodiscard]] std::uint64_t growth_bytes() const;
  [[nodiscard]] double too_late_s(double up_bits, double down_bits) const;
  [[nodiscard]] std::string why_diverged(const RoundRow& row) const;
  [[nodiscard]] bool should_stop(const RoundRow& row) const;
  [[nodiscard]] bool ends_here(RunResult& result);
  [[nodiscard]] PlayedRun<T> played_run();

  const Cell& cell_;
  const Scenario& scenario_;
  FederatedProblem<T>& problem_;
  ThreadPool& pool_;
  MachineOptions machine_;
  RunMeasuring<T> measuring_;
  RunMethod<T> method_;
  RunSettings run_;
  RunMemory memory_;
  StepSize step_;
  RunSides<T> sides_;
  Buffer<T> model_;  // x [P]
  PathFacts path_;
};

extern template class Experiment<float>;
extern template class Experiment<double>;

}  // namespace fl
