// Runs cells one after another in one process, sharing what they have in common: the problem, and through its cache data and constants.
#pragma once

#include <memory>

#include "scenarios/experiment.hpp"

namespace fl {

class FL_API CellRunner {
 public:
  CellRunner(DataCatalog catalog, MachineOptions machine);
  // With data and constants that other runners of this process take from the same cache, each in a thread of its own.
  CellRunner(std::shared_ptr<ProblemCache> cache, MachineOptions machine);
  ~CellRunner();
  // From now on with so many threads: for a process that was forked, where threads of its parent are not.
  void use_threads(int threads);
  // Puts a cell together without running it: throws what run() would throw before its first round. Returns the bytes that its parts and
  // its state may come to take, data not included: more than a run will take when it does not meet every client.
  std::size_t check(const Cell& cell);
  RunResult run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan = {});
  // `later`, another seed of the same cell that was not met yet, tells what a new seed costs; nullptr = there is none.
  [[nodiscard]] Calibration calibrate(const Cell& cell, const Cell* later, double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl
