#include "scenarios/sweep/study_plan.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>

#include "scenarios/results/end_point.hpp"
#include "scenarios/sweep/tuned_cells.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl {

namespace {

constexpr double kTrial_s = 0.2;  // per combination, if there are few
constexpr double kLeastTrial_s = 0.002;
constexpr std::size_t kMostSeeds = 8;  // per combination, if each seed draws its own data
constexpr double kAllTrials_s = 4;     // total, approximately

std::vector<Combination> combinations_of(const std::vector<Cell>& cells) {
  std::vector<Combination> combinations;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || cells[i].axis_labels != cells[combinations.back().cell].axis_labels) combinations.push_back({.cell = i});
    ++combinations.back().seeds;
  }
  return combinations;
}

// Chooses combinations in the order of their hashes, which is pseudo-random and reproducible: first those that add a new label, then any.
std::vector<std::size_t> choose(const std::vector<Combination>& combinations, const std::vector<Cell>& cells, std::size_t most) {
  std::vector<std::size_t> order(combinations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= most) return order;
  std::ranges::sort(order, {}, [&](std::size_t c) { return cells[combinations[c].cell].hash; });
  std::set<std::pair<std::string, std::string>> met;
  const auto brings_label = [&](std::size_t c) {
    bool is_new = false;
    for (const auto& label : cells[combinations[c].cell].axis_labels) is_new = met.insert(label).second || is_new;
    return is_new;
  };
  std::vector<std::size_t> chosen, others;
  for (const std::size_t c : order) (brings_label(c) ? chosen : others).push_back(c);
  chosen.insert(chosen.end(), others.begin(), others.end());
  chosen.resize(most);
  std::ranges::sort(chosen);
  return chosen;
}

// Returns the number of labels that two combinations of one sweep share.
std::size_t shared_labels(const Cell& a, const Cell& b) {
  std::size_t shared = 0;
  for (std::size_t axis = 0; axis < a.axis_labels.size(); ++axis)
    shared += a.axis_labels[axis].second == b.axis_labels[axis].second ? 1 : 0;
  return shared;
}

void take_from_nearest(std::vector<Combination>& combinations, const std::vector<std::size_t>& tried, const std::vector<Cell>& cells) {
  for (Combination& one : combinations) {
    if (one.is_tried) continue;
    const auto nearest =
        std::ranges::max_element(tried, {}, [&](std::size_t t) { return shared_labels(cells[one.cell], cells[combinations[t].cell]); });
    one.trial = combinations[*nearest].trial;
  }
}

// Returns the number of seeds to try. Data that depends on the seed may also differ in size.
std::size_t seeds_to_try(const Combination& one, const std::vector<Cell>& cells) {
  return cells[one.cell].scenario.data.synthetic.kind.empty() ? 1 : std::min(one.seeds, kMostSeeds);
}

// Combines the trials of all tried seeds: means of time and bits, the maximum of memory, and a failure if there is one.
Trial mean_of(const std::vector<Trial>& trials) {
  Trial mean = trials.front();
  const auto average = [&](double Calibration::*field) {
    double sum = 0;
    for (const Trial& trial : trials) sum += trial.calibration.*field;
    mean.calibration.*field = sum / static_cast<double>(trials.size());
  };
  for (const auto field : {&Calibration::prepare_s, &Calibration::new_seed_s, &Calibration::once_s, &Calibration::rounds_s,
                           &Calibration::test_set_s, &Calibration::losses_s, &Calibration::bits_up, &Calibration::bits_down})
    average(field);
  for (const Trial& trial : trials) {
    mean.peak_bytes = std::max(mean.peak_bytes, trial.peak_bytes);
    mean.calibration.growth_bytes = std::max(mean.calibration.growth_bytes, trial.calibration.growth_bytes);
    if (mean.failure.empty()) mean.failure = trial.failure;
  }
  return mean;
}

// Sets the bits of combinations that match another one to the bits of that combination.
void match_bits(std::vector<Combination>& combinations, const std::vector<Cell>& cells) {
  std::map<std::vector<std::pair<std::string, std::string>>, double> bits_up;
  for (const Combination& one : combinations) bits_up[cells[one.cell].axis_labels] = one.trial.calibration.bits_up;
  for (Combination& one : combinations) {
    if (!cells[one.cell].match) continue;
    const auto reference = bits_up.find(cells[one.cell].reference_labels());
    if (reference != bits_up.end()) one.trial.calibration.bits_up = reference->second;
  }
}

double seconds_for_each(const PlanSettings& settings, std::size_t count) {
  if (settings.seconds > 0) return settings.seconds;
  return std::clamp(kAllTrials_s * settings.workers / static_cast<double>(count), kLeastTrial_s, kTrial_s);
}

// Returns what counts towards the budget; 1 for simulated time, which is not predicted: every method is assumed to take as long.
double budget_bits(const Calibration& c, const Cell& cell) {
  if (cell.tune && cell.tune->budget_bits == Against::seconds) return 1;
  return c.bits_up + (cell.tune && cell.tune->budget_bits == Against::bits_both ? c.bits_down : 0);
}

// Returns, as a fraction of the scenario's rounds, the rounds after which each combination has sent its budget; 1 without a budget.
std::vector<double> shares_of_rounds(const std::vector<Combination>& combinations, const std::vector<Cell>& cells) {
  std::map<AxisLabels, double> bits;
  for (const Combination& one : combinations) bits[cells[one.cell].axis_labels] = budget_bits(one.trial.calibration, cells[one.cell]);
  std::vector<double> shares;
  for (const Combination& one : combinations) {
    const Cell& cell = cells[one.cell];
    const auto budget = bits.find(cell.budget_labels);
    const double own = budget_bits(one.trial.calibration, cell);
    const auto most = static_cast<double>(kMostRounds);
    if (cell.tune && cell.tune->at == TuneSettings::At::target) {  // where the target is reached is not known: its latest place
      shares.push_back(cell.axis_labels == cell.budget_labels ? 1 : most);
      continue;
    }
    shares.push_back(cell.budget_labels.empty() || budget == bits.end() ? 1 : own > 0 ? std::min(most, budget->second / own) : most);
  }
  return shares;
}

// Scales a calibration to another number of rounds.
void scale(Calibration& c, double share) {
  for (const auto field :
       {&Calibration::rounds_s, &Calibration::test_set_s, &Calibration::losses_s, &Calibration::bits_up, &Calibration::bits_down})
    c.*field *= share;
  c.total_rounds = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(c.total_rounds)));
}

// Plans tuning, and scales the study's runs to their expected length.
void plan_tuning(StudyPlan& plan, const std::vector<Cell>& cells) {
  const std::vector<double> shares = shares_of_rounds(plan.combinations, cells);
  std::map<std::size_t, TuningEffort> efforts;
  for (const TuningEffort& effort : expected_tuning(cells)) efforts[effort.cell] = effort;
  for (std::size_t i = 0; i < plan.combinations.size(); ++i) {
    Combination& one = plan.combinations[i];
    Calibration& c = one.trial.calibration;
    Calibration to_budget = c;
    scale(to_budget, shares[i]);
    if (const auto effort = efforts.find(one.cell); effort != efforts.end()) {
      one.candidates = effort->second.candidates;
      one.tuning_runs = effort->second.runs + effort->second.budget_runs;
      const Cell& cell = cells[one.cell];
      const bool is_late = may_measure_late(cell.scenario, cell.tune ? *cell.tune : TuneSettings{});
      const auto tuning_s = [&](const Calibration& run) {
        return run.total_s() - (needs_test_set(cell.scenario) ? 0 : run.test_set_s) - (is_late ? (1 - kWindow) * run.losses_s : 0);
      };
      plan.tuning_s += effort->second.runs * tuning_s(c) + effort->second.budget_runs * tuning_s(to_budget);
    }
    plan.tuning_runs += one.tuning_runs;
    if (cells[one.cell].goes_to_budget) c = to_budget;
  }
}

void add_up(StudyPlan& plan) {
  std::uint64_t peak = 0, growth = 0;
  for (const Combination& one : plan.combinations) {
    const Calibration& c = one.trial.calibration;
    plan.study_s += one.all_s();
    plan.bits += static_cast<double>(one.seeds) * (c.bits_up + c.bits_down);
    plan.all_good = plan.all_good && one.trial.failure.empty();
    peak = std::max(peak, one.trial.peak_bytes);
    growth = std::max(growth, c.growth_bytes);
  }
  plan.worker_bytes = peak + growth;
}

}  // namespace

double Combination::all_s() const {
  return static_cast<double>(seeds) * run_s() + static_cast<double>(seeds - 1) * trial.calibration.new_seed_s;
}

StudyPlan plan_study(SweepRunner& runner, const PlanSettings& settings) {
  StudyPlan plan{.combinations = combinations_of(runner.cells())};
  const std::vector<std::size_t> chosen = choose(plan.combinations, runner.cells(), settings.most);
  std::vector<std::size_t> firsts, cells;
  for (const std::size_t c : chosen) {
    firsts.push_back(plan.combinations[c].cell);
    for (std::size_t seed = 0; seed < seeds_to_try(plan.combinations[c], runner.cells()); ++seed) cells.push_back(firsts.back() + seed);
  }
  const Stopwatch checking;
  runner.check(firsts);
  plan.device = runner.device_need();
  plan.facts = runner.facts();
  plan.start_s = checking.seconds() * static_cast<double>(plan.combinations.size()) / static_cast<double>(chosen.size());

  const std::vector<Trial> trials = runner.try_out(cells, seconds_for_each(settings, cells.size()), settings.stop);
  auto next = trials.begin();
  for (const std::size_t c : chosen) {
    const auto end = next + static_cast<std::ptrdiff_t>(seeds_to_try(plan.combinations[c], runner.cells()));
    plan.combinations[c].trial = mean_of({next, end});
    plan.combinations[c].is_tried = true;
    next = end;
  }
  plan.tried = chosen.size();
  take_from_nearest(plan.combinations, chosen, runner.cells());
  match_bits(plan.combinations, runner.cells());
  plan_tuning(plan, runner.cells());
  add_up(plan);
  return plan;
}

double wall_s(const StudyPlan& plan, int workers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int w = 0; w < workers; ++w) free_at.push(plan.start_s + plan.tuning_s / workers);
  double end = 0;
  for (const Combination& one : plan.combinations)
    for (std::size_t seed = 0; seed < one.seeds; ++seed) {
      const double ends = free_at.top() + std::max(0.0, one.all_s() / static_cast<double>(one.seeds));
      free_at.pop();
      free_at.push(ends);
      end = std::max(end, ends);
    }
  return end;
}

}  // namespace fl
