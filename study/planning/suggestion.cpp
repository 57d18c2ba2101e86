#include "study/planning/suggestion.hpp"

#include <utility>

#include "fl_core/config/error.hpp"
#include "scenarios/experiment/start_facts.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

// Takes d, gamma and zeta from the scenario's first cell, unless the command line sets them. Returns the unit of what its clients compress.
Unit take_facts(const Cell& cell, SuggestArguments& arguments) {
  const StartFacts facts = facts_at_start(cell, DataCatalog(arguments.data));
  if (!arguments.d) arguments.d = facts.d;
  if (!arguments.gamma) arguments.gamma = facts.gamma;
  if (!arguments.zeta) arguments.zeta = std::sqrt(facts.zeta_sq);
  return facts.unit;
}

void check(const SuggestArguments& a, bool has_scenario) {
  Problems problems;
  const auto positive = [&](const char* name, const std::optional<double>& value) {
    if (value && !(*value > 0 && std::isfinite(*value))) problems.push_back({name, "must be a positive number, is " + exact_text(*value)});
  };
  positive("--k", a.k), positive("--ratio", a.ratio), positive("--lambda", a.lambda), positive("--epsilon", a.epsilon);
  positive("--d", a.d), positive("--gamma", a.gamma);
  if (!a.d && (a.ratio || a.epsilon)) problems.push_back({"--d", "the number of parameters is needed: give --d, or a scenario file"});
  if (!a.gamma && a.epsilon) problems.push_back({"--gamma", "the step size is needed: give --gamma, or a scenario file"});
  if (a.d && a.k && *a.k > *a.d) problems.push_back({"--k", "must be at most d = " + exact_text(*a.d) + ", is " + exact_text(*a.k)});
  if (a.rounds && !has_scenario) problems.push_back({"--measure", "runs a scenario: give its file"});
  if (a.rounds && !a.k && !a.ratio) problems.push_back({"--measure", "finds lambda for Top-k: give --k or --ratio"});
  if (a.k && a.rounds && *a.k != std::floor(*a.k)) problems.push_back({"--k", "must be a whole number, is " + exact_text(*a.k)});
  if (a.ratio && *a.ratio > 1) problems.push_back({"--ratio", "must be at most 1, is " + exact_text(*a.ratio)});
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

std::optional<Cell> first_cell(const SuggestArguments& a) {
  const DataCatalog catalog(a.data);
  if (a.text) return read_cells(*a.text, a.settings, &catalog).front();
  if (!a.file.empty()) return read_cells(a.file, a.settings, &catalog).front();
  return std::nullopt;
}

}  // namespace

Suggestion suggest(SuggestArguments arguments, const std::function<bool()>& goes_on) {
  if (!arguments.k && !arguments.ratio && !arguments.lambda && !arguments.epsilon)
    throw ConfigError("suggest: give one of --k, --ratio, --lambda and --epsilon");
  const std::optional<Cell> cell = first_cell(arguments);
  std::optional<Unit> unit;
  if (cell) unit = take_facts(*cell, arguments);
  check(arguments, cell.has_value());
  Suggestion suggestion{.asked = std::move(arguments), .unit = unit};
  const SuggestArguments& asked = suggestion.asked;
  if (!asked.rounds) return suggestion;
  CellRunner runner(DataCatalog(asked.data), {});
  suggestion.measured = measure_threshold(*cell, *unit, runner, static_cast<std::int64_t>(*asked.entries()),
                                          std::min(*asked.rounds, cell->scenario.rounds), goes_on);
  return suggestion;
}

}  // namespace fl
