// Runs cells one after another in one process, sharing what they have in common: the problem, and through its cache data and constants.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/experiment/experiment.hpp"

namespace fl {

// What the parts and the state of a cell may come to take at the most, more than a run that does not meet every client.
struct CellNeed {
  std::size_t bytes = 0;                                        // data not included
  DeviceNeed device{};                                          // of a GPU, with --device cuda
  WholeMinibatch minibatch{};                                   // part of `bytes`, on the host
  std::size_t num_dropped_rows = 0, num_dropped_test_rows = 0;  // of the data: rows left out for a missing value
};

class FL_API CellRunner {
 public:
  CellRunner(DataCatalog catalog, MachineOptions machine);
  // With data and constants that other runners of this process take from the same cache, each in a thread of its own.
  CellRunner(std::shared_ptr<ProblemCache> cache, MachineOptions machine);
  ~CellRunner();
  // From now on with so many threads: for a process that was forked, where threads of its parent are not.
  void use_threads(int threads);
  // Puts a cell together without running it. Throws ConfigError with all problems that run() would meet before its first round.
  CellNeed check(const Cell& cell);
  // The same for several cells: one error has the problems of all of them.
  std::vector<CellNeed> check(const std::vector<const Cell*>& cells);
  RunResult run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan = {});
  // `later`, another seed of the same cell that was not met yet, tells what a new seed costs; nullptr = there is none.
  [[nodiscard]] Calibration calibrate(const Cell& cell, const Cell* later, double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl
