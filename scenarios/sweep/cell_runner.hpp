// Runs cells one after another in one process. The cells share their common parts: the problem and, through its cache, data and constants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/experiment/experiment.hpp"
#include "scenarios/results/step_theorems.hpp"

namespace fl {

// Upper bound on the memory of a cell's parts and state. Runs that never sample some clients stay below it.
struct CellNeed {
  std::size_t bytes = 0;                                        // data excluded
  DeviceNeed device{};                                          // GPU bytes, with --device cuda
  WholeMinibatch minibatch{};                                   // part of `bytes`, on the host
  std::size_t num_dropped_rows = 0, num_dropped_test_rows = 0;  // rows left out of the data because a value is missing
  std::string data{};                                           // its size in words: data_text()
  StepSize step{};                                              // gamma, and its theorem
  bool is_absolute = false, is_contraction = false;             // what the operators of the clients promise
};

// Facts about a study that its cells report: its data, and the theorems of its step sizes.
struct FL_API StudyFacts {
  std::size_t num_dropped_rows = 0, num_dropped_test_rows = 0;  // the most of all cells
  std::vector<std::string> data{};                              // the sizes of the data sets in words, each once
  StepTheorems step_theorems{};

  void add(const CellNeed& need);
};

class FL_API CellRunner {
 public:
  CellRunner(DataCatalog catalog, MachineOptions machine);
  // Takes data and constants from a cache that this process's other runners share. Each runner runs in its own thread.
  CellRunner(std::shared_ptr<ProblemCache> cache, MachineOptions machine);
  ~CellRunner();
  // Sets the number of threads. A forked process calls this function, because it does not inherit the threads of its parent.
  void use_threads(int threads);
  // Builds a cell without running it. Throws ConfigError with all problems that run() would find before its first round.
  CellNeed check(const Cell& cell);
  // Checks several cells. One error contains the problems of all of them.
  std::vector<CellNeed> check(const std::vector<const Cell*>& cells);
  RunResult run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan = {});
  // Measures the cost of a cell. `later` is another seed of the same cell that was not run yet; it shows the cost of a new seed. nullptr =
  // no such seed. The trial is shorter where goes_on() says no after a round.
  [[nodiscard]] Calibration calibrate(const Cell& cell, const Cell* later, double seconds, const std::function<bool()>& goes_on = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl
