#include "scenarios/sweep/measured_threshold.hpp"

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

// Returns a cell for a short run that measures only bits.
Cell short_run(const Cell& cell, const std::string& compressor, std::int64_t rounds) {
  Cell changed = cell;
  Scenario& scenario = changed.scenario;
  scenario.up[""].part = default_part("compressor", compressor);
  scenario.rounds = rounds;
  scenario.stop = {};
  scenario.evaluate = {};
  scenario.evaluate.every = rounds;
  scenario.evaluate.train_loss = false;
  scenario.evaluate.gradient = EvaluateOptions::Gradient::never;
  scenario.evaluate.optimum.is_used = false;
  changed.match.reset();
  changed.resolved_toml = to_toml(scenario);
  return changed;
}

double bits_of(const Cell& cell, CellRunner& runner, const std::function<bool()>& goes_on) {
  const RunRecord record = runner.run(cell, [&goes_on](const RoundRow&) { return !goes_on || goes_on(); }).record;
  if (record.status == RunStatus::interrupted)
    throw Error("the short run with " + cell.scenario.compressor_up("").part.kind + " was interrupted");
  if (record.status == RunStatus::failed)
    throw ConfigError("the short run with " + cell.scenario.compressor_up("").part.kind + " failed: " + record.message);
  return static_cast<double>(record.bits_up);
}

}  // namespace

MeasuredThreshold measure_threshold(const Cell& cell, Unit unit, CellRunner& runner, std::int64_t k, std::int64_t rounds,
                                    const std::function<bool()>& goes_on) {
  const double target = bits_of(with_option(short_run(cell, "top_k", rounds), "compressor.up.k", {k}), runner, goes_on);
  if (!(target > 0)) throw ConfigError("Top-k sent nothing in " + std::to_string(rounds) + " rounds: there is nothing to match");
  const std::string rule = unit == Unit::step ? "lambda" : "threshold";
  const Cell hard = with_option(short_run(cell, "hard_threshold", rounds), "compressor.up.rule", {rule});
  BitSearch search({target});
  MeasuredThreshold found{.unit = unit, .rounds = static_cast<std::uint64_t>(rounds), .bits_up = target};
  for (; search.goes_on(); ++found.runs)
    search.observe({bits_of(with_option(hard, "compressor.up.threshold", {search.value()}), runner, goes_on)});
  found.threshold = search.value();
  found.matched = search.matched();
  return found;
}

}  // namespace fl
