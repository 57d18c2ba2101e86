// Runs the cells of a sweep in parallel processes, one run per worker, and stores each run when it ends.
//
// A cell contains the seeds, the data and all other inputs of its result. The result therefore does not depend on the worker, the order of
// the runs or interruptions of the sweep. A run that fails is stored as failed, with the reason, and the others continue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fl_core/config/stop_token.hpp"
#include "scenarios/results/run_progress.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "scenarios/sweep/process_pool.hpp"
#include "scenarios/sweep/sweep_share.hpp"

namespace fl {

struct SweepSettings {
  int workers = 1;
  Workers kind = Workers::processes;  // runs on a GPU are always threads
  int threads = 1;                    // threads of each run; results do not depend on it
  Device device = Device::cpu;        // runs on a GPU share it in threads of this process
  std::filesystem::path checkpoints;  // folder; "" = none
  std::uint64_t checkpoint_every_rounds = 0;
  double checkpoint_every_seconds = 0;
  bool resume = false;     // continues from checkpoints
  bool any_build = false;  // accepts checkpoints of another build
  std::uint32_t block = 0;
  bool materialise = false;
  FileSystem* system = &FileSystem::real();  // file system for checkpoints
  StatePaging paging{};                      // paging of each run
  std::filesystem::path pages{};             // folder of page files; "" = the checkpoint folder
  ModelOutput models{};                      // destination of the final models
};

struct SweepEvents {
  std::function<void(std::size_t cell, int worker)> started;
  std::function<void(std::size_t cell, const RunProgress&)> progress;
  std::function<void(std::size_t cell, const RunRecord&)> ended;  // called after the run was stored
  std::function<void()> tick;
  StopToken stop{};                                            // asks to stop
  std::function<void(std::size_t cell, RunRecord&)> describe;  // adds the machine and the plug-ins to the record
};

// Measurements of the first rounds of a cell, taken in a worker as in a real sweep.
struct Trial {
  Calibration calibration{};
  std::uint64_t start_bytes = 0;  // memory of the worker before its first trial: the part shared with the parent
  std::uint64_t peak_bytes = 0;   // peak memory of the worker in this trial and those before
  std::string failure{};          // reason if there are no measurements
};

class FL_API SweepRunner {
 public:
  // With Workers::processes no thread may exist before run() has returned.
  SweepRunner(std::vector<Cell> cells, DataCatalog catalog, SweepSettings settings);
  ~SweepRunner();

  // Builds the first seed of every combination and so loads the data that workers share. Throws the problems of all of them.
  void check();
  void check(const std::vector<std::size_t>& cells);  // checks only these cells

  // Limits the number of workers so that they fit into `memory_bytes`, and returns it. If the cell with the largest declared memory might
  // not fit once per worker, it is tried. Call after check(). Throws ConfigError if a single run does not fit. Threads are never tried:
  // their number follows from the declared memory, and one run may always start.
  int fit(std::uint64_t memory_bytes);
  // Limits the number of runs so that they fit on a GPU with `free_bytes` free. Each run may then take its share of the memory. If a single
  // run's client state does not fit, the run is alone on the GPU and keeps a part of its state in a file.
  int fit_device(std::uint64_t free_bytes);
  // Returns an upper bound on the GPU bytes of a run, and the data of all runs. Call after check().
  [[nodiscard]] const DeviceNeed& device_need() const { return device_need_; }
  // Returns what all checked cells say of the study. Call after check().
  [[nodiscard]] const StudyFacts& facts() const { return facts_; }
  // Runs and stores the `pending` cells. Throws NotStoredError if storing fails; the workers are then ended and earlier results stay.
  void run(const std::vector<std::size_t>& pending, RunStore& store, const SweepEvents& events);

  // Starts these cells in workers, on the CPU, and stops each after `seconds`, or when `stop` asks. A trial is empty if it was asked
  // before it started. The peak memory of threads is that of the whole process.
  [[nodiscard]] std::vector<Trial> try_out(const std::vector<std::size_t>& cells, double seconds, const StopToken& stop);

  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  [[nodiscard]] MachineOptions machine_options() const;
  [[nodiscard]] std::string work(CellRunner& runner, std::size_t cell, const Report& report, const std::function<bool()>& asked_to_stop);
  [[nodiscard]] bool is_threaded() const { return settings_.device != Device::cpu || settings_.kind == Workers::threads; }
  void run_in_processes(const std::vector<std::size_t>& pending, const PoolEvents& events);
  void run_in_threads(const std::vector<std::size_t>& pending, const PoolEvents& events);
  [[nodiscard]] std::vector<std::unique_ptr<CellRunner>> make_runners(int workers) const;
  [[nodiscard]] Trial try_with(CellRunner& runner, std::size_t cell, double seconds, const std::function<bool()>& goes_on) const;
  void begin_work();
  void add(std::size_t cell, const DeviceNeed& need);
  [[nodiscard]] CheckpointPlan checkpoint_of(const Cell& cell) const;
  void forget_checkpoints_without(const std::vector<std::size_t>& pending) const;

  std::vector<Cell> cells_;
  SweepSettings settings_;
  std::shared_ptr<ProblemCache> cache_;
  CellRunner runner_;
  std::size_t largest_ = 0;  // the cell with the largest declared memory
  std::size_t largest_bytes_ = 0;
  WholeMinibatch minibatch_;  // the largest of all cells
  DeviceNeed device_need_;    // the maximum of each kind over all cells
  StudyFacts facts_;
  std::map<const void*, std::uint64_t> data_;  // bytes of the data sets that cells use
  std::size_t largest_on_device_ = 0;          // the cell that needs most GPU memory
  std::uint64_t device_share_ = 0;             // GPU bytes for a run; 0 = all free bytes
  bool is_working_ = false;                    // in a worker, true after its first task
  std::uint64_t start_bytes_ = 0;
};

// Returns the record of a run that has no result.
[[nodiscard]] FL_API RunRecord failed_record(const Cell& cell, const std::string& reason);

}  // namespace fl
