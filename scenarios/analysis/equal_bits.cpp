#include "scenarios/analysis/equal_bits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace fl {
namespace {

// A run's value at a budget, and how fresh it is.
struct Held {
  double value = kNotMeasured;
  double share = 0;  // RunTrace::freshness
};

Held held_at(const RunTrace& trace, Against against, double budget) {
  const std::optional<std::size_t> last = trace.last_at(against, budget);
  if (!last || !(budget > 0)) return {};
  return {trace.value[*last], trace.freshness(against, budget)};
}

std::map<std::uint64_t, const StudyRun*> runs_by_seed(const Study& study, const StudyCell& cell) {
  std::map<std::uint64_t, const StudyRun*> runs;
  for (const std::size_t run : cell.runs) runs.emplace(study.runs[run].record.seed, &study.runs[run]);
  return runs;
}

std::string percent(double share) { return std::to_string(static_cast<int>(std::floor(100 * share))) + "%"; }

// The values of both methods at the budget of each seed that both have.
struct Pairs {
  std::vector<double> method, baseline, budget;
};

Pairs pair_up(EqualBitsComparison& comparison, const Study& study, const StudyCell& cell, const StudyCell& base, std::size_t measure,
              Against against) {
  Pairs pairs;
  const auto baseline_runs = runs_by_seed(study, base);
  for (const auto& [seed, run] : runs_by_seed(study, cell)) {
    const auto other = baseline_runs.find(seed);
    if (other == baseline_runs.end()) continue;
    const RunTrace &trace = run->traces[measure], &base_trace = other->second->traces[measure];
    const double budget = std::min(trace.end_of(against), base_trace.end_of(against));
    const Held mine = held_at(trace, against, budget), its = held_at(base_trace, against, budget);
    if (std::isnan(mine.value) || std::isnan(its.value)) continue;
    comparison.measured_share = std::min({comparison.measured_share, mine.share, its.share});
    comparison.seeds.push_back(seed);
    comparison.differences.push_back(mine.value - its.value);
    pairs.method.push_back(mine.value);
    pairs.baseline.push_back(its.value);
    pairs.budget.push_back(budget);
  }
  return pairs;
}

EqualBitsComparison compare(const Study& study, const StudyCell& cell, const StudyCell* base, std::size_t measure, Against against) {
  EqualBitsComparison comparison{.panel = cell.panel, .method = cell.method};
  if (base == nullptr) {
    comparison.why = "the baseline has no runs here";
  } else if (!study.all_done(cell) || !study.all_done(*base)) {
    const bool mine = !study.all_done(cell);
    comparison.why = (mine ? "" : "baseline: ") + study.runs_text(mine ? cell : *base);
  }
  if (!comparison.why.empty()) {
    comparison.paired = paired_difference({}, {});
    comparison.value = comparison.baseline_value = comparison.budget_bits = estimate_mean({});
    return comparison;
  }
  const Pairs pairs = pair_up(comparison, study, cell, *base, measure, against);
  comparison.paired = paired_difference(pairs.method, pairs.baseline);
  comparison.value = estimate_mean(pairs.method);
  comparison.baseline_value = estimate_mean(pairs.baseline);
  comparison.budget_bits = estimate_mean(pairs.budget);
  return comparison;
}

void judge(EqualBitsComparison& comparison, Direction direction) {
  if (!comparison.why.empty()) return;
  const PairedDifference& paired = comparison.paired;
  if (comparison.seeds.size() < 2)
    comparison.why = comparison.seeds.empty() ? "no pair of runs was measured at equal bits" : "a single seed has no interval";
  else if (comparison.measured_share < kFreshShare)
    comparison.why =
        "measured too rarely: a value is from " + percent(comparison.measured_share) + " of the bits; evaluate.every = 1 avoids it";
  else if (paired.difference.student.contains(0) || paired.difference.bootstrap.contains(0))
    comparison.why = "the interval contains zero";
  else if (!paired.is_claim())
    comparison.why = "not after Holm's correction";
  else
    comparison.verdict = (paired.difference.mean < 0) == (direction == Direction::lower_is_better) ? Verdict::better : Verdict::worse;
}

// The panels that share a budget have one name.
std::string group_of(const Study& study, std::size_t panel, Budget budget) {
  const Panel& p = study.panels[panel];
  return budget == Budget::of_panel ? std::to_string(panel) : p.rest;
}

bool takes_part(const Study& study, const StudyCell& cell, std::size_t measure) { return !study.traces(cell, measure).empty(); }

using CommonBudgets = std::map<std::pair<std::string, std::uint64_t>, double>;  // by group and seed

CommonBudgets common_budgets(const Study& study, std::size_t measure, Against against, Budget budget) {
  CommonBudgets budgets;
  for (const StudyCell& cell : study.cells)
    if (takes_part(study, cell, measure))
      for (const auto& [seed, run] : runs_by_seed(study, cell)) {
        const double end = run->traces[measure].end_of(against);
        const auto [common, is_new] = budgets.try_emplace({group_of(study, cell.panel, budget), seed}, end);
        common->second = std::min(common->second, end);
      }
  return budgets;
}

}  // namespace

std::vector<EqualBitsComparison> compare_at_equal_bits(const Study& study, std::size_t measure, Against against) {
  std::vector<EqualBitsComparison> comparisons;
  for (const Panel& panel : study.panels)
    for (const std::size_t cell : panel.cells)
      if (study.cells[cell].method != study.baseline)
        comparisons.push_back(compare(study, study.cells[cell], study.find(panel, study.baseline), measure, against));
  std::vector<PairedDifference*> family;
  for (EqualBitsComparison& comparison : comparisons)
    if (comparison.seeds.size() > 1) family.push_back(&comparison.paired);
  correct_family(family);
  for (EqualBitsComparison& comparison : comparisons) judge(comparison, direction_of(study.measures[measure]));
  return comparisons;
}

std::vector<AtCommonBits> values_at_common_bits(const Study& study, std::size_t measure, Against against, Budget budget) {
  const CommonBudgets budgets = common_budgets(study, measure, against, budget);
  std::vector<AtCommonBits> results;
  for (std::size_t p = 0; p < study.panels.size(); ++p)
    for (const std::size_t cell : study.panels[p].cells) {
      AtCommonBits result{.panel = p, .method = study.cells[cell].method};
      std::vector<double> values, bits;
      if (takes_part(study, study.cells[cell], measure))
        for (const auto& [seed, run] : runs_by_seed(study, study.cells[cell])) {
          const double common = budgets.at({group_of(study, p, budget), seed});
          const Held held = held_at(run->traces[measure], against, common);
          values.push_back(held.value);
          bits.push_back(common);
          result.measured_share = std::min(result.measured_share, held.share);
        }
      result.value = estimate_mean(values);
      result.budget_bits = estimate_mean(bits);
      results.push_back(result);
    }
  return results;
}

std::vector<BitsToTarget> bits_to_target(const Study& study, std::size_t measure, Against against, double target) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const Direction direction = direction_of(study.measures[measure]);
  std::vector<BitsToTarget> results;
  for (const StudyCell& cell : study.cells) {
    std::vector<ReachTime> times;
    for (const std::size_t index : cell.runs) {
      const StudyRun& run = study.runs[index];
      const double reached = run.traces[measure].first_reaching(against, target, direction);
      const double end = run.record.status == RunStatus::diverged ? kNever : run.traces[measure].end_of(against);
      times.push_back(reached < kNever ? ReachTime{reached, true} : ReachTime{end, false});
    }
    results.push_back({.panel = cell.panel, .method = cell.method, .bits = reach_summary(times)});
  }
  return results;
}

double default_target(const Study& study, std::size_t measure) {
  const bool lower = direction_of(study.measures[measure]) == Direction::lower_is_better;
  double target = kNotMeasured;
  for (const StudyCell& cell : study.cells)
    for (const std::size_t index : cell.runs) {
      const StudyRun& run = study.runs[index];
      if (cell.method != study.baseline || !run.is_done() || run.traces[measure].value.empty()) continue;
      const double last = run.traces[measure].value.back();
      target = std::isnan(target) ? last : lower ? std::max(target, last) : std::min(target, last);
    }
  return target;
}

}  // namespace fl
