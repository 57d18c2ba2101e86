// The record of a run, written when it ends.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/message/ledger.hpp"
#include "scenarios/experiment/contract_watch.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/model_average.hpp"
#include "scenarios/experiment/run_measures.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/experiment/theory.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct RunResult {
  RunRecord record;
  std::vector<RoundRow> rows;
};

// A run whose rounds are over. The referenced objects outlive it.
template <class T>
struct PlayedRun {
  const Cell& cell;
  FederatedProblem<T>& problem;
  const RunMethod<T>& method;
  const Ledger& ledger;
  const MeasureSet<T>& measure_set;
  RunMeasures<T>& measures;
  const std::optional<ContractWatch>& watch;
  const std::optional<ModelAverage>& average;
  std::span<const T> model;                            // x [P]
  double f_star = 0;                                   // NaN if not known
  double step_size = 0;                                // gamma
  double step_rate = 1;                                // StepSize::rate
  double start_distance_sq = 0, client_convexity = 0;  // |x_0 - x*|^2 and the least mu_i, if the average is measured
  int threads = 1;

  [[nodiscard]] TheoryParts<T> theory_parts() const { return {cell.scenario, *method.local, method.exchange, method.unit, step_size}; }
};

// Returns why a run that played all of its rounds counts as diverged, or "". An initial loss of 0 or less has no multiples, so it is not
// checked.
[[nodiscard]] std::string why_diverged_at_the_end(const Scenario& scenario, const std::vector<RoundRow>& rows);

// Fills the record of a run from its rows.
template <class T>
void fill_record(const PlayedRun<T>& run, RunStatus status, RunResult& result);

}  // namespace fl
