#include "scenarios/sweep/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "fl_core/config/key_error.hpp"
#include "scenarios/file/key_places.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/sweep/tuned_cells.hpp"
#include "scenarios/sweep/tuning_grid.hpp"
#include "scenarios/sweep/tuning_record.hpp"
#include "scenarios/sweep/tuning_runs.hpp"

namespace fl {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One combination with one value of each tuned key.
struct Candidate {
  std::vector<std::size_t> at;   // indices into the method's grids
  Cell cell;                     // first seed, with the scenario's rounds
  std::optional<Value> matched;  // value of the option that matches bits
  MatchedBits match{};
  TuningOutcome outcome{};
};

// A combination that is tuned, or whose bits or level others must match.
struct Method {
  Cell cell;  // first seed, as in the file
  std::vector<TuningGrid> grids;
  std::deque<Candidate> candidates;
  Candidate* best = nullptr;
  double budget = kInfinity;
  std::optional<double> target;  // level that ends its runs, once it is known
};

std::uint64_t first_seed_of(const std::vector<Cell>& cells) {
  std::uint64_t first = cells.front().scenario.seeds.data;
  for (const Cell& cell : cells) first = std::min(first, cell.scenario.seeds.data);
  return first;
}

std::string describe(const AxisLabels& labels) {
  std::string text;
  for (const auto& [key, label] : labels) text += (text.empty() ? "" : ", ") + key + " = " + label;
  return text.empty() ? "the scenario" : text;
}

ConfigError error_at(const SourceLocation& place, const std::string& message) {
  ProblemList problems;
  problems.add(place, message);
  return problems.error();
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Tuner {
 public:
  Tuner(std::vector<Cell>& cells, const DataCatalog* catalog, const TuningMachine& machine)
      : cells_(cells),
        machine_(machine),
        settings_(tune_settings_of(cells)),
        first_seed_(first_seed_of(cells)),
        runs_(catalog, machine, settings_) {}

  std::vector<TunedOption> run() {
    if (settings_.at != TuneSettings::At::target) find_budgets();
    make_methods();
    if (settings_.at == TuneSettings::At::target) find_targets();
    tune([](const Cell& cell) { return !cell.match; });
    tune([](const Cell& cell) { return cell.match.has_value(); });
    apply();
    return found_;
  }

 private:
  // Finds the bits that the reference of each panel sends in the scenario's rounds with the file's own values.
  void find_budgets() {
    std::map<AxisLabels, const Cell*> references;
    for (const Cell& cell : cells_)
      if (!cell.budget_labels.empty()) references[cell.budget_labels] = nullptr;
    for (auto cell = cells_.rbegin(); cell != cells_.rend(); ++cell)  // visits the first seed last
      if (const auto reference = references.find(cell->axis_labels); reference != references.end()) reference->second = &*cell;
    std::vector<Cell> runs;
    for (const auto& [_, cell] : references) runs.push_back(*cell);
    runs_.set_purpose("finding the budget of bits");
    runs_.ensure(runs);
    for (const auto& [labels, cell] : references) {
      for (const RunRecord& record : runs_.records(*cell))
        if (record.status != RunStatus::done)
          throw error_at(settings_.budget_place, "sweep.tune.budget_of: " + describe(labels) + " " + to_string(record.status) +
                                                     " with the file's own values, so what it takes is no budget" +
                                                     (record.message.empty() ? "" : " (" + record.message + ")"));
      budgets_[labels] = mean_of(runs_.bits(*cell, settings_.budget_bits));
      if (budgets_[labels] <= 0)
        throw error_at(settings_.budget_place, "sweep.tune.budget_of: " + describe(labels) +
                                                   (settings_.budget_bits == Against::seconds ? " takes no time" : " sends no bits"));
    }
  }

  // Makes a method of every combination that is tuned, matched or a reference, with all values of the tuned keys.
  void make_methods() {
    const std::set<AxisLabels> references = references_of(cells_);
    for (const Cell& cell : cells_) {
      const bool is_tuned = cell.match || !cell.tuned_keys.empty();
      if (methods_.contains(cell.axis_labels) || (!is_tuned && !references.contains(cell.axis_labels))) continue;
      Method& method = methods_[cell.axis_labels];
      method.cell = cell;
      if (const auto budget = budgets_.find(cell.budget_labels); budget != budgets_.end()) method.budget = budget->second;
      for (const std::size_t k : cell.tuned_keys)
        method.grids.emplace_back(settings_.keys[k], *type_of_key(cell.scenario, settings_.keys[k].key));
      (void)add_candidates(method);
    }
  }

  // Returns the location in the scenario file of the values of a method's grid.
  [[nodiscard]] const SourceLocation& place_of(const Method& method, std::size_t grid) const {
    return settings_.keys[method.cell.tuned_keys[grid]].place;
  }

  // Adds the candidates of the method's grids that do not exist yet.
  std::vector<Candidate*> add_candidates(Method& method) {
    std::vector<Candidate*> added;
    std::vector<std::size_t> at(method.grids.size(), 0);
    for (bool goes_on = true; goes_on;) {
      const auto same = [&at](const Candidate& candidate) { return candidate.at == at; };
      if (std::none_of(method.candidates.begin(), method.candidates.end(), same)) {
        Cell cell = method.cell;
        for (std::size_t d = 0; d < at.size(); ++d)
          cell = with_option(cell, method.grids[d].key(), method.grids[d].values()[at[d]], place_of(method, d));
        added.push_back(&method.candidates.emplace_back(Candidate{.at = at, .cell = std::move(cell), .matched = {}}));
      }
      goes_on = false;
      for (std::size_t d = at.size(); d-- > 0 && !goes_on;) {
        goes_on = ++at[d] < method.grids[d].values().size();
        if (!goes_on) at[d] = 0;
      }
    }
    return added;
  }

  // Tunes the references at the scenario's rounds, and sets the level of each, moved by the margin, as the target of its panel.
  void find_targets() {
    const std::set<AxisLabels> references = references_of(cells_);
    tune([&references](const Cell& cell) { return references.contains(cell.axis_labels); }, Report::none);
    for (const AxisLabels& labels : references) {
      const Method& reference = methods_.at(labels);
      targets_[labels] = target_of_level(reference);
    }
    for (auto& [_, method] : methods_) method.target = targets_.at(method.cell.budget_labels);
  }

  // Returns the target that a tuned reference sets. Throws ConfigError if it does not reach it itself.
  [[nodiscard]] double target_of_level(const Method& reference) {
    const auto refuse = [&](const std::string& why) {
      throw error_at(settings_.budget_place, "sweep.tune.target_of: " + describe(reference.cell.axis_labels) + " " + why);
    };
    const Candidate& best = *reference.best;
    const TuningOutcome at_end = reference.grids.empty() ? level_of(best.cell) : best.outcome;
    if (std::isinf(at_end.cost)) refuse("has no level, because its runs diverge or fail: it " + at_end.why);
    const double level = settings_.is_highest_best ? -at_end.cost : at_end.cost, target = target_near(level, settings_);
    if (settings_.margin.is_ratio && !(level > 0))
      refuse("ends at " + to_string(Value{level}) + ", and a margin that is a ratio, such as " + settings_.margin.text +
             ", needs a level above zero; give sweep.tune.margin in points, such as \"1pt\"");
    const TuningOutcome reached = runs_.outcome_at(best.cell, settings_, target);
    if (reached.starts_there)
      refuse("has the level " + to_string(Value{level}) + ", and the start is as good as the target " + to_string(Value{target}) +
             "; give a smaller sweep.tune.margin or more rounds");
    if (reached.missed > 0)
      refuse("does not reach the target " + to_string(Value{target}) + " on " + std::to_string(reached.missed) + " of " +
             std::to_string(settings_.seeds) + " tuning seeds, although its level is " + to_string(Value{level}) +
             "; give more tuning seeds or a larger sweep.tune.margin");
    return target;
  }
  [[nodiscard]] TuningOutcome level_of(const Cell& cell) {
    runs_.set_purpose("finding the level of the reference");
    runs_.ensure({cell});
    return runs_.outcome(cell, settings_, Against::round, kInfinity);
  }

  enum class Report { values, none };

  // Finds the best candidate of every method for which `which` is true. All methods advance step by step together, which keeps the workers
  // busy.
  template <class Which>
  void tune(const Which& which, Report report = Report::values) {
    std::vector<Method*> methods;
    std::vector<std::pair<Method*, Candidate*>> fresh;
    for (auto& [_, method] : methods_) {
      if (!which(method.cell)) continue;
      methods.push_back(&method);
      for (Candidate& candidate : method.candidates) fresh.emplace_back(&method, &candidate);
    }
    for (int extension = 0;; ++extension) {
      const auto refusal = extension == 0 ? TuningRuns::Refusal::is_an_error : TuningRuns::Refusal::is_a_bad_value;
      match(fresh, refusal);
      runs_.set_purpose("comparing candidates" + (extension == 0 ? "" : " beyond the grids, step " + std::to_string(extension)));
      judge(fresh, refusal);
      for (Method* method : methods) choose(*method);
      if (extension == kMostExtensions) break;
      fresh.clear();
      for (Method* method : methods)
        for (Candidate* candidate : extend(*method)) fresh.emplace_back(method, candidate);
      if (fresh.empty()) break;
      say("extending grids, step " + std::to_string(extension + 1) + ": " + std::to_string(fresh.size()) + " more candidates");
    }
    if (report == Report::values)
      for (const Method* method : methods) tell(*method);
  }

  [[nodiscard]] Cell judged_cell(const Method& method, const Candidate& candidate) const {
    if (method.target) return with_target(candidate.cell, settings_, *method.target);
    return std::isinf(method.budget) ? candidate.cell : with_budget(candidate.cell, settings_.budget_bits, method.budget);
  }
  void judge(const std::vector<std::pair<Method*, Candidate*>>& fresh, TuningRuns::Refusal refusal) {
    std::vector<Cell> runs;
    for (const auto& [method, candidate] : fresh)
      if (!method->grids.empty()) runs.push_back(judged_cell(*method, *candidate));
    runs_.ensure(runs, refusal);
    auto run = runs.begin();
    for (const auto& [method, candidate] : fresh)
      if (!method->grids.empty() && method->target) {
        candidate->outcome = runs_.outcome_at(*run++, settings_, *method->target);
      } else if (!method->grids.empty()) {
        const Against against = std::isinf(method->budget) ? Against::round : settings_.budget_bits;
        candidate->outcome = runs_.outcome(*run++, settings_, against, method->budget);
      }
  }
  // Chooses the best candidate. If all candidates diverge, chooses the one with the smallest values, because smaller ones may work.
  static void choose(Method& method) {
    method.best = &*std::min_element(method.candidates.begin(), method.candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.outcome.missed, a.outcome.cost, a.at) < std::tie(b.outcome.missed, b.outcome.cost, b.at);
    });
  }
  // Extends every grid whose best candidate is its first or last value.
  std::vector<Candidate*> extend(Method& method) {
    bool is_extended = false;
    for (std::size_t d = 0; d < method.grids.size(); ++d) {
      TuningGrid& grid = method.grids[d];
      const auto side = grid.end_at(method.best->at[d]);
      const auto accepts = [&](const Value& value) { return is_accepted(method.cell, grid.key(), value); };
      if (!side || !grid.extend(*side, accepts)) continue;
      is_extended = true;
      if (*side == TuningGrid::Side::low)
        for (Candidate& candidate : method.candidates) ++candidate.at[d];
    }
    return is_extended ? add_candidates(method) : std::vector<Candidate*>{};
  }

  // Returns the bits that the best candidate of the candidate's reference sends in the scenario's rounds, per seed.
  std::vector<double> target_of(const Candidate& candidate) {
    const auto reference = methods_.find(candidate.cell.reference_labels());
    if (reference == methods_.end())
      throw with_places(
          key_error(candidate.cell.match->option, "match_bits_of: " + describe(candidate.cell.axis_labels) + " is to match " +
                                                      describe(candidate.cell.reference_labels()) + ", which the sweep excludes"),
          candidate.cell);
    runs_.set_purpose("finding the bits to match");
    runs_.ensure({reference->second.best->cell});
    return runs_.bits(reference->second.best->cell, Against::bits_up);
  }
  void match(const std::vector<std::pair<Method*, Candidate*>>& fresh, TuningRuns::Refusal refusal) {
    std::vector<std::pair<Candidate*, BitSearch>> searches;
    for (const auto& [_, candidate] : fresh)
      if (candidate->cell.match) searches.emplace_back(candidate, BitSearch(target_of(*candidate)));
    for (int step = 1;; ++step) {
      std::vector<Cell> runs;
      for (auto& [candidate, search] : searches)
        if (search.goes_on() && try_value(*candidate, search)) runs.push_back(candidate->cell);
      if (runs.empty()) break;
      const std::string purpose = "matching bits, step " + std::to_string(step);
      runs_.set_purpose(purpose);
      say(purpose + ": " + std::to_string(runs.size()) + " to find");
      runs_.ensure(runs, refusal);
      for (auto& [candidate, search] : searches) {
        if (!search.goes_on()) continue;
        if (runs_.has_failed(candidate->cell))
          search.stop();
        else
          search.observe(runs_.bits(candidate->cell, Against::bits_up));
      }
    }
    for (auto& [candidate, search] : searches) {
      (void)try_value(*candidate, search);
      candidate->match = search.matched();
    }
  }
  // Sets the option that matches bits. Ends the search at a value that the option does not accept.
  static bool try_value(Candidate& candidate, BitSearch& search) {
    const std::string option = candidate.cell.match->option;
    try {
      const Value value{search.value()};
      candidate.cell = with_option(candidate.cell, option, value);
      candidate.matched = value;
      return true;
    } catch (const ConfigError&) {
      if (!search.has_observed()) throw;
      search.stop();
      return false;
    }
  }

  // Reports the values that were found for a method.
  void tell(const Method& method) {
    const Candidate& best = *method.best;
    TunedOption common{.axis_labels = method.cell.axis_labels, .option = "", .value = {}};
    common.candidates = method.candidates.size();
    if (!method.grids.empty()) {
      if (std::isinf(best.outcome.cost))
        throw error_at(settings_.place, "sweep.tune: every value of " + keys_of(method) + " made a run of " + describe(common.axis_labels) +
                                            " diverge or fail; with the first of them it " + best.outcome.why);
      if (method.target)
        common.target = *method.target;
      else
        common.measure = settings_.is_highest_best ? -best.outcome.cost : best.outcome.cost;
      common.missed = best.outcome.missed;
      common.bits = best.outcome.bits_up;
      common.evaluations = best.outcome.evaluations;
      common.budget_bits = std::isinf(method.budget) ? 0 : method.budget;
    }
    for (std::size_t d = 0; d < method.grids.size(); ++d) {
      const TuningGrid& grid = method.grids[d];
      TunedOption tuned = common;
      tuned.option = grid.key();
      tuned.value = grid.values()[best.at[d]];
      tuned.tried = grid.values();
      if (const auto side = grid.end_at(best.at[d])) {
        tuned.at_edge = !grid.is_at_bound(*side);
        tuned.note = grid.why_ended(*side);
      }
      found_.push_back(std::move(tuned));
    }
    if (best.cell.match) {
      TunedOption tuned = common;
      tuned.option = best.cell.match->option;
      tuned.value = *best.matched;
      tuned.match = best.match;
      tuned.match.reference = best.cell.match->reference;
      tuned.bits = mean_of(runs_.bits(best.cell, Against::bits_up));
      tuned.target_bits = mean_of(target_of(best));
      found_.push_back(std::move(tuned));
    }
  }
  static std::string keys_of(const Method& method) {
    std::string text;
    for (const TuningGrid& grid : method.grids) text += (text.empty() ? "" : " and ") + grid.key();
    return text;
  }

  void apply() {
    std::map<AxisLabels, std::vector<const TunedOption*>> options;
    for (const TunedOption& tuned : found_) options[tuned.axis_labels].push_back(&tuned);
    for (Cell& cell : cells_) {
      if (!cell.needs_tuning()) continue;
      for (const TunedOption* tuned : options[cell.axis_labels]) {
        cell = with_option(cell, tuned->option, tuned->value);
        record_tuned(*tuned, cell.found);
      }
      record_tuning(settings_, first_seed_ + kTuningSeeds, cell.found);
      if (cell.goes_to_budget && settings_.at == TuneSettings::At::target) {
        const double target = targets_.at(cell.budget_labels);
        cell = with_target(cell, settings_, target);
        cell.found.push_back({"target_level", target});
      } else if (cell.goes_to_budget) {
        const double budget = budgets_.at(cell.budget_labels);
        cell = with_budget(cell, settings_.budget_bits, budget);
        cell.found.push_back({"budget_bits", budget});
      }
      cell.match.reset();
      cell.tune.reset();
      cell.tuned_keys.clear();
      cell.budget_labels.clear();
      cell.goes_to_budget = false;
    }
  }
  void say(const std::string& line) const {
    if (machine_.note) machine_.note(line);
  }

  std::vector<Cell>& cells_;
  const TuningMachine& machine_;
  const TuneSettings settings_;
  std::uint64_t first_seed_ = 0;  // of the study's data
  TuningRuns runs_;
  std::map<AxisLabels, double> budgets_, targets_;
  std::map<AxisLabels, Method> methods_;
  std::vector<TunedOption> found_;
};

}  // namespace

std::vector<TunedOption> tune_cells(std::vector<Cell>& cells, const DataCatalog& catalog, const TuningMachine& machine) {
  if (!any_needs_tuning(cells)) return {};
  try {
    return Tuner(cells, &catalog, machine).run();
  } catch (const TuningInterrupted&) {
    return {};
  }
}

std::vector<TunedOption> recall_tuning(std::vector<Cell>& cells, const std::filesystem::path& store) {
  std::error_code ignored;
  if (!any_needs_tuning(cells) || !std::filesystem::exists(store / RunStore::kFileName, ignored)) return {};
  TuningMachine machine;
  machine.store = store;
  try {
    return Tuner(cells, nullptr, machine).run();
  } catch (const TuningNotStored&) {
    return {};
  }
}

}  // namespace fl
