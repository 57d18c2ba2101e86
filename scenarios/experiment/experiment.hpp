// One cell, from the problem to its results: puts the parts together, plays the rounds, measures, and says how it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/minibatches.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/experiment/calibration.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "scenarios/experiment/contract_watch.hpp"
#include "scenarios/experiment/device_need.hpp"
#include "scenarios/experiment/evaluator.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/model_average.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/experiment/record.hpp"
#include "scenarios/experiment/run_clients.hpp"
#include "scenarios/experiment/run_measures.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/experiment/server_side.hpp"
#include "scenarios/experiment/theory.hpp"
#include "scenarios/file/measure_schedule.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_record.hpp"
#include "server/checkpoint.hpp"
#include "server/round.hpp"

namespace fl {

// What the machine decides; none of it changes a result, but for training on a GPU, which rounds in another order.
struct MachineOptions {
  int threads = 1;
  std::uint32_t block = 0;          // clients per block; 0 = chosen
  bool materialise = false;         // encode and decode every message
  Device device = Device::cpu;      // where clients train and operators run that can
  bool trains_on_cpu = false;       // all clients, whatever the device
  bool keeps_managed = false;       // vectors, state and messages of a GPU are managed memory even where its own would do; for tests
  StatePaging paging{};             // what client state may take of the memory
  std::uint64_t device_bytes = 0;   // of a GPU, for this run alone, data not included; 0 = what is free
  ModelOutput models{};             // where the final model goes
  std::filesystem::path samples{};  // folder where the rows of all minibatches go, as HASH.csv; "" = nowhere
  RoundTimes* times = nullptr;      // where the seconds of rounds are added up, if anywhere
  ClientSource* source = nullptr;   // of clients that are not simulated in this process
  bool looks_for_errors = false;    // it never runs, and computes no optimum
};

// The file of a run in such a folder.
[[nodiscard]] inline std::filesystem::path sample_file_of(const std::filesystem::path& folder, const std::string& run) {
  return folder / (run + ".csv");
}

// Called with row 0 and after every round with the latest row; returning false ends the run as interrupted.
using RoundCallback = std::function<bool(const RoundRow&)>;

template <class T>
class Experiment {
 public:
  // Throws ConfigError for parts that do not go together, with all problems at once.
  Experiment(const Cell& cell, FederatedProblem<T>& problem, ThreadPool& pool, const MachineOptions& machine);

  // Throws StoreError when a checkpoint cannot be written or used.
  RunResult run(const RoundCallback& callback, const CheckpointPlan& plan = {});

  // Plays rounds for about `seconds`, and at least one of each kind (scenarios/experiment/calibration.cpp). The experiment is of no other
  // use afterwards.
  [[nodiscard]] Calibration calibrate(double seconds);

  // For tests and tools: the pieces of a run whose clients are simulated.
  [[nodiscard]] ClientState<T>& clients() { return sides_.simulated->state(); }
  [[nodiscard]] SharedState<T>& shared() { return *sides_.shared; }
  [[nodiscard]] ServerState<T>& state() { return *sides_.server.state; }
  [[nodiscard]] BlockRunner<T>& runner() { return sides_.simulated->runner(); }
  [[nodiscard]] ClientHost<T>& host() { return sides_.simulated->host(); }
  [[nodiscard]] Round<T>& round() { return *sides_.server.round; }
  [[nodiscard]] const Downlink<T>& downlink() const { return *sides_.server.downlink; }
  [[nodiscard]] const Exchange<T>& exchange() const { return method_.exchange; }
  [[nodiscard]] const Feedback<T>& feedback() const { return *method_.feedback; }
  [[nodiscard]] std::span<T> model() { return model_.span(); }
  [[nodiscard]] double step_size() const { return step_size_; }
  [[nodiscard]] Evaluator<T>& evaluator() { return measuring_.evaluator; }
  [[nodiscard]] std::size_t size_bytes() const;  // of the host, or where a GPU is used, of its memory
  // What size_bytes() counts of gradients whose rows are computed at once: on the host, one for each thread.
  [[nodiscard]] WholeMinibatch whole_minibatch() const;
  // With --device cuda, whether this run has it or not.
  [[nodiscard]] DeviceNeed device_need() const;

 private:
  void choose_memory();
  void assemble(ServerParts<T> parts);
  [[nodiscard]] std::unique_ptr<ClientSide<T>> simulate_clients(CohortSizes cohort);
  void start();
  void start_average(const std::vector<double>& x_star);
  [[nodiscard]] std::uint64_t round_bytes_on_device() const;
  void persist(Archive& archive, std::vector<RoundRow>& rows);
  void require_rounds_until(std::uint64_t round, const std::vector<RoundRow>& rows) const;
  [[nodiscard]] RoundRow row_of_start();
  [[nodiscard]] RoundRow play(std::uint32_t round, const DueMeasures& due);
  void watch_contract(std::uint32_t round);
  [[nodiscard]] double seconds_per_round(const DueMeasures& due, double seconds, std::size_t most, std::vector<RoundBits>& played);
  [[nodiscard]] double seconds_of_rare_measures();
  [[nodiscard]] std::uint64_t growth_bytes() const;
  [[nodiscard]] std::string why_diverged(const RoundRow& row) const;
  [[nodiscard]] bool should_stop(const RoundRow& row) const;
  [[nodiscard]] bool ends_here(RunResult& result);
  [[nodiscard]] PlayedRun<T> played_run();

  // What is measured, when and by whom.
  struct Measuring {
    Measuring(const Scenario& scenario, FederatedProblem<T>& problem, ThreadPool& pool, Device device)
        : schedule(scenario, problem.model().traits().starts_at_random), set(scenario, schedule), evaluator(problem, pool, device) {}
    MeasureSchedule schedule;
    MeasureSet<T> set;
    Evaluator<T> evaluator;
    std::unique_ptr<RunMeasures<T>> run{};
    std::optional<ContractWatch> watch{};  // where messages are measured
  };
  // Where vectors, state and messages lie, and why the host shares them with a GPU.
  struct Memory {
    Device device = Device::cpu;
    std::vector<std::string> host_needs{};
  };
  // Both sides of the run, and the replica of the shared state of this process, which both have.
  struct Sides {
    std::unique_ptr<SharedState<T>> shared;
    std::unique_ptr<RunClients<T>> clients;
    ClientSide<T>* simulated = nullptr;  // the same, where they are simulated in this process
    ServerSide<T> server;
  };
  // What is known of the way from x_0 to x*.
  struct Path {
    double f_star = kNotMeasured;
    std::optional<ModelAverage> average;                                       // where it is measured
    double start_distance_sq = kNotMeasured, client_convexity = kNotMeasured;  // |x_0 - x*|^2 and the least mu_i, likewise
  };

  const Cell& cell_;
  const Scenario& scenario_;
  FederatedProblem<T>& problem_;
  ThreadPool& pool_;
  MachineOptions machine_;
  Measuring measuring_;
  RunMethod<T> method_;
  RunSettings run_;
  Memory memory_;
  double step_size_ = 1;
  Sides sides_;
  Buffer<T> model_;  // x [P]
  Path path_;
};

extern template class Experiment<float>;
extern template class Experiment<double>;

}  // namespace fl
