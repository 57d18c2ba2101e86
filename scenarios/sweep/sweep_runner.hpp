// Runs the cells of a sweep in parallel processes, one run per worker, and stores each as it ends.
//
// Seeds, data and everything else that decides a result lie in the cell, so it does not matter which worker runs it, in which order, or
// how often the sweep was interrupted. A run that fails is stored as failed, with the reason, and the others go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "scenarios/sweep/process_pool.hpp"

namespace fl {

// Part `index` of `count` (1-based): the cells whose hash falls into it, whatever else the sweep holds.
struct SweepShard {
  std::uint64_t index = 1, count = 1;
  [[nodiscard]] bool holds(const Cell& cell) const { return cell.hash % count == index - 1; }
};

struct SweepSettings {
  int workers = 1;
  int threads = 1;                    // of each run; results do not depend on it
  Device device = Device::cpu;        // a GPU is shared by runs in threads of this process
  std::filesystem::path checkpoints;  // folder; "" = none
  std::uint64_t checkpoint_every_rounds = 0;
  double checkpoint_every_seconds = 0;
  bool resume = false;     // goes on from checkpoints
  bool any_build = false;  // even from those of another build
  std::uint32_t block = 0;
  bool materialise = false;
  FileSystem* system = &FileSystem::real();  // of checkpoints
  StatePaging paging{};                      // of each run
  std::filesystem::path pages{};             // folder of page files; "" = that of checkpoints
  ModelOutput models{};                      // where final models go
};

// How far a run is.
struct RunProgress {
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
  bool has_measured = false;
  RoundRow measured{};  // the round that was measured last
};

struct SweepEvents {
  std::function<void(std::size_t cell, int worker)> started;
  std::function<void(std::size_t cell, const RunProgress&)> progress;
  std::function<void(std::size_t cell, const RunRecord&)> ended;  // after it was stored
  std::function<void()> tick;
  std::function<int()> signal;                                 // the signal that asks for the end, 0 = none
  std::function<void(std::size_t cell, RunRecord&)> describe;  // adds what is recorded of the machine and of plug-ins
};

// What the first rounds of a cell told, in a worker as the sweep would have it.
struct Trial {
  Calibration calibration{};
  std::uint64_t start_bytes = 0;  // of the worker's memory before its first trial: what it shares with the parent
  std::uint64_t peak_bytes = 0;   // of the worker's memory, this trial and those before
  std::string failure{};          // why there is nothing else
};

class FL_API SweepRunner {
 public:
  // No thread may exist yet, and none until run() has returned.
  SweepRunner(std::vector<Cell> cells, DataCatalog catalog, SweepSettings settings);
  ~SweepRunner();

  // Puts the first seed of every combination together and so loads the data that workers share. Throws what is wrong with any of them.
  void check();
  void check(const std::vector<std::size_t>& cells);  // only these

  // Takes no more workers than fit into so many bytes, and returns how many. The cell that declares most is tried when it might not fit
  // that many times over. After check(). Throws ConfigError where a single run does not fit.
  int fit(std::uint64_t memory_bytes);
  // The same on a GPU with so many bytes free. Each run may then take its share of them; where a single run's client state does not fit, it
  // runs alone, with a part of the state in a file.
  int fit_device(std::uint64_t free_bytes);
  // What a run takes of a GPU at the most, and the data of all runs. After check().
  [[nodiscard]] const DeviceNeed& device_need() const { return device_need_; }
  // Rows of the training and the test file that are left out for a missing value: the most of any cell that was checked.
  [[nodiscard]] std::size_t num_dropped_rows() const { return num_dropped_rows_; }
  [[nodiscard]] std::size_t num_dropped_test_rows() const { return num_dropped_test_rows_; }
  // Runs `pending` cells and stores them. Throws NotStoredError when that fails: workers are ended, what was stored stays.
  void run(const std::vector<std::size_t>& pending, RunStore& store, const SweepEvents& events);

  // Begins these cells in workers, on the CPU, and stops each after so many seconds. What is missing at the end was not begun, because a
  // signal came.
  [[nodiscard]] std::vector<Trial> try_out(const std::vector<std::size_t>& cells, double seconds, const std::function<int()>& signal);

  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  [[nodiscard]] MachineOptions machine_options() const;
  [[nodiscard]] std::string work(CellRunner& runner, std::size_t cell, const Report& report, const std::function<bool()>& asked_to_stop);
  void run_in_processes(const std::vector<std::size_t>& pending, const PoolEvents& events);
  void run_in_threads(const std::vector<std::size_t>& pending, const PoolEvents& events);
  [[nodiscard]] Trial try_in_worker(std::size_t cell, double seconds);
  void begin_work();
  void add(std::size_t cell, const DeviceNeed& need);
  [[nodiscard]] CheckpointPlan checkpoint_of(const Cell& cell) const;
  void forget_checkpoints_without(const std::vector<std::size_t>& pending) const;

  std::vector<Cell> cells_;
  SweepSettings settings_;
  std::shared_ptr<ProblemCache> cache_;
  CellRunner runner_;
  std::size_t largest_ = 0;  // the cell that declares most
  std::size_t largest_bytes_ = 0;
  WholeMinibatch minibatch_;  // the largest of any cell
  DeviceNeed device_need_;    // the most of each kind, of any cell
  std::size_t num_dropped_rows_ = 0, num_dropped_test_rows_ = 0;
  std::map<const void*, std::uint64_t> data_;  // bytes of the data sets that were met
  std::size_t largest_on_device_ = 0;          // the cell that takes most of a GPU
  std::uint64_t device_share_ = 0;             // bytes of a GPU for a run; 0 = what is free
  bool is_working_ = false;                    // in a worker, after its first task
  std::uint64_t start_bytes_ = 0;
};

// The record of a run that never came to a result.
[[nodiscard]] FL_API RunRecord failed_record(const Cell& cell, const std::string& reason);

}  // namespace fl
