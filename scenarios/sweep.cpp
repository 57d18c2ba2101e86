#include "scenarios/sweep.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "scenarios/scenario_reader.hpp"
#include "scenarios/toml_reader.hpp"

namespace fl {
namespace {

constexpr std::size_t kMostCells = 100'000;

struct AxisValue {
  std::string label;
  Node node;
  std::string match_bits_of = {}, match_key = "threshold";
  Place match_place = {};
};

struct Axis {
  std::string key;
  Place key_place;
  std::vector<AxisValue> values;
  std::string zip;  // "" = moves alone
};

// Combinations that are left out: those that carry, on each of these axes, one of the labels.
struct Exclusion {
  std::map<std::size_t, std::set<std::string>> labels;  // by axis
};

struct Sweep {
  std::int64_t seeds = 1;
  Place seeds_place;
  std::vector<Axis> axes;
  std::vector<Exclusion> exclusions;
  std::shared_ptr<TuneSettings> tune;
};

// "compressor.up" holds "compressor.up.k" and itself.
bool holds(const std::string& path, const std::string& inner) {
  return inner == path || inner.compare(0, path.size() + 1, path + ".") == 0;
}

void refuse_other_keys(const Node& table, const std::string& path, const std::vector<std::string>& known, ProblemList& problems) {
  for (const auto& [key, value] : table.members)
    if (std::find(known.begin(), known.end(), key) == known.end()) problems.add(value.key_place, unknown_key_text(path, key, known));
}

// A member that an axis cannot do without.
const Node* need(const Node& table, const std::string& path, const std::string& key, const std::string& what, ProblemList& problems) {
  const Node* node = table.find(key);
  if (node == nullptr) problems.add(table.place, path + "." + key + ": is required: " + what);
  return node;
}

const std::string* text_of(const Node& node) { return std::get_if<std::string>(&node.scalar.data); }

// Numbers as people write them (100, not 100.0), strings without quotes.
std::string plain_label(const Node& node) {
  if (const std::string* text = text_of(node)) return *text;
  std::string label = to_string(node.value());
  const bool is_whole = std::holds_alternative<double>(node.scalar.data) && label.size() > 2 && label.substr(label.size() - 2) == ".0";
  return is_whole ? label.substr(0, label.size() - 2) : label;
}

// Takes a text out of a table.
void take_text(Node& table, const std::string& key, std::string& text, Place& place, ProblemList& problems) {
  const auto member = table.members.find(key);
  if (member == table.members.end()) return;
  place = member->second.place;
  const std::string* found = text_of(member->second);
  if (found == nullptr || found->empty())
    problems.add(place, "sweep.axis.values." + key + ": must be a string that is not empty, is " + member->second.shown());
  else
    text = *found;
  table.members.erase(member);
}

std::optional<AxisValue> read_value(Node node, ProblemList& problems) {
  if (node.kind != Node::Kind::table) return AxisValue{plain_label(node), std::move(node)};
  const Node* label = need(node, "sweep.axis.values", "label", "the name of this table in results", problems);
  if (label == nullptr) return std::nullopt;
  const std::string* text = text_of(*label);
  if (text == nullptr || text->empty()) {
    problems.add(label->place, "sweep.axis.values.label: must be a string that is not empty, is " + label->shown());
    return std::nullopt;
  }
  AxisValue value{.label = *text, .node = {}};
  node.members.erase("label");
  take_text(node, "match_bits_of", value.match_bits_of, value.match_place, problems);
  Place ignored;
  take_text(node, "match_key", value.match_key, ignored, problems);
  value.node = std::move(node);
  return value;
}

// The reference is another value of the axis that is not matched itself.
void check_match(const AxisValue& value, const Axis& axis, ProblemList& problems) {
  if (value.match_bits_of.empty()) return;
  std::vector<std::string> known;
  for (const AxisValue& other : axis.values)
    if (other.match_bits_of.empty()) known.push_back(other.label);
  if (std::find(known.begin(), known.end(), value.match_bits_of) != known.end()) return;
  const std::string near = nearest_name(value.match_bits_of, known);
  problems.add(value.match_place, "sweep.axis.values.match_bits_of: must be the label of another value of " + axis.key +
                                      " that is not matched itself, is \"" + value.match_bits_of + "\"" +
                                      (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

void read_values(const Node& values, Axis& axis, ProblemList& problems) {
  if (values.kind != Node::Kind::array || values.items.empty()) {
    problems.add(values.place, "sweep.axis.values: must be a list with at least one value, is " + values.shown());
    return;
  }
  for (const Node& item : values.items) {
    auto value = read_value(item, problems);
    if (!value) continue;
    for (const AxisValue& other : axis.values)
      if (other.label == value->label)
        problems.add(item.place,
                     "sweep.axis.values: two values of " + axis.key + " are called \"" + value->label + "\"; labels must differ");
    axis.values.push_back(std::move(*value));
  }
  for (const AxisValue& value : axis.values) check_match(value, axis, problems);
}

// Keys that an axis may not move: the file's own structure.
bool is_axis_key(const std::string& key) {
  const std::vector<std::string> parts = split_path(key);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_bare_key) && parts[0] != "sweep";
}

void read_axis(const Node& table, Sweep& sweep, ProblemList& problems) {
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep.axis: must be a table with key and values, is " + table.shown());
    return;
  }
  refuse_other_keys(table, "sweep.axis", {"key", "values", "zip"}, problems);
  const Node* key = need(table, "sweep.axis", "key", "the key that the axis moves, such as \"partition.alpha\"", problems);
  const Node* values = need(table, "sweep.axis", "values", "the list of its values", problems);
  if (key == nullptr || values == nullptr) return;
  const std::string* text = text_of(*key);
  if (text == nullptr || !is_axis_key(*text)) {
    problems.add(key->place, "sweep.axis.key: must be a key of the scenario, such as \"partition.alpha\", is " + key->shown());
    return;
  }
  Axis axis{*text, key->place, {}, {}};
  if (const Node* zip = table.find("zip")) {
    if (const std::string* name = text_of(*zip); name != nullptr && !name->empty())
      axis.zip = *name;
    else
      problems.add(zip->place, "sweep.axis.zip: must be a name that other axes share, is " + zip->shown());
  }
  for (const Axis& other : sweep.axes)
    if (holds(axis.key, other.key))
      problems.add(key->place, "sweep.axis.key: " + axis.key + " overwrites the earlier axis " + other.key +
                                   (axis.key == other.key ? "; keep one of them" : "; put the axis of the whole table first"));
  read_values(*values, axis, problems);
  for (const Axis& other : sweep.axes)
    if (!axis.zip.empty() && axis.zip == other.zip && axis.values.size() != other.values.size())
      problems.add(values->place, "sweep.axis.values: " + axis.key + " has " + std::to_string(axis.values.size()) + " values and " +
                                      other.key + " has " + std::to_string(other.values.size()) + "; axes of one zip need equally many");
  sweep.axes.push_back(std::move(axis));
}

void read_excluded_labels(const Node& node, std::size_t number, const Axis& axis, Exclusion& exclusion, ProblemList& problems) {
  const std::vector<Node> one = {node};
  for (const Node& item : node.kind == Node::Kind::array ? node.items : one) {
    const std::string label = item.holds_table() ? "" : plain_label(item);
    std::vector<std::string> known;
    for (const AxisValue& value : axis.values) known.push_back(value.label);
    if (std::find(known.begin(), known.end(), label) == known.end()) {
      const std::string near = nearest_name(label, known);
      problems.add(item.place, "sweep.exclude: " + axis.key + " has no value called " + item.shown() +
                                   (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
      continue;
    }
    exclusion.labels[number].insert(label);
  }
}

// Keys may be dotted, so the labels of an axis lie as deep as its key has parts.
void read_exclusion(const Node& node, const std::string& path, const Sweep& sweep, Exclusion& exclusion, ProblemList& problems) {
  for (const auto& [key, member] : node.members) {
    const std::string at = path.empty() ? key : path + "." + key;
    const auto axis = std::find_if(sweep.axes.begin(), sweep.axes.end(), [&at](const Axis& a) { return a.key == at; });
    if (axis != sweep.axes.end()) {
      read_excluded_labels(member, static_cast<std::size_t>(axis - sweep.axes.begin()), *axis, exclusion, problems);
    } else if (member.kind == Node::Kind::table) {
      read_exclusion(member, at, sweep, exclusion, problems);
    } else {
      std::vector<std::string> known;
      for (const Axis& a : sweep.axes) known.push_back(a.key);
      problems.add(member.key_place, unknown_key_text("sweep.exclude", at, known));
    }
  }
}

void read_exclusions(const Node& list, Sweep& sweep, ProblemList& problems) {
  if (list.kind != Node::Kind::array)
    problems.add(list.place, "sweep.exclude: must be a list of tables, [[sweep.exclude]], is " + list.shown());
  for (const Node& item : list.items) {
    Exclusion exclusion;
    if (item.kind == Node::Kind::table) read_exclusion(item, "", sweep, exclusion, problems);
    if (item.kind != Node::Kind::table || item.members.empty())
      problems.add(item.place, "sweep.exclude: must be a table of axes and labels, is " + item.shown());
    if (!exclusion.labels.empty()) sweep.exclusions.push_back(std::move(exclusion));
  }
}

std::shared_ptr<TuneSettings> read_tune(const Node& table, ProblemList& problems) {
  auto tune = std::make_shared<TuneSettings>();
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep.tune: must be a table, is " + table.shown());
    return tune;
  }
  refuse_other_keys(table, "sweep.tune", {"seeds", "key", "values", "measure"}, problems);
  Schema schema;
  schema.field("seeds", tune->seeds, "").at_least(1).at_most(1000);
  schema.field("key", tune->key, "");
  schema.field("measure", tune->measure, "");
  for (Field& field : schema.fields())
    if (const Node* node = table.find(field.name))
      if (const auto why = field.assign(node->holds_table() ? Value{} : node->value()))
        problems.add(node->place, "sweep.tune." + field.name + ": " + *why);
  const Node* values = table.find("values");
  if (values != nullptr && values->kind == Node::Kind::array && !values->holds_table())
    for (const Node& item : values->items) tune->values.push_back(item.value());
  if (tune->key.empty() != tune->values.empty())
    problems.add(values != nullptr ? values->place : table.place,
                 "sweep.tune: key and values need each other: a key of the scenario, and the list that is tried");
  if (!tune->key.empty() && !is_axis_key(tune->key))
    problems.add(table.place, "sweep.tune.key: must be a key of the scenario, such as \"local.learning_rate\"");
  if (tune->measure != "train_loss" && tune->measure != "f_gap")
    problems.add(table.place, "sweep.tune.measure: must be \"train_loss\" or \"f_gap\", is \"" + tune->measure +
                                  "\"; the test set is for the result and not for tuning");
  return tune;
}

// Takes [sweep] out of the tree.
Sweep take_sweep(Node& root, ProblemList& problems) {
  Sweep sweep;
  const auto member = root.members.find("sweep");
  if (member == root.members.end()) return sweep;
  const Node table = std::move(member->second);
  root.members.erase(member);
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep: must be a table, is " + table.shown());
    return sweep;
  }
  refuse_other_keys(table, "sweep", {"seeds", "axis", "exclude", "tune"}, problems);
  if (const Node* tune = table.find("tune")) sweep.tune = read_tune(*tune, problems);
  if (const Node* seeds = table.find("seeds")) {
    sweep.seeds_place = seeds->place;
    Schema schema;
    const auto why = schema.field("seeds", sweep.seeds, "").at_least(1).assign(seeds->holds_table() ? Value{} : seeds->value());
    if (why) problems.add(seeds->place, "sweep.seeds: " + *why);
  }
  if (const Node* axes = table.find("axis")) {
    if (axes->kind != Node::Kind::array)
      problems.add(axes->place, "sweep.axis: must be a list of tables, [[sweep.axis]], is " + axes->shown());
    for (const Node& axis : axes->items) read_axis(axis, sweep, problems);
  }
  if (const Node* exclude = table.find("exclude")) read_exclusions(*exclude, sweep, problems);
  return sweep;
}

void refuse_idle_settings(const std::vector<Setting>& settings, const Sweep& sweep, ProblemList& problems) {
  for (const Setting& setting : settings)
    for (const Axis& axis : sweep.axes)
      if (holds(axis.key, setting.key))
        problems.add(setting.node.place,
                     setting.key + ": has no effect, because an axis of [sweep] sets " + axis.key + "; --set sweep.axis=[] drops the axes");
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

void refuse_huge_sweep(const Sweep& sweep, const Place& place) {
  double cells = static_cast<double>(sweep.seeds);
  for (const Group& group : groups_of(sweep.axes)) cells *= static_cast<double>(sweep.axes[group[0]].values.size());
  if (cells <= static_cast<double>(kMostCells)) return;
  throw ConfigError(std::vector<Problem>{
      {place.text(), "sweep: must have at most " + std::to_string(kMostCells) + " cells, has " + to_string(Value{cells})}});
}

// Seeds are written as TOML integers.
void refuse_large_seeds(const Sweep& sweep, const Seeds& seeds, ProblemList& problems) {
  const auto largest = std::max({seeds.data, seeds.init, seeds.sampling, seeds.compressor});
  const auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (largest > last - static_cast<std::uint64_t>(sweep.seeds - 1))
    problems.add(sweep.seeds_place, "sweep.seeds: the last seed must be at most " + std::to_string(last) + "; start from a smaller seed");
}

void add_seeds(Cell cell, std::int64_t seeds, std::vector<Cell>& cells) {
  const Seeds first = cell.scenario.seeds;
  for (std::int64_t s = 0; s < seeds; ++s) {
    const auto step = static_cast<std::uint64_t>(s);
    cell.scenario.seeds = {first.data + step, first.init + step, first.sampling + step, first.compressor + step};
    cell.resolved_toml = to_toml(cell.scenario);
    cell.hash = hash_of_text(cell.resolved_toml);
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
  return std::any_of(sweep.exclusions.begin(), sweep.exclusions.end(), [&](const Exclusion& exclusion) {
    return std::all_of(exclusion.labels.begin(), exclusion.labels.end(),
                       [&](const auto& one) { return one.second.contains(sweep.axes[one.first].values[value_of[one.first]].label); });
  });
}

// The cell with these values, all its seeds.
void add_combination(const Node& root, const Sweep& sweep, const std::vector<std::size_t>& value_of, std::vector<Cell>& cells,
                     ProblemList& problems) {
  Node tree = root;
  Cell cell;
  for (std::size_t a = 0; a < value_of.size(); ++a) {
    const Axis& axis = sweep.axes[a];
    const AxisValue& value = axis.values[value_of[a]];
    Node node = value.node;
    node.key_place = axis.key_place;
    put(tree, axis.key, std::move(node), problems);
    cell.axis_labels.emplace_back(axis.key, value.label);
    if (!value.match_bits_of.empty()) cell.match = MatchBits{a, value.match_bits_of, axis.key + "." + value.match_key};
  }
  cell.tune = sweep.tune;
  cell.scenario = read_scenario(tree, problems);
  refuse_large_seeds(sweep, cell.scenario.seeds, problems);
  if (problems.empty()) add_seeds(std::move(cell), sweep.seeds, cells);
}

std::vector<Cell> expand(const Node& root, const Sweep& sweep, ProblemList& problems) {
  std::vector<Cell> cells;
  const std::vector<Group> groups = groups_of(sweep.axes);
  std::vector<std::size_t> chosen(groups.size(), 0), value_of(sweep.axes.size(), 0);
  bool any = false;
  do {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::size_t a : groups[g]) value_of[a] = chosen[g];
    if (is_excluded(sweep, value_of)) continue;
    any = true;
    add_combination(root, sweep, value_of, cells, problems);
  } while (advance(chosen, groups, sweep.axes));
  if (!any) problems.add(root.place, "sweep.exclude: leaves no run");
  return cells;
}

void identify(Cell& cell) {
  cell.resolved_toml = to_toml(cell.scenario);
  cell.hash = hash_of_text(cell.resolved_toml);
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

Cell with_later_seeds(const Cell& cell, std::uint64_t steps) {
  Cell changed = cell;
  Seeds& seeds = changed.scenario.seeds;
  seeds = {seeds.data + steps, seeds.init + steps, seeds.sampling + steps, seeds.compressor + steps};
  identify(changed);
  return changed;
}

std::vector<Cell> parse_cells(const std::string& text, const std::string& source, const std::vector<std::string>& settings) {
  ProblemList problems;
  Node root = parse_toml(text, source, problems);
  const std::vector<Setting> applied = apply_settings(root, settings, problems);
  Sweep sweep = take_sweep(root, problems);
  refuse_idle_settings(applied, sweep, problems);
  // An axis without a single good value was reported; the others still get checked.
  const bool complete = std::none_of(sweep.axes.begin(), sweep.axes.end(), [](const Axis& axis) { return axis.values.empty(); });
  if (!complete) sweep.exclusions.clear();  // they name axes by number
  std::erase_if(sweep.axes, [](const Axis& axis) { return axis.values.empty(); });
  if (!equal_zips(sweep.axes))
    for (Axis& axis : sweep.axes) axis.zip.clear();  // reported
  refuse_huge_sweep(sweep, root.place);
  std::vector<Cell> cells = expand(root, sweep, problems);
  problems.throw_if_any();
  return cells;
}

std::vector<Cell> read_cells(const std::filesystem::path& file, const std::vector<std::string>& settings) {
  std::vector<Cell> cells = parse_cells(read_scenario_text(file), file.string(), settings);
  for (Cell& cell : cells) cell.folder = file.parent_path();
  return cells;
}

}  // namespace fl
