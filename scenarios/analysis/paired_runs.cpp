#include "scenarios/analysis/paired_runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "scenarios/results/end_point.hpp"

namespace fl {
namespace {

double value_of_constant(const RunRecord& record, const char* name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? kNotMeasured : found->value;
}

// A run's value in a pair.
struct PairValue {
  double value = kNotMeasured;
  bool is_capped = false;
  std::size_t num_evaluations = kNoEvaluations;  // in the window; kNoEvaluations for a run that diverged
};

// The measure of a pair, and how its values are bounded.
struct Rules {
  std::size_t measure = 0;
  Against against = Against::bits_up;
  double window = kWindow;
  bool is_share = false, is_gap = false, is_lower_better = true;
  bool is_accuracy = false;  // a share of rows that are labelled correctly, which guessing bounds by 1 / classes
  std::optional<double> chance{};
};

// Returns the value that a diverged run counts as: chance for an accuracy, and the initial model's value for objectives and other shares.
// NaN for other measures.
double bound_of(const StudyRun& run, const Rules& rules) {
  const RunTrace& trace = run.traces[rules.measure];
  if (rules.is_share && rules.chance) return *rules.chance;
  if (const double classes = value_of_constant(run.record, "num_classes"); rules.is_accuracy && classes > 0) return 1 / classes;
  const bool is_objective = rules.is_gap || std::isfinite(trace.diverged_above);
  return (is_objective || rules.is_share) && !trace.value.empty() ? trace.value.front() : kNotMeasured;
}

// Returns whether a column is an accuracy over labels.
bool is_accuracy_of_labels(const MeasureColumn& column) {
  return column.shown == MeasureColumn::Shown::share && direction_of(column) == Direction::higher_is_better &&
         (column.name == "test_accuracy" || column.name.starts_with("client_accuracy_"));
}

bool has_ended(const StudyRun& run) { return run.record.status == RunStatus::done || run.record.status == RunStatus::diverged; }

PairValue value_of(const StudyRun& run, double budget, const Rules& rules) {
  const double bound = bound_of(run, rules);
  if (run.record.status == RunStatus::diverged) return {.value = bound, .is_capped = true};
  const EndPoint end = end_point(run.traces[rules.measure], rules.against, budget, rules.window);
  if (end.diverges) return {.value = bound, .is_capped = true};
  const bool is_beyond = rules.is_lower_better ? end.value > bound : end.value < bound;
  PairValue value{.value = is_beyond ? bound : end.value, .is_capped = is_beyond, .num_evaluations = end.num_evaluations};
  // A gap below the rounding of f is that rounding.
  const double start = run.traces[rules.measure].value.empty() ? 0 : run.traces[rules.measure].value.front();
  const double f_start = std::isfinite(run.record.f_star) ? start + run.record.f_star : start;
  if (rules.is_gap && std::isfinite(value.value))
    value.value = std::max(value.value, std::numeric_limits<double>::epsilon() * std::max(std::abs(start), std::abs(f_start)));
  return value;
}

// Returns the bits that both runs reached; a diverged run bounds nothing. NaN if both diverged.
double budget_of(const StudyRun& a, const StudyRun& b, const Rules& rules) {
  double budget = kNotMeasured;
  for (const StudyRun* run : {&a, &b})
    if (run->record.status != RunStatus::diverged) budget = std::fmin(budget, run->traces[rules.measure].end_of(rules.against));
  return budget;
}

double first_known(double a, double b) { return std::isfinite(a) ? a : b; }

double place_on_axis(const PairedRun& pair, Heterogeneity axis) {
  switch (axis) {
    case Heterogeneity::at_start: return pair.zeta_at_start > 0 ? std::log(pair.zeta_at_start) : kNotMeasured;
    case Heterogeneity::at_optimum: return pair.zeta_at_optimum > 0 ? std::log(pair.zeta_at_optimum) : kNotMeasured;
    case Heterogeneity::order: return static_cast<double>(pair.level);
  }
  return kNotMeasured;
}

void compare_runs(PairedRun& pair, const Study& study, const Rules& rules, Heterogeneity axis) {
  const StudyRun &a = study.runs[pair.a.run], &b = study.runs[pair.b.run];
  pair.zeta_at_start = first_known(a.record.zeta_sq, b.record.zeta_sq);
  pair.zeta_at_optimum = first_known(zeta_at_optimum(a.record), zeta_at_optimum(b.record));
  pair.x = place_on_axis(pair, axis);
  for (const StudyRun* run : {&a, &b})
    if (!has_ended(*run)) pair.why = std::string("a run ") + (run->record.status == RunStatus::failed ? "failed" : "was interrupted");
  if (!pair.why.empty()) return;
  pair.budget = budget_of(a, b, rules);
  const PairValue of_a = value_of(a, pair.budget, rules), of_b = value_of(b, pair.budget, rules);
  pair.a.value = of_a.value;
  pair.b.value = of_b.value;
  pair.a.is_capped = of_a.is_capped;
  pair.b.is_capped = of_b.is_capped;
  pair.num_evaluations = std::min(of_a.num_evaluations, of_b.num_evaluations);
  pair.difference = rules.is_gap ? std::log(pair.a.value / pair.b.value) : pair.a.value - pair.b.value;
  if (!std::isfinite(pair.difference))
    pair.why = of_a.is_capped || of_b.is_capped ? "a run diverged, and this measure has no bound for it" : "not measured at equal bits";
  else if (std::isnan(pair.x))
    pair.why = std::string("zeta^2 at ") + (axis == Heterogeneity::at_start ? "x_0" : "x*") + " is not known or not above 0";
}

std::map<std::uint64_t, std::size_t> runs_by_seed(const Study& study, const StudyCell* cell) {
  std::map<std::uint64_t, std::size_t> runs;
  if (cell != nullptr)
    for (const std::size_t run : cell->runs) runs.emplace(study.runs[run].record.seed, run);
  return runs;
}

std::size_t index_of_method(const Study& study, const std::string& label) {
  return static_cast<std::size_t>(std::ranges::find(study.methods, label) - study.methods.begin());
}

}  // namespace

double zeta_at_optimum(const RunRecord& record) { return value_of_constant(record, "zeta_sq_at_optimum"); }

std::vector<std::size_t> first_of_runs(const Study& study) {
  std::vector<std::size_t> first(study.runs.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  for (const StudyCell& cell : study.cells)
    for (std::size_t i = 0; i < cell.runs.size(); ++i) first[cell.runs[i]] = cell.runs[cell.first[i]];
  return first;
}

void pair_runs(Contrasts& contrasts, const Study& study, std::size_t measure, Against against, std::optional<double> chance) {
  const MeasureColumn& column = study.columns[measure];
  const Rules rules{.measure = measure,
                    .against = against,
                    .window = study.rules.window,
                    .is_share = column.shown == MeasureColumn::Shown::share,
                    .is_gap = contrasts.is_log_ratio,
                    .is_lower_better = direction_of(column) == Direction::lower_is_better,
                    .is_accuracy = is_accuracy_of_labels(column),
                    .chance = chance};
  for (std::size_t pair = 0; pair < contrasts.pairs.size(); ++pair)
    for (std::size_t group = 0; group < contrasts.groups.size(); ++group)
      for (std::size_t level = 0; level < contrasts.levels.size(); ++level)
        for (const Panel& panel : study.panels) {
          if (panel.rest != contrasts.groups[group] || panel.level != contrasts.levels[level]) continue;
          const auto of_a = runs_by_seed(study, study.find(panel, index_of_method(study, contrasts.pairs[pair].a)));
          const auto of_b = runs_by_seed(study, study.find(panel, index_of_method(study, contrasts.pairs[pair].b)));
          for (const auto& [seed, run_a] : of_a) {
            const auto run_b = of_b.find(seed);
            if (run_b == of_b.end()) continue;
            PairedRun one{.pair = pair, .group = group, .level = level, .seed = seed, .a = {.run = run_a}, .b = {.run = run_b->second}};
            compare_runs(one, study, rules, contrasts.heterogeneity);
            contrasts.differences.push_back(std::move(one));
          }
        }
}

}  // namespace fl
