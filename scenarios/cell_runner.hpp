// Runs cells one after another in one process, sharing what they have in common: the problem, and through its cache data and constants.
#pragma once

#include <memory>

#include "scenarios/experiment.hpp"

namespace fl {

class FL_API CellRunner {
 public:
  CellRunner(DataCatalog catalog, MachineOptions machine);
  ~CellRunner();
  // Puts a cell together without running it: throws what run() would throw before its first round.
  void check(const Cell& cell);
  RunResult run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan = {});
  [[nodiscard]] Calibration calibrate(const Cell& cell, double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl
