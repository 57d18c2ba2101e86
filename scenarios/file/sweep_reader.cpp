#include "scenarios/file/sweep_reader.hpp"

#include <algorithm>
#include <unordered_set>

#include "fl_core/config/meanings.hpp"
#include "scenarios/file/toml_reader.hpp"

namespace fl {

bool holds(const std::string& path, const std::string& inner) {
  return inner == path || inner.compare(0, path.size() + 1, path + ".") == 0;
}

bool is_chosen(const LabelChoice& choice, const std::vector<Axis>& axes, const std::vector<std::size_t>& value_of) {
  return std::ranges::all_of(choice.labels,
                             [&](const auto& one) { return one.second.contains(axes[one.first].values[value_of[one.first]].label); });
}

namespace {

constexpr std::size_t kMostAxes = 100;  // each is compared with every other

// A member that an axis cannot do without.
const Node* need(const Node& table, const std::string& path, const std::string& key, const std::string& what, ProblemList& problems) {
  const Node* node = table.find(key);
  if (node == nullptr) problems.add(table.place, path + "." + key + ": " + missing_text(what));
  return node;
}

// Numbers as people write them (100, not 100.0), strings without quotes.
std::string plain_label(const Node& node) {
  if (const std::string* text = node.text()) return *text;
  std::string label = to_string(node.value());
  const bool is_whole = std::holds_alternative<double>(node.scalar.data) && label.size() > 2 && label.substr(label.size() - 2) == ".0";
  return is_whole ? label.substr(0, label.size() - 2) : label;
}

// Takes a text out of a table.
void take_text(Node& table, const std::string& key, std::string& text, SourceLocation& place, ProblemList& problems) {
  const auto member = table.members.find(key);
  if (member == table.members.end()) return;
  place = member->second.place;
  const std::string* found = member->second.text();
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
  const std::string* text = label->text();
  if (text == nullptr || text->empty()) {
    problems.add(label->place, "sweep.axis.values.label: must be a string that is not empty, is " + label->shown());
    return std::nullopt;
  }
  AxisValue value{.label = *text, .node = {}};
  node.members.erase("label");
  take_text(node, "match_bits_of", value.match_bits_of, value.match_place, problems);
  value.match_key_place = value.match_place;
  take_text(node, "match_key", value.match_key, value.match_key_place, problems);
  value.node = std::move(node);
  return value;
}

constexpr std::size_t kMostNamed = 1000;  // labels among which a nearest one is looked for

// The labels of an axis, of those values alone that others may be matched to where that is asked for.
std::vector<std::string> some_labels(const Axis& axis, bool are_references) {
  std::vector<std::string> labels;
  for (const AxisValue& value : axis.values)
    if (labels.size() < kMostNamed && !(are_references && !value.match_bits_of.empty())) labels.push_back(value.label);
  return labels;
}

// The reference is another value of the axis that is not matched itself: one of `known`.
void check_match(const AxisValue& value, const Axis& axis, const std::unordered_set<std::string>& references, ProblemList& problems) {
  if (value.match_bits_of.empty() || references.contains(value.match_bits_of) || problems.is_full()) return;
  const std::vector<std::string> known = some_labels(axis, true);
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
  if (values.items.size() > kMostCells) {
    problems.add(values.place, "sweep.axis.values: must be at most " + std::to_string(kMostCells) +
                                   " values, as many as a sweep has cells; " + axis.key + " has " + std::to_string(values.items.size()));
    return;
  }
  std::unordered_set<std::string> labels, references;
  for (const Node& item : values.items) {
    auto value = read_value(item, problems);
    if (!value) continue;
    if (!labels.insert(value->label).second)
      problems.add(item.place, "sweep.axis.values: two values of " + axis.key + " are called \"" + value->label + "\"; labels must differ");
    if (value->match_bits_of.empty()) references.insert(value->label);
    axis.values.push_back(std::move(*value));
  }
  for (const AxisValue& value : axis.values) check_match(value, axis, references, problems);
}

// A key of the scenario that stands behind [[sweep.axis]] is taken for one of the axis.
void refuse_other_keys_of_axis(const Node& table, ProblemList& problems) {
  static const std::vector<std::string> kKnown = {"key", "values", "zip"};
  for (const auto& [key, member] : table.members) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    const bool is_slip = !nearest_name(key, kKnown).empty();
    problems.add(member.key_place,
                 unknown_key_text("sweep.axis", key, kKnown, is_slip ? "" : "; keys of the scenario come before [sweep] and its axes"));
  }
}

void read_axis(const Node& table, Sweep& sweep, ProblemList& problems) {
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep.axis: must be a table with key and values, is " + table.shown());
    return;
  }
  refuse_other_keys_of_axis(table, problems);
  const Node* key = need(table, "sweep.axis", "key", "the key that the axis moves, such as \"partition.alpha\"", problems);
  const Node* values = need(table, "sweep.axis", "values", "the list of its values", problems);
  if (key == nullptr || values == nullptr) return;
  const std::string* text = key->text();
  if (text == nullptr || !is_scenario_key(*text)) {
    problems.add(key->place, "sweep.axis.key: must be a key of the scenario, such as \"partition.alpha\", is " + key->shown());
    return;
  }
  Axis axis{*text, key->place, {}, {}};
  if (const Node* zip = table.find("zip")) {
    if (const std::string* name = zip->text(); name != nullptr && !name->empty())
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

// `path` is the table in which the choice stands, for errors.
void read_chosen_labels(const Node& node, const std::string& path, std::size_t number, const Axis& axis, LabelChoice& choice,
                        ProblemList& problems) {
  const std::vector<Node> one = {node};
  std::unordered_set<std::string> labels;
  for (const AxisValue& value : axis.values) labels.insert(value.label);
  for (const Node& item : node.kind == Node::Kind::array ? node.items : one) {
    const std::string label = item.holds_table() ? "" : plain_label(item);
    if (!labels.contains(label)) {
      if (problems.is_full()) return;
      const std::string near = nearest_name(label, some_labels(axis, false));
      problems.add(item.place, path + ": " + axis.key + " has no value called " + item.shown() +
                                   (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
      continue;
    }
    choice.labels[number].insert(label);
  }
}

// Keys may be dotted, so the labels of an axis lie as deep as its key has parts.
void read_choice(const Node& node, const std::string& path, const std::string& inner, const Sweep& sweep, LabelChoice& choice,
                 ProblemList& problems) {
  for (const auto& [key, member] : node.members) {
    const std::string at = inner.empty() ? key : inner + "." + key;
    const auto axis = std::find_if(sweep.axes.begin(), sweep.axes.end(), [&at](const Axis& a) { return a.key == at; });
    if (axis != sweep.axes.end()) {
      read_chosen_labels(member, path, static_cast<std::size_t>(axis - sweep.axes.begin()), *axis, choice, problems);
    } else if (member.kind == Node::Kind::table) {
      read_choice(member, path, at, sweep, choice, problems);
    } else {
      std::vector<std::string> known;
      for (const Axis& a : sweep.axes) known.push_back(a.key);
      problems.add(member.key_place, unknown_key_text(path, at, known));
    }
  }
}

constexpr std::size_t kMostChoices = 1000;  // every combination is compared with every one of them

// Returns true for a list of tables that is not too long.
bool is_list_of_tables(const Node& list, const std::string& path, ProblemList& problems) {
  if (list.kind != Node::Kind::array) problems.add(list.place, path + ": must be a list of tables, [[" + path + "]], is " + list.shown());
  if (list.items.size() <= kMostChoices) return true;
  problems.add(list.place, path + ": must be at most " + std::to_string(kMostChoices) + " tables, is " + std::to_string(list.items.size()) +
                               "; one table takes lists of labels");
  return false;
}

void read_exclusions(const Node& list, Sweep& sweep, ProblemList& problems) {
  if (!is_list_of_tables(list, "sweep.exclude", problems)) return;
  for (const Node& item : list.items) {
    LabelChoice exclusion;
    if (item.kind == Node::Kind::table) read_choice(item, "sweep.exclude", "", sweep, exclusion, problems);
    if (item.kind != Node::Kind::table || item.members.empty())
      problems.add(item.place, "sweep.exclude: must be a table of axes and labels, is " + item.shown());
    if (!exclusion.labels.empty()) sweep.exclusions.push_back(std::move(exclusion));
  }
}

// Adds the values below `node`, each with the path of its key.
void read_keys(const Node& node, const std::string& path, const Sweep& sweep, KeysOfCombinations& found, ProblemList& problems) {
  for (const auto& [key, member] : node.members) {
    const std::string at = path.empty() ? key : path + "." + key;
    if (member.kind == Node::Kind::table) {
      read_keys(member, at, sweep, found, problems);
      continue;
    }
    const bool is_axis = std::ranges::any_of(sweep.axes, [&at](const Axis& axis) { return axis.key == at; });
    if (is_axis) {
      problems.add(member.key_place, "sweep.set.keys: " + at + " is set by its axis; drop one of them");
    } else if (!is_scenario_key(at)) {
      problems.add(member.key_place, "sweep.set.keys: must be keys of the scenario, such as local.learning_rate, has " + at);
    } else {
      found.keys.emplace_back(at, member);
    }
  }
}

void read_set(const Node& item, Sweep& sweep, ProblemList& problems) {
  if (item.kind != Node::Kind::table) {
    problems.add(item.place, "sweep.set: must be a table with when and keys, is " + item.shown());
    return;
  }
  refuse_other_keys(item, "sweep.set", {"when", "keys"}, problems);
  const Node* when =
      need(item, "sweep.set", "when", "the axes and labels of the combinations, such as { compressor.up = \"hard\" }", problems);
  const Node* keys =
      need(item, "sweep.set", "keys", "the keys that these combinations set, such as { local.learning_rate = 0.1 }", problems);
  if (when == nullptr || keys == nullptr) return;
  KeysOfCombinations set{.when = {}, .keys = {}, .place = item.place};
  const std::size_t known = problems.size();
  if (when->kind == Node::Kind::table) read_choice(*when, "sweep.set.when", "", sweep, set.when, problems);
  if (keys->kind == Node::Kind::table) read_keys(*keys, "", sweep, set, problems);
  if (problems.size() > known) return;
  if (set.when.labels.empty()) problems.add(when->place, "sweep.set.when: must be a table of axes and labels, is " + when->shown());
  if (set.keys.empty()) problems.add(keys->place, "sweep.set.keys: must be a table of keys and values, is " + keys->shown());
  sweep.sets.push_back(std::move(set));
}

void read_sets(const Node& list, Sweep& sweep, ProblemList& problems) {
  if (!is_list_of_tables(list, "sweep.set", problems)) return;
  for (const Node& item : list.items) read_set(item, sweep, problems);
}

}  // namespace

namespace {

// Adds a problem for each key of [sweep] that is not known. A list there is meant as an axis: the error writes it as one.
void refuse_other_keys_of_sweep(const Node& table, ProblemList& problems) {
  static const std::vector<std::string> kKnown = {"seeds", "axis", "exclude", "set", "tune", "to_bits_of", "plan_file"};
  for (const auto& [name, member] : table.members) {
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    std::string key = name;
    const Node* inner = &member;
    while (inner->kind == Node::Kind::table && inner->members.size() == 1) {
      key += "." + inner->members.begin()->first;
      inner = &inner->members.begin()->second;
    }
    const std::vector<Meaning> meanings = meanings_of(key);
    if (!meanings.empty() && meanings.front().value.empty() && !meanings.front().key.empty())
      key = join_path(meanings.front().table, meanings.front().key);
    const bool is_axis = inner->kind == Node::Kind::array && !holds("sweep", key) && nearest_name(name, kKnown).empty();
    problems.add(member.key_place,
                 unknown_key_text("sweep", name, kKnown,
                                  is_axis ? "; an axis is written [[sweep.axis]] with key = \"" + key + "\" and values = [...]" : ""));
  }
}

// Reads a text of [sweep] and its place. `meaning` says what it must be.
void read_text(const Node& table, const std::string& key, const std::string& meaning, std::string& text, SourceLocation& place,
               ProblemList& problems) {
  const Node* node = table.find(key);
  if (node == nullptr) return;
  place = node->place;
  const std::string* found = node->text();
  if (found == nullptr || found->empty())
    problems.add(node->place, "sweep." + key + ": must be " + meaning + ", is " + node->shown());
  else
    text = *found;
}

}  // namespace

// Takes [sweep] out of the tree.
Sweep take_sweep(Node& root, ProblemList& problems) {
  Sweep sweep;
  sweep.place = sweep.exclude_place = root.place;
  const auto member = root.members.find("sweep");
  if (member == root.members.end()) return sweep;
  sweep.place = member->second.place;
  const Node table = std::move(member->second);
  root.members.erase(member);
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep: must be a table, is " + table.shown());
    return sweep;
  }
  refuse_other_keys_of_sweep(table, problems);
  if (const Node* tune = table.find("tune")) sweep.tune = read_tune(*tune, problems);
  read_text(table, "to_bits_of", "the label of a method", sweep.to_bits_of, sweep.to_bits_place, problems);
  read_text(table, "plan_file", "the path of an analysis plan", sweep.plan_file, sweep.plan_place, problems);
  if (const Node* seeds = table.find("seeds")) {
    sweep.seeds_place = seeds->place;
    Schema schema;
    const auto why = schema.field("seeds", sweep.seeds, "").at_least(1).assign(seeds->holds_table() ? Value{} : seeds->value());
    const std::string hint = seeds->kind == Node::Kind::array ? "; it is the number of seeds: 3 plays the seeds 1, 2 and 3" : "";
    if (why) problems.add(seeds->place, "sweep.seeds: " + *why + hint);
  }
  if (const Node* axes = table.find("axis")) {
    if (axes->kind != Node::Kind::array)
      problems.add(axes->place, "sweep.axis: must be a list of tables, [[sweep.axis]], is " + axes->shown());
    if (axes->items.size() > kMostAxes)
      problems.add(axes->place,
                   "sweep.axis: must be at most " + std::to_string(kMostAxes) + " axes, is " + std::to_string(axes->items.size()));
    else
      for (const Node& axis : axes->items) read_axis(axis, sweep, problems);
  }
  if (const Node* exclude = table.find("exclude")) {
    sweep.exclude_place = exclude->place;
    read_exclusions(*exclude, sweep, problems);
  }
  if (const Node* sets = table.find("set")) read_sets(*sets, sweep, problems);
  return sweep;
}

}  // namespace fl
