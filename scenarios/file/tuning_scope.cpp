#include "scenarios/file/tuning_scope.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "fl_core/config/meanings.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/toml_reader.hpp"
#include "scenarios/results/end_point.hpp"

namespace fl {
namespace {

using At = TuneSettings::At;

std::string text_of(const AxisLabels& labels) {
  std::string text;
  for (const auto& [key, label] : labels) text += (text.empty() ? "" : ", ") + key + " = " + label;
  return text.empty() ? "the scenario" : text;
}

// The first seed of each combination.
std::vector<std::size_t> firsts_of(const std::vector<Cell>& cells) {
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (i == 0 || cells[i].axis_labels != cells[i - 1].axis_labels) firsts.push_back(i);
  return firsts;
}

// ---- keys ----

void refuse_keys_that_are_set(const Sweep& sweep, const TuneTable& table, ProblemList& problems) {
  for (std::size_t k = 0; k < table.settings.keys.size(); ++k)
    for (const Axis& axis : sweep.axes)
      if (holds(table.settings.keys[k].key, axis.key))
        problems.add(table.key_places[k],
                     "sweep.tune.key: " + table.settings.keys[k].key + " is set by the axis " + axis.key + "; drop one of them");
  for (std::size_t k = 0; k < table.settings.keys.size(); ++k)
    for (const KeysOfCombinations& set : sweep.sets)
      for (const auto& [key, node] : set.keys)
        if (holds(table.settings.keys[k].key, key))
          problems.add(table.key_places[k], "sweep.tune.key: " + table.settings.keys[k].key + " is set by [[sweep.set]]; drop one of them");
}

void refuse_unknown_key(const std::string& key, const SourceLocation& place, const std::vector<Cell>& cells,
                        const std::vector<std::size_t>& firsts, ProblemList& problems) {
  std::set<std::string> known;
  for (const std::size_t i : firsts)
    for (std::string& one : keys_of(cells[i].scenario)) known.insert(std::move(one));
  const std::string hint = did_you_mean(key, {known.begin(), known.end()}, Sought::key);
  problems.add(place, "sweep.tune.key: no method of this sweep has " + key + hint);
}

void check_values(const Cell& cell, const TuneKey& key, const SourceLocation& place, ProblemList& problems) {
  for (const Value& value : key.values) try {
      (void)with_option(cell, key.key, value);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) problems.add(place, "sweep.tune.values: " + problem.message);
    }
}

void assign_keys(std::vector<Cell>& cells, const TuneTable& table, ProblemList& problems) {
  const std::vector<std::size_t> firsts = firsts_of(cells);
  for (std::size_t k = 0; k < table.settings.keys.size(); ++k) {
    const TuneKey& key = table.settings.keys[k];
    bool is_known = false;
    for (std::size_t f = 0; f < firsts.size(); ++f) {
      if (!type_of_key(cells[firsts[f]].scenario, key.key)) continue;
      is_known = true;
      check_values(cells[firsts[f]], key, table.key_places[k], problems);
      const std::size_t end = f + 1 < firsts.size() ? firsts[f + 1] : cells.size();
      for (std::size_t i = firsts[f]; i < end; ++i) cells[i].tuned_keys.push_back(k);
    }
    if (!is_known) refuse_unknown_key(key.key, table.key_places[k], cells, firsts, problems);
  }
}

// ---- budget, or target ----

// The value of an axis whose bits are the budget, or whose level is the target.
struct Reference {
  std::size_t axis = 0, value = 0;
};

std::optional<std::size_t> method_axis(const Sweep& sweep) {
  for (const char* prefix : {"compressor", "feedback"})
    for (std::size_t a = 0; a < sweep.axes.size(); ++a)
      if (sweep.axes[a].key.starts_with(prefix)) return a;
  return std::nullopt;
}

std::optional<std::size_t> place_of(const Axis& axis, const std::string& label) {
  for (std::size_t v = 0; v < axis.values.size(); ++v)
    if (axis.values[v].label == label) return v;
  return std::nullopt;
}

// The report's baseline: the label "none", else the first that sends bits of its own accord.
std::optional<Reference> baseline_of(const Sweep& sweep) {
  const std::optional<std::size_t> axis = method_axis(sweep);
  if (!axis) return std::nullopt;
  if (const auto none = place_of(sweep.axes[*axis], "none")) return Reference{*axis, *none};
  for (std::size_t v = 0; v < sweep.axes[*axis].values.size(); ++v)
    if (sweep.axes[*axis].values[v].match_bits_of.empty()) return Reference{*axis, v};
  return std::nullopt;
}

std::optional<Reference> named_reference(const Sweep& sweep, const std::string& label, const std::string& key, const SourceLocation& place,
                                         ProblemList& problems) {
  std::vector<std::size_t> order;
  if (const auto axis = method_axis(sweep)) order.push_back(*axis);
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) order.push_back(a);
  std::vector<std::string> known;
  for (const std::size_t a : order) {
    const auto value = place_of(sweep.axes[a], label);
    if (value && sweep.axes[a].values[*value].match_bits_of.empty()) return Reference{a, *value};
    for (const AxisValue& one : sweep.axes[a].values)
      if (one.match_bits_of.empty()) known.push_back(one.label);
  }
  const std::string near = nearest_name(label, known);
  problems.add(place, key + ": must be the label of a value of an axis that is not matched itself, is \"" + label + "\"" +
                          (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  return std::nullopt;
}

// The combination that differs in the reference's axis, and in the axes that move with it.
AxisLabels labels_at(const Sweep& sweep, AxisLabels labels, const Reference& reference) {
  const std::string& zip = sweep.axes[reference.axis].zip;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    if (a == reference.axis || (!zip.empty() && sweep.axes[a].zip == zip)) labels[a].second = sweep.axes[a].values[reference.value].label;
  return labels;
}

bool ends_with_the_rounds(const Cell& cell) {
  ProblemList ignored;
  const Node root = parse_toml(cell.resolved_toml, "", ignored);
  const Node* schedule = root.find("local.schedule");
  return schedule != nullptr && to_string(schedule->value()) == "\"cosine\"";
}

// Why cells cannot go on to the reference's bits or level; "" if they can.
std::string obstacle(const std::vector<Cell>& cells, const Sweep& sweep, const Reference& reference) {
  std::set<AxisLabels> present;
  for (const Cell& cell : cells) present.insert(cell.axis_labels);
  for (const std::size_t i : firsts_of(cells)) {
    if (const AxisLabels labels = labels_at(sweep, cells[i].axis_labels, reference); !present.contains(labels))
      return text_of(labels) + " is excluded from the sweep, so it sends no bits and has no level";
    if (ends_with_the_rounds(cells[i]))
      return "local.schedule = \"cosine\" of " + text_of(cells[i].axis_labels) +
             " ends with the rounds, and not with bits or at a target; take another schedule, or tune at = \"rounds\"";
  }
  return "";
}

void refuse_matches(const std::vector<Cell>& cells, const SourceLocation& place, ProblemList& problems) {
  const auto matched = std::ranges::find_if(cells, [](const Cell& cell) { return cell.match.has_value(); });
  if (matched != cells.end())
    problems.add(place, "sweep.tune.at: \"target\" compares the bits that methods need, so " + text_of(matched->axis_labels) +
                            " cannot have match_bits_of, which gives it the bits of another");
}

// The end of a run belongs to the target.
void refuse_other_ends(const std::vector<Cell>& cells, const TuneSettings& settings, const SourceLocation& place, ProblemList& problems) {
  const StopOptions& stop = cells.front().scenario.stop;
  const bool is_taken = settings.measure == "f_gap"        ? stop.f_gap.has_value()
                        : settings.measure == "train_loss" ? stop.train_loss.has_value()
                                                           : !stop.measures.empty();
  if (is_taken)
    problems.add(place, "sweep.tune.at: \"target\" ends runs by " + settings.measure +
                            ", and so does [stop] with another value; drop that key of [stop]");
}

// Returns the combination that each cell's budget or target is taken from, if the sweep has it; adds a problem if it is asked for.
std::optional<Reference> find_reference(const std::vector<Cell>& cells, const Sweep& sweep, const std::string& label,
                                        const std::string& key, const SourceLocation& place, bool is_asked, ProblemList& problems) {
  const auto reference = label.empty() ? baseline_of(sweep) : named_reference(sweep, label, key, place, problems);
  if (!problems.empty()) return std::nullopt;
  const std::string why =
      reference ? obstacle(cells, sweep, *reference)
                : "must be given as the label of a method, because the sweep has no axis of compressors or feedbacks to choose it from";
  if (why.empty()) return reference;
  if (is_asked) problems.add(place, key + ": " + why);
  return std::nullopt;
}

// Sets where candidates are compared, and the budget or the target of each cell.
void set_goal(std::vector<Cell>& cells, const Sweep& sweep, TuneTable& table, ProblemList& problems) {
  const bool tunes = std::ranges::any_of(cells, [](const Cell& cell) { return !cell.tuned_keys.empty(); });
  const bool whole_study = !sweep.to_bits_of.empty(), to_target = table.at == At::target;
  const bool is_asked = whole_study || to_target || table.at == At::bits;
  if (whole_study && table.at && table.at != At::bits)
    problems.add(table.place, "sweep.tune.at: must be \"bits\" when sweep.to_bits_of makes the study's runs continue to equal bits");
  if (whole_study && !table.budget_of.empty() && table.budget_of != sweep.to_bits_of)
    problems.add(table.budget_place, "sweep.tune.budget_of: must be the method of sweep.to_bits_of, \"" + sweep.to_bits_of + "\", is \"" +
                                         table.budget_of + "\"; drop one of them");
  if (!whole_study && is_asked && !tunes)
    problems.add(table.place, "sweep.tune.at: has no effect without a key that is tuned, or sweep.to_bits_of");
  if (to_target) refuse_matches(cells, table.place, problems);
  const auto has_no_clock = [](const Cell& cell) { return !cell.scenario.has_clock(); };
  if (table.settings.budget_bits == Against::seconds && std::ranges::any_of(cells, has_no_clock))
    problems.add(table.place, "sweep.tune.at: \"seconds\" are simulated time, which needs [network] or [devices]; add one of these tables");
  if (table.settings.budget_bits == Against::seconds && whole_study)
    problems.add(table.place, "sweep.tune.at: must be \"bits\" when sweep.to_bits_of makes the study's runs continue to equal bits");
  if (!problems.empty() || !(is_asked || (tunes && !table.at))) return;

  const std::string& label = whole_study ? sweep.to_bits_of : to_target ? table.target_of : table.budget_of;
  const std::string key = whole_study ? "sweep.to_bits_of" : to_target ? "sweep.tune.target_of" : "sweep.tune.budget_of";
  const SourceLocation& place = whole_study ? sweep.to_bits_place : table.budget_place;
  const auto reference = find_reference(cells, sweep, label, key, place, is_asked, problems);
  if (!reference) return;  // tuned at equal rounds
  table.settings.at = to_target ? At::target : At::bits;
  table.settings.budget_place = place;
  for (Cell& cell : cells) {
    cell.goes_to_budget = whole_study || to_target;
    if (cell.goes_to_budget || !cell.tuned_keys.empty()) cell.budget_labels = labels_at(sweep, cell.axis_labels, *reference);
  }
}

// ---- measures ----

// The greatest evaluate.every with enough evaluations at the end; 0 if there is none.
std::int64_t largest_every(std::int64_t rounds) {
  constexpr auto kLeast = static_cast<std::int64_t>(kLeastEvaluations);
  constexpr std::int64_t kMostTried = 100'000;
  // A window of W rounds has at most W / every + 2 evaluations, and at least W / every - 1.
  const auto window = static_cast<std::int64_t>(kWindow * static_cast<double>(rounds)) + 2;
  std::int64_t every = std::min(rounds, window / std::max<std::int64_t>(kLeast - 2, 1) + 1);
  for (const std::int64_t last = std::max<std::int64_t>(0, every - kMostTried); every > last; --every)
    if (evaluations_at_end(rounds, every) >= kLeast) return every;
  return every == 0 ? 0 : window / (kLeast + 2);
}

void check_end_point(const Cell& cell, const TuneTable& table, ProblemList& problems) {
  if (table.settings.at == At::target && cell.axis_labels != cell.budget_labels) return;  // judged by the bits to the target alone
  // A method that is cheaper than the budget's plays more rounds; how many, is known when it has run.
  const bool may_play_more = table.settings.at == At::bits && cell.axis_labels != cell.budget_labels;
  const std::int64_t rounds = cell.scenario.rounds * (may_play_more ? kMostRounds : 1);
  if (evaluations_at_end(rounds, cell.scenario.evaluate.every) >= static_cast<std::int64_t>(kLeastEvaluations)) return;
  const std::string needs = std::to_string(kLeastEvaluations) + " evaluations in the last fifth of " + std::to_string(rounds) + " rounds";
  const std::int64_t largest = largest_every(rounds);
  problems.add(table.place, largest > 0 ? "evaluate.every: must be at most " + std::to_string(largest) +
                                              " for sweep.tune, which compares means of " + needs + ", is " +
                                              std::to_string(cell.scenario.evaluate.every)
                                        : "rounds: must be more for sweep.tune, which compares means of " + needs);
}

bool is_of_training_rows(const std::string& measure) { return measure == "train_loss" || measure == "f_gap"; }

// Checks the criterion of tuning: a loss of the training rows, or a column that the measures of every combination have. The column says
// which of its values is the best.
void take_measure(const std::vector<Cell>& cells, TuneSettings& settings, ProblemList& problems) {
  if (is_of_training_rows(settings.measure)) return;
  for (const std::size_t i : firsts_of(cells)) {
    const std::vector<MeasureColumn> columns = columns_of_measures(cells[i].scenario.evaluate.measures);
    if (const std::size_t place = place_of(columns, settings.measure); place < columns.size()) {
      settings.is_highest_best = columns[place].better == MeasureColumn::Better::higher;
      continue;
    }
    std::vector<std::string> names = {"train_loss", "f_gap"};
    for (const MeasureColumn& column : columns) names.push_back(column.name);
    const std::string near = nearest_name(settings.measure, names);
    problems.add(settings.measure_place, "sweep.tune.measure: must be \"train_loss\", \"f_gap\" or a column of evaluate.measures, is \"" +
                                             settings.measure + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
                                             "; the test set is for the result and not for tuning");
    return;
  }
}

void check_measures(const std::vector<Cell>& cells, const TuneTable& table, ProblemList& problems) {
  for (const std::size_t i : firsts_of(cells)) {
    if (cells[i].tuned_keys.empty() && table.settings.at != At::target) continue;
    const EvaluateOptions& evaluate = cells[i].scenario.evaluate;
    if (!evaluate.train_loss && is_of_training_rows(table.settings.measure))
      problems.add(table.place, "evaluate.train_loss: must be true, because sweep.tune compares " + table.settings.measure);
    if (table.settings.measure == "f_gap" && !evaluate.optimum.is_used)
      problems.add(table.place, "evaluate.optimum: must not be false, because sweep.tune compares f_gap");
    check_end_point(cells[i], table, problems);
    if (!problems.empty()) return;
  }
}

}  // namespace

std::int64_t evaluations_at_end(std::int64_t rounds, std::int64_t every) {
  const auto from = static_cast<std::int64_t>(std::ceil((1 - kWindow) * static_cast<double>(rounds) * (1 - 1e-12)));
  return rounds / every - (from - 1) / every + (rounds % every != 0 ? 1 : 0);
}

void set_tuning(std::vector<Cell>& cells, const Sweep& sweep, ProblemList& problems) {
  if (!sweep.tune && sweep.to_bits_of.empty()) return;
  TuneTable table = sweep.tune.value_or(TuneTable{});
  table.settings.place = sweep.tune ? table.place : sweep.to_bits_place;
  refuse_keys_that_are_set(sweep, table, problems);
  if (problems.empty()) assign_keys(cells, table, problems);
  if (problems.empty()) set_goal(cells, sweep, table, problems);
  if (problems.empty() && sweep.tune) take_measure(cells, table.settings, problems);
  if (problems.empty() && table.settings.at == At::target) refuse_other_ends(cells, table.settings, table.place, problems);
  if (problems.empty()) check_measures(cells, table, problems);
  const auto shared = std::make_shared<const TuneSettings>(std::move(table.settings));
  for (Cell& cell : cells) cell.tune = shared;
}

}  // namespace fl
