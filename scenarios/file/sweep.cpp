#include "scenarios/file/sweep.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/file/analysis_plan.hpp"
#include "scenarios/file/axis_table.hpp"
#include "scenarios/file/bit_search.hpp"
#include "scenarios/file/combinations.hpp"
#include "scenarios/file/early_checks.hpp"
#include "scenarios/file/key_places.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sweep_reader.hpp"
#include "scenarios/file/toml_reader.hpp"
#include "scenarios/file/tuning_scope.hpp"

namespace fl {
namespace {

constexpr double kMostText_bytes = 0x1p31;   // of the canonical texts of all cells
constexpr std::size_t kMostBadCells = 64;    // combinations with new problems, after which no more are read
constexpr std::size_t kMostAfterBad = 2000;  // combinations that are read after the first bad one

// Whether some value of the axis takes what the setting puts into the table of the file.
bool is_inherited(const Setting& setting, const Axis& axis, const Node& root) {
  const Node* base = root.find(axis.key);
  if (base == nullptr) return false;
  return std::ranges::any_of(axis.values, [&](const AxisValue& value) {
    if (setting.key != axis.key) return inherits(value.node, *base, axis.key, split_path(setting.key.substr(axis.key.size() + 1)).front());
    return std::ranges::any_of(base->members, [&](const auto& member) { return inherits(value.node, *base, axis.key, member.first); });
  });
}

void refuse_idle_settings(const std::vector<Setting>& settings, const Sweep& sweep, const Node& root, ProblemList& problems) {
  for (const Setting& setting : settings)
    for (const Axis& axis : sweep.axes)
      if (holds(axis.key, setting.key) && !is_inherited(setting, axis, root))
        problems.add(setting.node.place,
                     setting.key + ": has no effect, because an axis of [sweep] sets " + axis.key + "; --set sweep.axis=[] drops the axes");
  for (const Setting& setting : settings)
    for (const KeysOfCombinations& set : sweep.sets)
      for (const auto& [key, node] : set.keys)
        if (holds(setting.key, key))
          problems.add(setting.node.place, setting.key + ": has no effect in some combinations, because [[sweep.set]] sets " + key +
                                               " there; --set sweep.set=[] drops these tables");
}

bool equal_zips(const std::vector<Axis>& axes) {
  for (const Axis& a : axes)
    for (const Axis& b : axes)
      if (!a.zip.empty() && a.zip == b.zip && a.values.size() != b.values.size()) return false;
  return true;
}

// Axes that move together, by number; a group stands where its first axis stands.
using Group = std::vector<std::size_t>;
std::vector<Group> groups_of(const std::vector<Axis>& axes) {
  std::vector<Group> groups;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return !axes[a].zip.empty() && axes[g[0]].zip == axes[a].zip; });
    if (same == groups.end())
      groups.push_back({a});
    else
      same->push_back(a);
  }
  return groups;
}

double num_cells(const Sweep& sweep) {
  auto cells = static_cast<double>(sweep.seeds);
  for (const Group& group : groups_of(sweep.axes)) cells *= static_cast<double>(sweep.axes[group[0]].values.size());
  return cells;
}

void refuse_huge_sweep(const Sweep& sweep, ProblemList& problems) {
  const double cells = num_cells(sweep);
  if (cells <= static_cast<double>(kMostCells)) return;
  problems.add(sweep.place, "sweep: must have at most " + std::to_string(kMostCells) + " cells, has " + to_string(Value{cells}) +
                                ": sweep.seeds times the values of the axes");
  problems.throw_if_any();
}

// Seeds are written as TOML integers.
void refuse_large_seeds(const Sweep& sweep, const Seeds& seeds, ProblemList& problems) {
  const auto largest = std::max({seeds.data, seeds.init, seeds.sampling, seeds.compressor});
  const auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (largest > last - static_cast<std::uint64_t>(sweep.seeds - 1))
    problems.add(sweep.seeds_place, "sweep.seeds: the last seed must be at most " + std::to_string(last) + "; start from a smaller seed");
}

void identify(Cell& cell, std::string resolved_toml) {
  cell.resolved_toml = std::move(resolved_toml);
  cell.hash = hash_of_text(cell.resolved_toml);
}
void identify(Cell& cell) { identify(cell, to_toml(cell.scenario)); }

void add_seeds(Cell cell, std::int64_t seeds, std::uint64_t test_seed, const Combinations& combinations, std::vector<Cell>& cells) {
  const Seeds first = cell.scenario.seeds;
  const bool shares_test_rows = cell.scenario.data.draws_test_rows() && !cell.scenario.data.test_seed;
  for (std::int64_t s = 0; s < seeds; ++s) {
    const auto step = static_cast<std::uint64_t>(s);
    cell.scenario.seeds = {first.data + step, first.init + step, first.sampling + step, first.compressor + step};
    if (shares_test_rows) {
      cell.scenario.data.test_seed.reset();  // where it is the data seed, the text stays as it was written
      if (cell.scenario.seeds.data != test_seed) cell.scenario.data.test_seed = test_seed;
    }
    identify(cell, combinations.text_of(cell.scenario));
    cells.push_back(cell);
  }
}

// The values chosen on each group of axes, counted like digits: the last group moves fastest. False after the last combination.
bool advance(std::vector<std::size_t>& chosen, const std::vector<Group>& groups, const std::vector<Axis>& axes) {
  for (std::size_t g = groups.size(); g-- > 0;) {
    if (++chosen[g] < axes[groups[g][0]].values.size()) return true;
    chosen[g] = 0;
  }
  return false;
}

bool is_excluded(const Sweep& sweep, const std::vector<std::size_t>& value_of) {
  return std::ranges::any_of(sweep.exclusions, [&](const LabelChoice& exclusion) { return is_chosen(exclusion, sweep.axes, value_of); });
}

// The tree without axes, and the values of each axis and of [[sweep.set]], as every cell of the sweep refers to them.
struct Source {
  std::shared_ptr<const Node> root;
  std::vector<std::vector<std::shared_ptr<const Node>>> values;  // by axis
  std::vector<std::vector<std::shared_ptr<const Node>>> sets;    // by table and key
};

Source source_of(const Node& root, const Sweep& sweep) {
  Source source{std::make_shared<const Node>(root), {}, {}};
  for (const Axis& axis : sweep.axes) {
    auto& values = source.values.emplace_back();
    for (const AxisValue& value : axis.values) values.push_back(std::make_shared<const Node>(value.node));
  }
  for (const KeysOfCombinations& set : sweep.sets) {
    auto& values = source.sets.emplace_back();
    for (const auto& [key, node] : set.keys) values.push_back(std::make_shared<const Node>(node));
  }
  return source;
}

// Puts the keys of [[sweep.set]] into the tree of a combination that they are for. A key that the matching of bits finds has no other
// value.
void set_keys(const Source& source, const Sweep& sweep, const std::vector<std::size_t>& value_of, const std::optional<MatchBits>& match,
              Node& tree, std::vector<AxisSource>& places, std::vector<bool>& is_used, ProblemList& problems) {
  for (std::size_t s = 0; s < sweep.sets.size(); ++s) {
    if (!is_chosen(sweep.sets[s].when, sweep.axes, value_of)) continue;
    is_used[s] = true;
    for (std::size_t k = 0; k < sweep.sets[s].keys.size(); ++k) {
      const auto& [key, node] = sweep.sets[s].keys[k];
      if (match && match->option == key) {
        problems.add(node.place, "sweep.set.keys: " + key + " is found by match_bits_of; drop one of them");
        continue;
      }
      put(tree, key, node, problems);
      places.push_back({key, source.sets[s][k]});
    }
  }
}

// The cell with these values, all its seeds. Test rows are drawn with the first data seed of the study.
void add_combination(const Source& source, const Sweep& sweep, const std::vector<std::size_t>& value_of, std::vector<Cell>& cells,
                     Combinations& combinations, EarlyChecks& early, std::vector<bool>& is_used, ProblemList& problems) {
  Node tree = *source.root;
  Cell cell;
  std::vector<AxisSource> chosen;
  for (std::size_t a = 0; a < value_of.size(); ++a) {
    const Axis& axis = sweep.axes[a];
    const AxisValue& value = axis.values[value_of[a]];
    Node node = with_inherited(value.node, tree.find(axis.key), axis.key);
    node.key_place = axis.key_place;
    put(tree, axis.key, std::move(node), problems);
    chosen.push_back({axis.key, source.values[a][value_of[a]]});
    cell.axis_labels.emplace_back(axis.key, value.label);
    if (!value.match_bits_of.empty()) cell.match = MatchBits{a, value.match_bits_of, axis.key + "." + value.match_key};
  }
  set_keys(source, sweep, value_of, cell.match, tree, chosen, is_used, problems);
  cell.places = std::make_shared<const KeyPlaces>(source.root, std::move(chosen));
  cell.scenario = combinations.read(tree, value_of, problems);
  early.check(cell.scenario, *cell.places, problems);
  refuse_large_seeds(sweep, cell.scenario.seeds, problems);
  const std::uint64_t test_seed = cells.empty() ? cell.scenario.seeds.data : cells.front().scenario.seeds.data;
  if (problems.empty()) add_seeds(std::move(cell), sweep.seeds, test_seed, combinations, cells);
}

// Every cell keeps its canonical text.
void refuse_long_texts(const Cell& cell, double cells, const SourceLocation& place) {
  const auto bytes = static_cast<double>(cell.resolved_toml.size());
  if (bytes * cells <= kMostText_bytes) return;
  ProblemList problems;
  problems.add(place, "sweep: the resolved scenarios of " + to_string(Value{cells}) + " cells would take " +
                          to_string(Value{bytes * cells}) + " bytes, and at most " + to_string(Value{kMostText_bytes}) +
                          " are allowed; shorten the scenario or the axes");
  problems.throw_if_any();
}

std::vector<Cell> expand(const Node& root, const Sweep& sweep, EarlyChecks& early, ProblemList& problems) {
  std::vector<Cell> cells;
  const Source source = source_of(root, sweep);
  Combinations combinations(sweep);
  std::size_t num_bad = 0, num_after_bad = 0;
  const std::vector<Group> groups = groups_of(sweep.axes);
  std::vector<std::size_t> chosen(groups.size(), 0), value_of(sweep.axes.size(), 0);
  bool any = false;
  std::vector<bool> is_used(sweep.sets.size(), false);
  do {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::size_t a : groups[g]) value_of[a] = chosen[g];
    if (is_excluded(sweep, value_of)) continue;
    any = true;
    const std::size_t known = problems.size();
    add_combination(source, sweep, value_of, cells, combinations, early, is_used, problems);
    num_bad += problems.size() > known ? 1 : 0;
    num_after_bad += problems.empty() ? 0 : 1;
    if (!cells.empty() && cells.size() == static_cast<std::size_t>(sweep.seeds))
      refuse_long_texts(cells.front(), num_cells(sweep), sweep.place);
  } while (num_bad < kMostBadCells && num_after_bad < kMostAfterBad && advance(chosen, groups, sweep.axes));
  if (!any) problems.add(sweep.exclude_place, "sweep.exclude: leaves no run");
  if (problems.empty())
    for (std::size_t s = 0; s < sweep.sets.size(); ++s)
      if (!is_used[s]) problems.add(sweep.sets[s].place, "sweep.set.when: no combination of the sweep has these labels");
  return cells;
}

// Adds a problem for combinations that are to match one that the sweep leaves out.
void refuse_missing_references(const std::vector<Cell>& cells, const Sweep& sweep, ProblemList& problems) {
  if (std::none_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.match.has_value(); })) return;
  std::set<AxisLabels> present;
  for (const Cell& cell : cells) present.insert(cell.axis_labels);
  for (const Cell& cell : cells) {
    if (!cell.match || present.contains(cell.reference_labels())) continue;
    const Axis& axis = sweep.axes[cell.match->axis];
    const auto value = std::find_if(axis.values.begin(), axis.values.end(),
                                    [&](const AxisValue& v) { return v.label == cell.axis_labels[cell.match->axis].second; });
    problems.add(value->match_place, "sweep.axis.values.match_bits_of: \"" + cell.match->reference + "\" of " + axis.key +
                                         " is excluded from the sweep for some combinations of \"" + value->label +
                                         "\"; exclude these as well");
  }
}

// The option that is tuned to match bits must take a number. Every value of an axis is tried once, with the first cell that has it.
void check_match_keys(const std::vector<Cell>& cells, const Sweep& sweep, ProblemList& problems) {
  std::set<std::pair<std::size_t, std::string>> checked;
  for (const Cell& cell : cells) {
    if (!cell.match || !checked.emplace(cell.match->axis, cell.axis_labels[cell.match->axis].second).second) continue;
    const auto& values = sweep.axes[cell.match->axis].values;
    const auto value = std::ranges::find(values, cell.axis_labels[cell.match->axis].second, &AxisValue::label);
    try {
      (void)with_option(cell, cell.match->option, Value{BitSearch({1}).value()});
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems())
        problems.add(value->match_key_place, "sweep.axis.values.match_key: " + problem.message);
    }
  }
}

// Returns true if a method of a plan, or one part of a method of several axes ("x + y"), is the label of a value of the sweep.
bool is_label(const Sweep& sweep, const std::string& method) {
  for (const Axis& axis : sweep.axes)
    for (const AxisValue& value : axis.values)
      if (method == value.label || method.starts_with(value.label + " + ")) return true;
  return false;
}

// Returns true if an axis of the sweep has both labels of KEY=A:B.
bool has_labels(const Sweep& sweep, const std::string& between) {
  for (const Axis& axis : sweep.axes) {
    if (!between.starts_with(axis.key + "=")) continue;
    for (const AxisValue& a : axis.values)
      for (const AxisValue& b : axis.values)
        if (a.label != b.label && between == axis.key + "=" + a.label + ":" + b.label) return true;
  }
  return false;
}

// Adds a problem for each label of the plan that the sweep does not have. A misspelt label would be found after all runs.
void check_labels(const AnalysisPlan& plan, const Sweep& sweep, ProblemList& problems) {
  const std::string file = "sweep.plan_file: " + plan.file + ": ";
  for (const std::string& contrast : plan.contrasts) {
    bool is_known = false;
    for (std::size_t colon = contrast.find(':'); colon != std::string::npos; colon = contrast.find(':', colon + 1))
      is_known = is_known || (is_label(sweep, contrast.substr(0, colon)) && is_label(sweep, contrast.substr(colon + 1)));
    if (!is_known) problems.add(sweep.plan_place, file + "contrasts: no axis has the labels of \"" + contrast + "\"");
  }
  for (const std::string& between : plan.between)
    if (!has_labels(sweep, between)) problems.add(sweep.plan_place, file + "between: no axis has the labels of \"" + between + "\"");
  for (const std::string& level : plan.levels)
    if (!is_label(sweep, level)) problems.add(sweep.plan_place, file + "levels: no axis has the label \"" + level + "\"");
  if (!plan.axes.baseline.empty() && !is_label(sweep, plan.axes.baseline))
    problems.add(sweep.plan_place, file + "baseline: no axis has the label \"" + plan.axes.baseline + "\"");
}

// Reads the analysis plan, and records it with every cell.
void set_plan(std::vector<Cell>& cells, const Sweep& sweep, const std::filesystem::path& folder, ProblemList& problems) {
  if (sweep.plan_file.empty()) return;
  try {
    const AnalysisPlan plan = read_plan(folder / sweep.plan_file);
    check_labels(plan, sweep, problems);
    const std::vector<ResolvedConstant> constants = plan_constants(plan);
    for (Cell& cell : cells) cell.found.insert(cell.found.end(), constants.begin(), constants.end());
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems())
      problems.add(sweep.plan_place,
                   problem.where.empty() ? problem.message : "sweep.plan_file: " + problem.where + ": " + problem.message);
  }
}

}  // namespace

Cell with_option(const Cell& cell, const std::string& key, const Value& value) {
  ProblemList problems;
  Cell changed = cell;
  Node root = parse_toml(cell.resolved_toml, "the scenario of this run", problems);
  apply_settings(root, {key + "=" + to_string(value)}, problems);
  changed.scenario = read_scenario(root, problems);
  problems.throw_if_any();
  identify(changed);
  return changed;
}

Cell with_option(const Cell& cell, const std::string& key, const Value& value, const SourceLocation& place) {
  Cell changed = with_option(cell, key, value);
  if (changed.places != nullptr) changed.places = changed.places->with(key, place);
  return changed;
}

Cell with_later_seeds(const Cell& cell, std::uint64_t steps) {
  Cell changed = cell;
  Seeds& seeds = changed.scenario.seeds;
  DataOptions& data = changed.scenario.data;
  if (data.draws_test_rows() && !data.test_seed) data.test_seed = seeds.data;
  seeds = {seeds.data + steps, seeds.init + steps, seeds.sampling + steps, seeds.compressor + steps};
  identify(changed);
  return changed;
}

Cell with_budget(const Cell& cell, Against which, double bits) {
  Cell changed = cell;
  changed.scenario.rounds *= kMostRounds;
  StopOptions& limits = changed.scenario.stop;
  std::optional<double>& stop = which == Against::bits_up ? limits.bits_up : which == Against::seconds ? limits.seconds : limits.bits;
  stop = std::min(stop.value_or(bits), bits);
  identify(changed);
  return changed;
}

Cell with_target(const Cell& cell, const TuneSettings& settings, double target) {
  Cell changed = cell;
  changed.scenario.rounds *= kMostRounds;
  StopOptions& stop = changed.scenario.stop;
  if (settings.measure == "f_gap")
    stop.f_gap = target;
  else if (settings.measure == "train_loss")
    stop.train_loss = target;
  else
    stop.measures = {settings.measure + (settings.is_highest_best ? " >= " : " <= ") + to_string(Value{target})};
  identify(changed);
  return changed;
}

namespace {

std::vector<Cell> cells_of(const std::string& text, const std::string& source, const std::vector<std::string>& settings,
                           const InputSearch& search) {
  ProblemList problems;
  Node root = parse_toml(text, source, problems);
  const std::vector<Setting> applied = apply_settings(root, settings, problems);
  Sweep sweep = take_sweep(root, problems);
  refuse_idle_settings(applied, sweep, root, problems);
  // An axis without a single good value was reported; the others still get checked.
  const bool complete = std::none_of(sweep.axes.begin(), sweep.axes.end(), [](const Axis& axis) { return axis.values.empty(); });
  if (!complete) {  // these name axes by number
    sweep.exclusions.clear();
    sweep.sets.clear();
  }
  std::erase_if(sweep.axes, [](const Axis& axis) { return axis.values.empty(); });
  if (!equal_zips(sweep.axes))
    for (Axis& axis : sweep.axes) axis.zip.clear();  // reported
  refuse_huge_sweep(sweep, problems);
  EarlyChecks early(search, sweep.tune ? sweep.tune->settings.keys : std::vector<TuneKey>{});
  std::vector<Cell> cells = expand(root, sweep, early, problems);
  if (problems.empty()) refuse_missing_references(cells, sweep, problems);
  if (problems.empty()) check_match_keys(cells, sweep, problems);
  if (problems.empty()) set_tuning(cells, sweep, problems);
  if (problems.empty()) set_plan(cells, sweep, search.folder, problems);
  problems.throw_if_any();
  if (cells.size() > 1)
    for (Cell& cell : cells) cell.found.push_back({kRunsOfStudy, static_cast<double>(cells.size())});
  return cells;
}

}  // namespace

std::vector<Cell> parse_cells(const std::string& text, const std::string& source, const std::vector<std::string>& settings) {
  return cells_of(text, source, settings, {});
}

std::vector<Cell> read_cells(const ScenarioText& scenario, const std::vector<std::string>& settings, const DataCatalog* catalog) {
  std::vector<Cell> cells = cells_of(scenario.text, scenario.name, settings, {scenario.folder, catalog});
  for (Cell& cell : cells) cell.folder = scenario.folder;
  return cells;
}

std::vector<Cell> read_cells(const std::filesystem::path& file, const std::vector<std::string>& settings, const DataCatalog* catalog) {
  return read_cells({.text = read_scenario_text(file), .name = file.string(), .folder = file.parent_path()}, settings, catalog);
}

}  // namespace fl
