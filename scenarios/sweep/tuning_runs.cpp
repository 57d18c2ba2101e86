#include "scenarios/sweep/tuning_runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/results/end_point.hpp"
#include "scenarios/sweep/tuned_cells.hpp"

namespace fl {

TuningRuns::TuningRuns(const DataCatalog* catalog, const TuningMachine& machine, const TuneSettings& settings)
    : catalog_(catalog), machine_(machine), settings_(settings), seeds_(settings.seeds) {
  std::error_code ignored;
  if (catalog == nullptr || std::filesystem::exists(machine.store / RunStore::kFileName, ignored))
    store_ = RunStore::open(machine.store, catalog != nullptr ? RunStore::Mode::create : RunStore::Mode::read);
  if (store_ && store_->rescue() && machine.note)
    machine.note(store_->file().string() + " is damaged (" + store_->rescue()->why + "): its " +
                 std::to_string(store_->rescue()->num_whole) + " whole runs are kept in a new file, the others are repeated");
}

RunStore& TuningRuns::store() {
  if (!store_) store_ = RunStore::open(machine_.store, RunStore::Mode::create);
  return *store_;
}

Cell TuningRuns::seeded(const Cell& cell, std::int64_t seed) const {
  Cell run = with_later_seeds(cell, kTuningSeeds + static_cast<std::uint64_t>(seed));
  run.scenario.evaluate.test_set = needs_test_set(run.scenario);
  run.scenario.evaluate.late_losses = may_measure_late(run.scenario, settings_);
  std::erase_if(run.found, [](const ResolvedConstant& constant) { return constant.name == kRunsOfStudy; });
  return run;
}

// Returns whether the run of a cell is stored. A failed run is repeated if runs are allowed.
bool TuningRuns::is_stored(const Cell& cell) const {
  const std::string run = to_hex(cell.hash);
  if (!store_) return false;
  if (store_->has_finished(run)) return true;
  if (const std::optional<DamagedRun> damaged = store_->damage_of(run)) {
    if (machine_.note) machine_.note(store_->file().string() + ": " + to_string(*damaged) + "; it is repeated");
    return false;
  }
  return catalog_ == nullptr && store_->holds(run);
}

void TuningRuns::ensure(const std::vector<Cell>& cells, Refusal refusal) {
  std::vector<Cell> runs;
  for (const Cell& cell : cells)
    for (std::int64_t s = 0; s < seeds_; ++s) runs.push_back(seeded(cell, s));
  std::vector<std::size_t> pending;
  std::set<std::uint64_t> met;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (met.insert(runs[i].hash).second && !is_stored(runs[i])) pending.push_back(i);
  if (!pending.empty()) run(runs, std::move(pending), refusal);
}

void TuningRuns::run(const std::vector<Cell>& runs, std::vector<std::size_t> pending, Refusal refusal) {
  if (catalog_ == nullptr) throw TuningNotStored();
  SweepSettings settings;
  settings.workers = machine_.workers;
  settings.kind = machine_.kind;
  settings.threads = machine_.threads;
  settings.paging = machine_.paging;
  SweepRunner runner(runs, *catalog_, settings);
  store_unusable(runner, pending, refusal);
  if (pending.empty()) return;
  const int workers = machine_.memory_bytes > 0 ? runner.fit(machine_.memory_bytes) : machine_.workers;
  SweepEvents events;
  if (machine_.observer != nullptr) events = machine_.observer->begin(purpose_, runner.cells(), pending, workers);
  events.stop = machine_.stop;
  runner.run(pending, store(), events);
  if (machine_.observer != nullptr) machine_.observer->end();
  if (machine_.stop.is_asked()) throw TuningInterrupted();
}

// Stores runs that cannot start. A value that a part rejects when it sees the problem (a step beyond the limit of its theory) is a bad
// value and does not end the study.
void TuningRuns::store_unusable(SweepRunner& runner, std::vector<std::size_t>& pending, Refusal refusal) {
  std::map<std::size_t, std::optional<ConfigError>> reasons;  // by cell; empty = can run
  for (const std::size_t i : pending) {
    const auto [reason, is_new] = reasons.try_emplace(i / static_cast<std::size_t>(seeds_));
    if (is_new) try {
        runner.check({i});
      } catch (const ConfigError& error) {
        reason->second = error;
      }
  }
  const auto reason_of = [&](std::size_t i) -> const std::optional<ConfigError>& {
    return reasons.at(i / static_cast<std::size_t>(seeds_));
  };
  if (std::ranges::none_of(pending, [&](std::size_t i) { return reason_of(i).has_value(); })) return;
  std::set<AxisLabels> can_run;
  for (const Cell& cell : runner.cells())
    if (is_stored(cell)) can_run.insert(cell.axis_labels);
  for (const std::size_t i : pending)
    if (!reason_of(i)) can_run.insert(runner.cells()[i].axis_labels);
  for (const std::size_t i : pending)
    if (refusal == Refusal::is_an_error && !can_run.contains(runner.cells()[i].axis_labels)) throw *reason_of(i);
  for (const std::size_t i : pending)
    if (reason_of(i)) store().append(failed_record(runner.cells()[i], reason_of(i)->what()), {});
  std::erase_if(pending, [&](std::size_t i) { return reason_of(i).has_value(); });
}

bool TuningRuns::has_failed(const Cell& cell) const {
  return std::ranges::any_of(records(cell), [](const RunRecord& record) { return record.status == RunStatus::failed; });
}

std::vector<RunRecord> TuningRuns::records(const Cell& cell) const {
  std::vector<RunRecord> records;
  for (std::int64_t s = 0; s < seeds_; ++s) records.push_back(store_->record(to_hex(seeded(cell, s).hash)));
  return records;
}

std::vector<double> TuningRuns::bits(const Cell& cell, Against which) const {
  std::vector<double> bits;
  for (const RunRecord& record : records(cell))
    if (which == Against::seconds)
      bits.push_back(store_->rows(record.run).back().simulated_s);
    else
      bits.push_back(static_cast<double>(record.bits_up) + (which == Against::bits_both ? static_cast<double>(record.bits_down) : 0));
  return bits;
}

RunTrace TuningRuns::trace_of(const Cell& cell, const RunRecord& record, const TuneSettings& settings) const {
  return make_trace(store_->rows(record.run), settings.measure, cell.scenario.evaluate.divergence_factor.value_or(kDivergenceFactor),
                    columns_of_measures(cell.scenario.evaluate.measures));
}

TuningOutcome TuningRuns::outcome(const Cell& cell, const TuneSettings& settings, Against against, double budget) const {
  TuningOutcome outcome{.evaluations = std::numeric_limits<std::size_t>::max()};
  const double share = 1 / static_cast<double>(seeds_);
  for (const RunRecord& record : records(cell)) {
    outcome.bits_up += share * static_cast<double>(record.bits_up);
    const RunTrace trace = trace_of(cell, record, settings);
    const EndPoint end = end_point(trace, against, std::min(budget, trace.end_of(against)));
    const bool is_good = record.status == RunStatus::done && std::isfinite(end.value) && !end.diverges;
    outcome.cost += is_good ? share * (settings.is_highest_best ? -end.value : end.value) : std::numeric_limits<double>::infinity();
    outcome.evaluations = std::min(outcome.evaluations, end.num_evaluations);
    if (!is_good && outcome.why.empty())
      outcome.why = !record.message.empty()                                ? record.message
                    : record.status == RunStatus::diverged || end.diverges ? "diverged"
                                                                           : "has no value of " + settings.measure + " at the end";
  }
  return outcome;
}

TuningOutcome TuningRuns::outcome_at(const Cell& cell, const TuneSettings& settings, double target) const {
  const Direction direction = settings.is_highest_best ? Direction::higher_is_better : Direction::lower_is_better;
  std::vector<double> logs;
  bool starts_there = false;
  for (const RunRecord& record : records(cell)) {
    const double bits = trace_of(cell, record, settings).first_reaching(settings.budget_bits, target, direction);
    starts_there = starts_there || bits == 0;
    if (record.status == RunStatus::done && std::isfinite(bits) && bits > 0) logs.push_back(std::log(bits));
  }
  TuningOutcome outcome = this->outcome(cell, settings, Against::round, std::numeric_limits<double>::infinity());
  outcome.missed = static_cast<std::size_t>(seeds_) - logs.size();
  outcome.bits_up = kNotMeasured;
  outcome.starts_there = starts_there;
  if (logs.empty()) return outcome;
  outcome.cost = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  outcome.bits_up = std::exp(outcome.cost);
  outcome.why.clear();
  return outcome;
}

}  // namespace fl
