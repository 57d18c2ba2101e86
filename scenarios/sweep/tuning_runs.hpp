// The runs of tuning: every cell runs on the tuning seeds, with results in a separate store, and its end points give a candidate's cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl {

struct TuningInterrupted {};
struct TuningNotStored {};  // a required run is missing and no run may start

// The outcome of a candidate over the tuning seeds.
struct TuningOutcome {
  std::size_t missed = 0;       // seeds that never reached the target; fewer are better, and the cost compares equals
  double cost = 0;              // mean of the end points, smaller is better; infinite if one diverges, fails or is missing
  double bits_up = 0;           // mean of the total uplink bits
  std::size_t evaluations = 0;  // in the shortest end point
  bool starts_there = false;    // the initial model has reached the target already, on some seed
  std::string why{};            // reason of an infinite cost
};

class TuningRuns {
 public:
  // Without `catalog` no run may start; only stored runs are used.
  TuningRuns(const DataCatalog* catalog, const TuningMachine& machine, const TuneSettings& settings);

  // Says what the runs that follow are for.
  void set_purpose(const std::string& purpose) { purpose_ = purpose; }
  enum class Refusal { is_an_error, is_a_bad_value };
  // Runs all seeds of all cells that are not stored yet. A cell that cannot run is stored as failed. If none of a combination's cells can
  // run, throws ConfigError with the reason, unless `refusal` allows it for values beyond a grid.
  void ensure(const std::vector<Cell>& cells, Refusal refusal = Refusal::is_an_error);
  // Returns the summaries of a cell's runs, one per seed. Call after ensure().
  [[nodiscard]] std::vector<RunRecord> records(const Cell& cell) const;
  // Returns true if a run of the cell failed, so that its bits are meaningless.
  [[nodiscard]] bool has_failed(const Cell& cell) const;
  // Returns the total bits, uplink or both directions, one per seed.
  [[nodiscard]] std::vector<double> bits(const Cell& cell, Against which) const;
  // Returns the end points at a budget of rounds or bits, or at the end of a run that ended before it. An infinite `budget` selects the
  // end.
  [[nodiscard]] TuningOutcome outcome(const Cell& cell, const TuneSettings& settings, Against against, double budget) const;
  // Returns the cost of reaching a target: the mean logarithm of the bits over the seeds that reach it; the end point where none does.
  // bits_up is the geometric mean of these bits, NaN where no seed reaches it.
  [[nodiscard]] TuningOutcome outcome_at(const Cell& cell, const TuneSettings& settings, double target) const;

 private:
  [[nodiscard]] RunTrace trace_of(const Cell& cell, const RunRecord& record, const TuneSettings& settings) const;
  [[nodiscard]] Cell seeded(const Cell& cell, std::int64_t seed) const;
  [[nodiscard]] bool is_stored(const Cell& cell) const;
  [[nodiscard]] RunStore& store();
  void run(const std::vector<Cell>& runs, std::vector<std::size_t> pending, Refusal refusal);
  void store_unusable(SweepRunner& runner, std::vector<std::size_t>& pending, Refusal refusal);

  const DataCatalog* catalog_;
  const TuningMachine& machine_;
  const TuneSettings settings_;
  const std::int64_t seeds_;
  std::string purpose_;
  std::optional<RunStore> store_;  // opened when the first run may start, so that a rejected study leaves nothing on the disk
};

}  // namespace fl
