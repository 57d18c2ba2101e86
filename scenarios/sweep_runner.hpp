// Runs the cells of a sweep in parallel processes, one run per worker, and stores each as it ends.
//
// Seeds, data and everything else that decides a result lie in the cell, so it does not matter which worker runs it, in which order, or
// how often the sweep was interrupted. A run that fails is stored as failed, with the reason, and the others go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/cell_runner.hpp"
#include "scenarios/process_pool.hpp"
#include "server/run_store.hpp"

namespace fl {

// Part `index` of `count` (1-based): the cells whose hash falls into it, whatever else the sweep holds.
struct SweepShard {
  std::uint64_t index = 1, count = 1;
  [[nodiscard]] bool holds(const Cell& cell) const { return cell.hash % count == index - 1; }
};

struct SweepSettings {
  int workers = 1;
  std::filesystem::path checkpoints;  // folder; "" = none
  std::uint64_t checkpoint_every_rounds = 0;
  double checkpoint_every_seconds = 0;
  bool resume = false;     // goes on from checkpoints
  bool any_build = false;  // even from those of another build
  std::uint32_t block = 0;
  bool materialise = false;
  FileSystem* system = &FileSystem::real();  // of checkpoints
};

// How far a run is.
struct RunProgress {
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
};

struct SweepEvents {
  std::function<void(std::size_t cell, int worker)> started;
  std::function<void(std::size_t cell, const RunProgress&)> progress;
  std::function<void(std::size_t cell, const RunRecord&)> ended;  // after it was stored
  std::function<void()> tick;
  std::function<int()> signal;                                 // the signal that asks for the end, 0 = none
  std::function<void(std::size_t cell, RunRecord&)> describe;  // adds what is recorded of the machine and of plug-ins
};

class FL_API SweepRunner {
 public:
  // No thread may exist yet, and none until run() has returned.
  SweepRunner(std::vector<Cell> cells, DataCatalog catalog, SweepSettings settings);
  ~SweepRunner();

  // Puts the first seed of every combination together and so loads the data that workers share. Throws what is wrong with any of them.
  void check();
  // Runs `pending` cells and stores them. Throws NotStoredError when that fails: workers are ended, what was stored stays.
  void run(const std::vector<std::size_t>& pending, RunStore& store, const SweepEvents& events);

  // The first rounds of a cell, in this process.
  [[nodiscard]] Calibration calibrate(std::size_t cell, double seconds) { return runner_.calibrate(cells_[cell], seconds); }

  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  [[nodiscard]] std::string work(std::size_t cell, const Report& report);
  [[nodiscard]] CheckpointPlan checkpoint_of(const Cell& cell) const;
  void forget_checkpoints_without(const std::vector<std::size_t>& pending) const;

  std::vector<Cell> cells_;
  SweepSettings settings_;
  CellRunner runner_;
};

// The record of a run that never came to a result.
[[nodiscard]] FL_API RunRecord failed_record(const Cell& cell, const std::string& reason);

}  // namespace fl
