#include "scenarios/analysis/equal_bits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "scenarios/analysis/baseline.hpp"

namespace fl {
namespace {

// The run of a seed, and the index of the first identical run in its cell.
struct SeedRun {
  const StudyRun* run = nullptr;
  std::size_t first = 0;
};

std::map<std::uint64_t, SeedRun> runs_by_seed(const Study& study, const StudyCell& cell) {
  std::map<std::uint64_t, SeedRun> runs;
  for (std::size_t i = 0; i < cell.runs.size(); ++i) {
    const StudyRun& run = study.runs[cell.runs[i]];
    runs.emplace(run.record.seed, SeedRun{&run, cell.first[i]});
  }
  return runs;
}

CellEnds summary_of(const std::vector<EndPoint>& ends) {
  CellEnds summary{.num_runs = ends.size()};
  std::vector<double> values;
  for (const EndPoint& end : ends) {
    values.push_back(end.diverges ? kNotMeasured : end.value);
    summary.num_oscillating += end.oscillates ? 1 : 0;
    summary.num_diverged += end.diverges ? 1 : 0;
    summary.num_at_start += end.at_start ? 1 : 0;
    summary.num_evaluations = values.size() == 1 ? end.num_evaluations : std::min(summary.num_evaluations, end.num_evaluations);
    summary.deviation += end.deviation / static_cast<double>(ends.size());
  }
  summary.value = estimate_mean(values);
  return summary;
}

std::string diverged_text(const CellEnds& ends) {
  return std::to_string(ends.num_diverged) + "/" + std::to_string(ends.num_runs) + " diverged at this budget";
}

void add_remark(std::string& remarks, const std::string& remark) { remarks += (remarks.empty() ? "" : ", ") + remark; }

// The end points of both methods at the budget of each pair.
struct Pairs {
  std::vector<EndPoint> method, baseline;
  std::vector<double> budget;
};

// Returns the budget of a pair: the bits that both runs reached, or the given fraction of the baseline's bits. A run that ends slightly
// before this fraction, such as one of a method with matched bits, is compared at its end.
double budget_of(const RunTrace& trace, const RunTrace& base, Against against, double share) {
  const double own = trace.end_of(against), budget = share * base.end_of(against);
  if (std::isnan(share)) return std::min(own, base.end_of(against));
  return own < budget && own * kFewBits >= budget ? own : budget;
}

Pairs pair_up(EqualBitsComparison& comparison, const Study& study, const StudyCell& cell, const StudyCell& base, std::size_t measure,
              Against against) {
  Pairs pairs;
  std::set<std::pair<std::size_t, std::size_t>> seen;
  const auto baseline_runs = runs_by_seed(study, base);
  for (const auto& [seed, mine] : runs_by_seed(study, cell)) {
    const auto other = baseline_runs.find(seed);
    if (other == baseline_runs.end()) continue;
    const RunTrace &trace = mine.run->traces[measure], &base_trace = other->second.run->traces[measure];
    const double budget = budget_of(trace, base_trace, against, comparison.share);
    const EndPoint end = end_point(trace, against, budget, study.rules.window),
                   base_end = end_point(base_trace, against, budget, study.rules.window);
    const auto is_unmeasured = [](const EndPoint& one) { return std::isnan(one.value) && !one.diverges; };
    if (is_unmeasured(end) || is_unmeasured(base_end)) continue;
    ++comparison.num_seeds;
    if (!seen.insert({mine.first, other->second.first}).second) continue;
    comparison.seeds.push_back(seed);
    comparison.differences.push_back(end.value - base_end.value);
    pairs.method.push_back(end);
    pairs.baseline.push_back(base_end);
    pairs.budget.push_back(budget);
  }
  return pairs;
}

std::vector<double> values_of(const std::vector<EndPoint>& ends) {
  std::vector<double> values;
  for (const EndPoint& end : ends) values.push_back(end.diverges ? kNotMeasured : end.value);
  return values;
}

// Returns the number of runs of a cell that end before their budget.
std::size_t runs_that_end_before(const Study& study, const StudyCell& cell, const StudyCell& base, std::size_t measure, Against against,
                                 double share) {
  const auto baseline_runs = runs_by_seed(study, base);
  std::size_t count = 0;
  for (const auto& [seed, mine] : runs_by_seed(study, cell)) {
    const auto other = baseline_runs.find(seed);
    if (other == baseline_runs.end()) continue;
    const RunTrace& trace = mine.run->traces[measure];
    const double budget = budget_of(trace, other->second.run->traces[measure], against, share);
    count += trace.end_of(against) < budget * (1 - 1e-12) ? 1 : 0;
  }
  return count;
}

EqualBitsComparison compare(const Study& study, const StudyCell& cell, const StudyCell* base, std::size_t measure, Against against,
                            double share = kNotMeasured) {
  EqualBitsComparison comparison{.panel = cell.panel, .method = cell.method, .share = share};
  if (base == nullptr) {
    comparison.why = "the baseline has no runs here";
  } else if (!study.all_done(cell) || !study.all_done(*base)) {
    const bool mine = !study.all_done(cell);
    comparison.why = (mine ? "" : "baseline: ") + study.runs_text(mine ? cell : *base);
  } else if (const std::size_t ended = runs_that_end_before(study, cell, *base, measure, against, share); ended > 0) {
    comparison.why = std::to_string(ended) + " of " + std::to_string(cell.runs.size()) + " runs end before this budget";
  }
  Pairs pairs;
  if (comparison.why.empty()) pairs = pair_up(comparison, study, cell, *base, measure, against);
  comparison.paired = paired_difference(values_of(pairs.method), values_of(pairs.baseline));
  comparison.value = summary_of(pairs.method);
  comparison.baseline_value = summary_of(pairs.baseline);
  comparison.budget_bits = estimate_mean(pairs.budget);
  if (!comparison.why.empty()) return comparison;

  const double distance = std::abs(comparison.paired.difference.mean);
  const std::uint64_t refused = study.refused(cell), base_refused = study.refused(*base);
  if (comparison.value.oscillates(distance)) add_remark(comparison.remarks, "oscillates");
  if (comparison.baseline_value.oscillates(distance)) add_remark(comparison.remarks, "baseline oscillates");
  if (refused > 0) add_remark(comparison.remarks, std::to_string(refused) + " updates refused");
  if (base_refused > 0) add_remark(comparison.remarks, "baseline: " + std::to_string(base_refused) + " updates refused");
  if (refused + base_refused > 0 && !study.rules.claims_despite_refused)
    comparison.why = std::to_string(refused + base_refused) + " updates were refused, not finite" + (refused == 0 ? " (baseline)" : "");
  return comparison;
}

// Returns the reason why the end points themselves carry no claim; "" if they carry one.
std::string why_of_ends(const CellEnds& ends, double window, Against against) {
  if (ends.num_diverged > 0) return diverged_text(ends);
  return why_no_claim({.value = ends.value.mean, .num_evaluations = ends.num_evaluations, .at_start = ends.num_at_start > 0}, window,
                      against);
}

std::string why_nothing_is_said(const EqualBitsComparison& comparison, double window, Against against) {
  const PairedDifference& paired = comparison.paired;
  if (comparison.seeds.empty())
    return against == Against::seconds ? "no pair of runs was measured at equal times" : "no pair of runs was measured at equal bits";
  if (comparison.num_seeds == 1) return "a single seed has no interval";
  if (comparison.seeds.size() == 1)
    return "all " + std::to_string(comparison.num_seeds) + " seeds gave the same pair of runs, one observation: nothing in them is random";
  if (const std::string why = why_of_ends(comparison.value, window, against); !why.empty()) return why;
  if (const std::string why = why_of_ends(comparison.baseline_value, window, against); !why.empty()) return "baseline: " + why;
  if (!paired.has_spread) return "all pairs have the same difference, which does not tell how far chance moves it";
  if (paired.difference.student.contains(0)) return "the interval contains zero";
  if (paired.difference.bootstrap.contains(0)) return "the bootstrap interval contains zero";
  return paired.is_claim() ? "" : "not after Holm's correction";
}

void judge(EqualBitsComparison& comparison, Direction direction, double window, Against against) {
  if (comparison.why.empty()) comparison.why = why_nothing_is_said(comparison, window, against);
  if (comparison.why.empty())
    comparison.verdict =
        (comparison.paired.difference.mean < 0) == (direction == Direction::lower_is_better) ? Verdict::better : Verdict::worse;
}

// Returns a name that is equal for panels that share a budget.
std::string group_of(const Study& study, std::size_t panel, Budget budget) {
  const Panel& p = study.panels[panel];
  return budget == Budget::of_panel ? std::to_string(panel) : p.rest;
}

bool takes_part(const Study& study, const StudyCell& cell, std::size_t measure) { return !study.traces(cell, measure).empty(); }

using CommonBudgets = std::map<std::pair<std::string, std::uint64_t>, double>;  // by group and seed

CommonBudgets common_budgets(const Study& study, std::size_t measure, Against against, Budget budget) {
  CommonBudgets budgets;
  for (const StudyCell& cell : study.cells)
    if (takes_part(study, cell, measure) && !study.references.is_reference[cell.method])
      for (const auto& [seed, run] : runs_by_seed(study, cell)) {
        const double end = run.run->traces[measure].end_of(against);
        const auto [common, is_new] = budgets.try_emplace({group_of(study, cell.panel, budget), seed}, end);
        common->second = std::min(common->second, end);
      }
  return budgets;
}

// Returns remarks on a value. The distance to the nearest other method of the panel decides whether a swing matters.
std::string remarks_on(const AtCommonBits& at, const std::vector<AtCommonBits>& all) {
  if (at.ends.num_diverged > 0) return diverged_text(at.ends);
  if (at.ends.num_at_start > 0) return "still at its initial model";
  double nearest = std::numeric_limits<double>::infinity();
  for (const AtCommonBits& other : all)
    if (other.panel == at.panel && other.method != at.method && std::isfinite(other.ends.value.mean))
      nearest = std::min(nearest, std::abs(other.ends.value.mean - at.ends.value.mean));
  return at.ends.oscillates(std::isinf(nearest) ? 0 : nearest) ? "oscillates" : "";
}

}  // namespace

DifferenceUnit unit_of_difference(const Study& study, std::size_t measure, const EqualBitsComparison& comparison) {
  const double base = std::abs(comparison.baseline_value.value.mean);
  if (study.columns[measure].shown == MeasureColumn::Shown::share) return {100, " points"};
  return base > 0 ? DifferenceUnit{100 / base, "%"} : DifferenceUnit{};
}

std::vector<EqualBitsComparison> compare_at_equal_bits(const Study& study, std::size_t measure, Against against) {
  std::vector<EqualBitsComparison> comparisons;
  for (const Panel& panel : study.panels)
    for (const std::size_t cell : panel.cells)
      if (study.is_alternative(study.cells[cell].method))
        comparisons.push_back(compare(study, study.cells[cell], study.find(panel, study.references.baseline), measure, against));
  std::vector<PairedDifference*> family;
  for (EqualBitsComparison& comparison : comparisons)
    if (comparison.seeds.size() > 1) family.push_back(&comparison.paired);
  correct_family(family);
  for (EqualBitsComparison& comparison : comparisons) judge(comparison, direction_of(study.columns[measure]), study.rules.window, against);
  return comparisons;
}

std::vector<EqualBitsComparison> compare_at_shares(const Study& study, std::size_t measure, Against against,
                                                   std::span<const double> shares) {
  std::vector<EqualBitsComparison> comparisons;
  for (const double share : shares)
    for (const Panel& panel : study.panels)
      for (const std::size_t cell : panel.cells)
        comparisons.push_back(compare(study, study.cells[cell], study.find(panel, study.references.baseline), measure, against, share));
  std::vector<PairedDifference*> family;
  for (EqualBitsComparison& comparison : comparisons)
    if (comparison.seeds.size() > 1 && study.is_alternative(comparison.method)) family.push_back(&comparison.paired);
  correct_family(family);
  for (EqualBitsComparison& comparison : comparisons) {
    if (!study.is_alternative(comparison.method))
      comparison.why = comparison.why.empty() ? why_of_ends(comparison.value, study.rules.window, against) : comparison.why;
    else
      judge(comparison, direction_of(study.columns[measure]), study.rules.window, against);
  }
  return comparisons;
}

std::vector<AtCommonBits> values_at_common_bits(const Study& study, std::size_t measure, Against against, Budget budget) {
  const CommonBudgets budgets = common_budgets(study, measure, against, budget);
  std::vector<AtCommonBits> results;
  for (std::size_t p = 0; p < study.panels.size(); ++p)
    for (const std::size_t index : study.panels[p].cells) {
      const StudyCell& cell = study.cells[index];
      AtCommonBits result{.panel = p, .method = cell.method};
      std::vector<EndPoint> ends;
      std::vector<double> bits;
      const std::vector<std::size_t> distinct = cell.distinct();
      for (std::size_t i = 0; i < distinct.size() && takes_part(study, cell, measure); ++i) {
        const StudyRun& run = study.runs[distinct[i]];
        const auto common = budgets.find({group_of(study, p, budget), run.record.seed});
        if (common == budgets.end()) continue;  // only a reference has this seed
        bits.push_back(common->second);
        ends.push_back(end_point(run.traces[measure], against, bits.back(), study.rules.window));
      }
      result.ends = summary_of(ends);
      result.budget_bits = estimate_mean(bits);
      results.push_back(result);
    }
  for (AtCommonBits& result : results) result.remarks = remarks_on(result, results);
  return results;
}

std::vector<AtCommonBits> values_at_own_end(const Study& study, std::size_t measure, Against against) {
  std::vector<AtCommonBits> results;
  for (const StudyCell& cell : study.cells) {
    std::vector<EndPoint> ends;
    std::vector<double> bits;
    for (const RunTrace* trace : study.traces(cell, measure)) {
      bits.push_back(trace->end_of(against));
      ends.push_back(end_point(*trace, against, bits.back(), study.rules.window));
    }
    results.push_back({.panel = cell.panel, .method = cell.method, .ends = summary_of(ends), .budget_bits = estimate_mean(bits)});
  }
  return results;
}

std::vector<BitsToTarget> bits_to_target(const Study& study, std::size_t measure, Against against, double target) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const Direction direction = direction_of(study.columns[measure]);
  std::vector<BitsToTarget> results;
  for (const StudyCell& cell : study.cells) {
    std::vector<ReachTime> times;
    for (const std::size_t index : cell.distinct()) {
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
  const bool lower = direction_of(study.columns[measure]) == Direction::lower_is_better;
  double target = kNotMeasured;
  for (const StudyCell& cell : study.cells)
    for (const std::size_t index : cell.runs) {
      const StudyRun& run = study.runs[index];
      if (cell.method != study.references.baseline || !run.is_done() || run.traces[measure].value.empty()) continue;
      const RunTrace& trace = run.traces[measure];
      const double end = end_point(trace, Against::bits_up, trace.end_of(Against::bits_up), study.rules.window).value;
      if (!std::isfinite(end)) continue;
      target = std::isnan(target) ? end : lower ? std::max(target, end) : std::min(target, end);
    }
  return target;
}

}  // namespace fl
