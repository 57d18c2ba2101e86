// What a study will take before it runs: seconds, memory and bits of every combination, and the tuning runs that come before.
//
// The first seed of each combination is begun in a worker and stopped after a moment. A sweep of very many combinations has a part of them
// tried, spread at random with every label among them; each other one is taken to be as the tried one that it shares most labels with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_runner.hpp"

namespace fl {

// One combination of axis values, all its seeds.
struct FL_API Combination {
  std::size_t cell = 0;  // the first of its seeds
  std::size_t seeds = 0;
  bool is_tried = false;
  Trial trial{};
  double tuning_runs = 0;      // before the study
  std::size_t candidates = 1;  // that tuning compares, if no grid is extended
  [[nodiscard]] double run_s() const { return trial.calibration.total_s(); }
  // Every seed but the first is new to a worker once; which combination that costs was found by trying.
  [[nodiscard]] double all_s() const;
};

struct StudyPlan {
  std::vector<Combination> combinations;
  std::size_t tried = 0;  // of them
  double start_s = 0;     // until the first run begins
  double study_s = 0;     // of computing, all runs
  double tuning_s = 0;    // of computing, all tuning runs
  double tuning_runs = 0;
  double bits = 0;                                              // both directions, all runs, tuning not included
  std::uint64_t worker_bytes = 0;                               // of a worker at its peak, what it shares included
  DeviceNeed device{};                                          // what a run would take of a GPU at the most
  std::size_t num_dropped_rows = 0, num_dropped_test_rows = 0;  // of the data, for a missing value
  bool all_good = true;
};

struct PlanSettings {
  int workers = 1;
  double seconds = 0;      // for each combination; 0 = chosen: 0.2, less where there are many
  std::size_t most = 400;  // combinations that are tried
  std::function<int()> signal;
};

// Throws ConfigError for what is wrong with the combinations that are tried.
[[nodiscard]] FL_API StudyPlan plan_study(SweepRunner& runner, const PlanSettings& settings);

// Seconds from the start to the end of the study, tuning included, with so many workers that take the runs in their order.
[[nodiscard]] FL_API double wall_s(const StudyPlan& plan, int workers);

}  // namespace fl
