// The runs of tuning: every cell on the tuning seeds, in a store of their own, and the end points that candidates stand for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl {

struct TuningInterrupted {};
struct TuningNotStored {};  // a run that is needed, where none may begin

// A candidate over the tuning seeds.
struct TuningOutcome {
  double cost = 0;              // mean of the end points, of which the least is best; infinite if one diverges, fails or has none
  double bits_up = 0;           // mean of the totals
  std::size_t evaluations = 0;  // in the shortest end point
  std::string why{};            // of an infinite cost
};

class TuningRuns {
 public:
  // Without `catalog` nothing may run: what is stored must do.
  TuningRuns(const DataCatalog* catalog, const TuningMachine& machine, std::int64_t seeds);

  enum class Refusal { is_an_error, is_a_bad_value };
  // Runs what is not stored yet, all seeds of all cells at once. A cell that cannot run is stored as failed; if none of a combination's
  // cells can, ConfigError tells why, unless that is expected of values beyond a grid.
  void ensure(const std::vector<Cell>& cells, Refusal refusal = Refusal::is_an_error);
  // The summaries of a cell's runs, one per seed. After ensure.
  [[nodiscard]] std::vector<RunRecord> records(const Cell& cell) const;
  // Returns true if a run of the cell failed, so that its bits say nothing.
  [[nodiscard]] bool has_failed(const Cell& cell) const;
  // Totals sent upwards or both ways, one per seed.
  [[nodiscard]] std::vector<double> bits(const Cell& cell, Against which) const;
  // The end points at a budget of rounds or bits, or where the run ended before it; `budget` is infinite for the end.
  [[nodiscard]] TuningOutcome outcome(const Cell& cell, const TuneSettings& settings, Against against, double budget) const;

 private:
  [[nodiscard]] Cell seeded(const Cell& cell, std::int64_t seed) const;
  [[nodiscard]] bool is_stored(const Cell& cell) const;
  [[nodiscard]] RunStore& store();
  void run(const std::vector<Cell>& runs, std::vector<std::size_t> pending, Refusal refusal);
  void store_unusable(SweepRunner& runner, std::vector<std::size_t>& pending, Refusal refusal);

  const DataCatalog* catalog_;
  const TuningMachine& machine_;
  std::int64_t seeds_;
  std::optional<RunStore> store_;  // made when the first run may begin, so that a study that is refused leaves nothing on the disk
};

}  // namespace fl
