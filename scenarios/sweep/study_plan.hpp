// Predicts the cost of a study before it runs: seconds, memory and bits of every combination, and the tuning runs before it.
//
// A worker starts the first seed of each combination and stops it after a moment. In a sweep with very many combinations only a part is
// tried, selected at random but with every label among them. Each other combination is assumed to cost as much as the tried one that shares
// most labels with it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_runner.hpp"

namespace fl {

// One combination of axis values with all its seeds.
struct FL_API Combination {
  std::size_t cell = 0;  // the first of its seeds
  std::size_t seeds = 0;
  bool is_tried = false;
  Trial trial{};
  double tuning_runs = 0;      // tuning runs before the study
  std::size_t candidates = 1;  // candidates that tuning compares, if no grid is extended
  [[nodiscard]] double run_s() const { return trial.calibration.total_s(); }
  // Returns the seconds of all seeds. Every seed but the first has a setup cost in a worker; the trial measured it for this combination.
  [[nodiscard]] double all_s() const;
};

struct StudyPlan {
  std::vector<Combination> combinations;
  std::size_t tried = 0;  // number of tried combinations
  double start_s = 0;     // time until the first run begins
  double study_s = 0;     // computing time of all runs
  double tuning_s = 0;    // computing time of all tuning runs
  double tuning_runs = 0;
  double bits = 0;                 // both directions, all runs, tuning excluded
  std::uint64_t worker_bytes = 0;  // peak memory of a worker, shared memory included
  DeviceNeed device{};             // upper bound on the GPU bytes of a run
  StudyFacts facts{};              // what the cells that were tried say of the study
  bool all_good = true;
};

struct PlanSettings {
  int workers = 1;
  double seconds = 0;      // for each combination; 0 = automatic: 0.2, or less if there are many combinations
  std::size_t most = 400;  // maximum number of tried combinations
  StopToken stop{};
};

// Predicts the cost of a study. Throws ConfigError for errors in the combinations that are tried.
[[nodiscard]] FL_API StudyPlan plan_study(SweepRunner& runner, const PlanSettings& settings);

// Returns the seconds from the start to the end of the study, tuning included, if `workers` workers take the runs in their order.
[[nodiscard]] FL_API double wall_s(const StudyPlan& plan, int workers);

}  // namespace fl
