#include "scenarios/sweep/tuned_cells.hpp"

#include <algorithm>

#include "scenarios/file/key_places.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/sweep/tuning.hpp"
#include "scenarios/sweep/tuning_grid.hpp"

namespace fl {

bool has_target(const std::vector<Cell>& cells) {
  return std::ranges::any_of(cells, [](const Cell& cell) { return cell.tune && cell.tune->at == TuneSettings::At::target; });
}

std::set<AxisLabels> references_of(const std::vector<Cell>& cells) {
  std::set<AxisLabels> references;
  for (const Cell& cell : cells) {
    if (cell.match) references.insert(cell.reference_labels());
    if (has_target(cells)) references.insert(cell.budget_labels);
  }
  return references;
}

bool any_needs_tuning(const std::vector<Cell>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); });
}

TuneSettings tune_settings_of(const std::vector<Cell>& cells) { return cells.front().tune ? *cells.front().tune : TuneSettings{}; }

bool needs_test_set(const Scenario& scenario) { return scenario.stop.accuracy.has_value(); }

bool may_measure_late(const Scenario& scenario, const TuneSettings& settings) {
  const StopOptions& stop = scenario.stop;
  const bool is_measured = stop.accuracy || stop.f_gap || stop.train_loss || stop.grad_norm_sq || !stop.measures.empty();
  return settings.at != TuneSettings::At::target && !is_measured;
}

bool is_accepted(const Cell& cell, const std::string& key, const Value& value) {
  try {
    (void)with_option(cell, key, value);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<std::string> grids_that_end(const std::vector<Cell>& cells) {
  std::vector<std::string> lines;
  std::set<std::size_t> seen;  // a key ends alike for all methods that have it
  for (const Cell& cell : cells)
    for (const std::size_t k : cell.tuned_keys) {
      if (!seen.insert(k).second) continue;
      TuningGrid grid(cell.tune->keys[k], *type_of_key(cell.scenario, cell.tune->keys[k].key));
      if (grid.values().size() == 1) lines.push_back(grid.key() + " has one value, " + to_string(grid.values()[0]) + ": nothing is chosen");
      const auto accepts = [&](const Value& value) { return is_accepted(cell, grid.key(), value); };
      for (const TuningGrid::Side side : {TuningGrid::Side::low, TuningGrid::Side::high}) {
        if (!grid.end_at(side == TuningGrid::Side::low ? 0 : grid.values().size() - 1)) continue;
        const std::string outer = to_string(side == TuningGrid::Side::low ? grid.values().front() : grid.values().back());
        if (!grid.extend(side, accepts) && !grid.is_at_bound(side))
          lines.push_back(grid.key() + " cannot be extended beyond " + outer + ": " + grid.why_ended(side));
      }
    }
  return lines;
}

std::vector<TuningEffort> expected_tuning(const std::vector<Cell>& cells) {
  std::vector<TuningEffort> efforts;
  if (!any_needs_tuning(cells)) return efforts;
  const std::set<AxisLabels> references = references_of(cells);
  std::set<AxisLabels> budgets;
  const bool to_target = has_target(cells);
  for (const Cell& cell : cells)
    if (!cell.budget_labels.empty() && !to_target) budgets.insert(cell.budget_labels);
  const TuneSettings settings = tune_settings_of(cells);
  const auto seeds = static_cast<double>(settings.seeds);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (i > 0 && cell.axis_labels == cells[i - 1].axis_labels) continue;
    TuningEffort effort{.cell = i};
    for (const std::size_t k : cell.tuned_keys) effort.candidates *= settings.keys[k].values.size();
    const double runs = static_cast<double>(effort.candidates) * seeds;
    const bool has_budget = !cell.budget_labels.empty() && !cell.tuned_keys.empty(), is_reference = references.contains(cell.axis_labels);
    if (has_budget) effort.budget_runs = runs;
    if (cell.match) effort.runs += runs * kExpectedSteps;
    if (!cell.match && !has_budget && (!cell.tuned_keys.empty() || is_reference)) effort.runs += runs;
    if (has_budget && is_reference) effort.runs += to_target ? runs : seeds;  // of all values, or for the best one, whose bits are matched
    if (budgets.contains(cell.axis_labels)) effort.runs += seeds;
    if (effort.runs + effort.budget_runs > 0) efforts.push_back(effort);
  }
  return efforts;
}

}  // namespace fl
