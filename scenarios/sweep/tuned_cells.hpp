// Questions of tuning about the cells of a study: targets, references, settings, and the values that a cell takes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scenarios/file/sweep.hpp"

namespace fl {

[[nodiscard]] bool has_target(const std::vector<Cell>& cells);
// Returns the labels of the combinations whose bits others must match, or whose level they must reach.
[[nodiscard]] std::set<AxisLabels> references_of(const std::vector<Cell>& cells);
[[nodiscard]] bool any_needs_tuning(const std::vector<Cell>& cells);
[[nodiscard]] TuneSettings tune_settings_of(const std::vector<Cell>& cells);
// Returns whether the runs of tuning have to look at the test set: candidates are judged by the training objective, so it matters only
// where [stop] ends a run by its accuracy.
[[nodiscard]] bool needs_test_set(const Scenario& scenario);
// Returns whether a tuning run may measure its losses at its end (scenarios/experiment/late_losses.hpp): candidates are judged by an end
// point, and no condition of [stop] reads a measure.
[[nodiscard]] bool may_measure_late(const Scenario& scenario, const TuneSettings& settings);
// Returns whether the scenario of a cell takes a value.
[[nodiscard]] bool is_accepted(const Cell& cell, const std::string& key, const Value& value);

}  // namespace fl
