#include "scenarios/file/tune_settings.hpp"

#include <algorithm>

namespace fl {
namespace {

// The place of a member's value, or of the table that lacks it.
const SourceLocation& place_of_member(const Node& table, const std::string& key) {
  const Node* node = table.find(key);
  return node == nullptr ? table.place : node->place;
}

// Reads one key and its values.
void read_key(const Node& table, const std::string& path, TuneTable& tune, ProblemList& problems) {
  const Node *key = table.find("key"), *values = table.find("values");
  const bool has_values = values != nullptr && values->kind == Node::Kind::array && !values->holds_table() && !values->items.empty();
  if (key == nullptr || !has_values) {
    problems.add(values != nullptr ? values->place : table.place,
                 path + ": key and values need each other: a key of the scenario, and the list that is tried");
    return;
  }
  const std::string* text = key->text();
  if (text == nullptr || !is_scenario_key(*text)) {
    problems.add(key->place, path + ".key: must be a key of the scenario, such as \"local.learning_rate\", is " + key->shown());
    return;
  }
  TuneKey one{.key = *text, .values = {}, .place = values->place};
  for (const Node& item : values->items) one.values.push_back(item.value());
  for (const TuneKey& other : tune.settings.keys)
    if (other.key == one.key) problems.add(key->place, path + ".key: " + one.key + " is tuned twice; put all its values into one list");
  tune.settings.keys.push_back(std::move(one));
  tune.key_places.push_back(key->place);
}

void read_keys(const Node& table, TuneTable& tune, ProblemList& problems) {
  if (table.find("key") != nullptr || table.find("values") != nullptr) read_key(table, "sweep.tune", tune, problems);
  const Node* keys = table.find("keys");
  if (keys == nullptr) return;
  if (keys->kind != Node::Kind::array)
    problems.add(keys->place, "sweep.tune.keys: must be a list of tables with key and values, is " + keys->shown());
  for (const Node& item : keys->items) {
    if (item.kind != Node::Kind::table) {
      problems.add(item.place, "sweep.tune.keys: must be a table with key and values, is " + item.shown());
      continue;
    }
    refuse_other_keys(item, "sweep.tune.keys", {"key", "values"}, problems);
    read_key(item, "sweep.tune.keys", tune, problems);
  }
}

// Adds a problem for each of these keys that the table has.
void refuse_idle(const Node& table, std::initializer_list<const char*> names, const std::string& at, ProblemList& problems) {
  for (const char* name : names)
    if (const Node* node = table.find(name))
      problems.add(node->place, std::string("sweep.tune.") + name + ": has no effect with at = \"" + at + "\"; drop one of them");
}

void read_margin_of(const Node& table, TuneTable& tune, ProblemList& problems) {
  tune.margin_place = place_of_member(table, "margin");
  const Node* node = table.find("margin");
  if (node == nullptr) return;
  const std::string* text = node->text();
  const std::optional<Margin> margin = text == nullptr ? std::nullopt : read_margin(*text);
  if (margin)
    tune.settings.margin = *margin;
  else
    problems.add(node->place, "sweep.tune.margin: must be a ratio above 1, such as \"1.1x\", or points of a share, such as \"1pt\", is " +
                                  node->shown() + "; the reference itself does not reach a target that is better than its level");
}

// Where candidates are compared, and with what. A budget or a target that is described asks for it.
void read_goal(const Node& table, TuneTable& tune, ProblemList& problems) {
  using At = TuneSettings::At;
  Schema schema;
  enum class Where { rounds, bits, seconds, target };
  std::optional<Where> where;
  schema.choice<std::optional<Where>>(
      "at", where, {{Where::rounds, "rounds"}, {Where::bits, "bits"}, {Where::seconds, "seconds"}, {Where::target, "target"}}, "");
  schema.choice("bits", tune.settings.budget_bits, {{Against::bits_up, "up"}, {Against::bits_both, "both"}}, "");
  schema.field("budget_of", tune.budget_of, "");
  schema.field("target_of", tune.target_of, "");
  for (Field& field : schema.fields()) {
    const Node* node = table.find(field.name);
    if (node == nullptr) continue;
    if (const auto why = field.assign(node->holds_table() ? Value{} : node->value()))
      problems.add(node->place, "sweep.tune." + field.name + ": " + *why);
  }
  if (where) tune.at = *where == Where::rounds ? At::rounds : *where == Where::target ? At::target : At::bits;
  read_margin_of(table, tune, problems);
  const auto has = [&table](const char* key) { return table.find(key) != nullptr; };
  for (const char* key : {"budget_of", "target_of"})
    if (has(key)) tune.budget_place = table.find(key)->place;
  if (!tune.at && (has("target_of") || has("margin"))) tune.at = At::target;
  if (!tune.at && (has("bits") || has("budget_of"))) tune.at = At::bits;
  if (tune.at == At::rounds) refuse_idle(table, {"bits", "budget_of", "target_of", "margin"}, "rounds", problems);
  if (tune.at == At::bits) refuse_idle(table, {"target_of", "margin"}, where == Where::seconds ? "seconds" : "bits", problems);
  if (where == Where::seconds) {
    refuse_idle(table, {"bits"}, "seconds", problems);
    tune.settings.budget_bits = Against::seconds;
  }
  if (tune.at == At::target) refuse_idle(table, {"budget_of"}, "target", problems);
}

}  // namespace

double target_near(double level, const TuneSettings& settings) {
  const Margin& margin = settings.margin;
  if (settings.is_highest_best) return margin.is_ratio ? level / margin.value : level - margin.value;
  return margin.is_ratio ? level * margin.value : level + margin.value;
}

TuneTable read_tune(const Node& table, ProblemList& problems) {
  TuneTable tune;
  tune.place = tune.budget_place = table.place;
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep.tune: must be a table, is " + table.shown());
    return tune;
  }
  refuse_other_keys(table, "sweep.tune", {"seeds", "key", "values", "keys", "measure", "at", "budget_of", "target_of", "margin", "bits"},
                    problems);
  Schema schema;
  schema.field("seeds", tune.settings.seeds, "").at_least(1).at_most(1000);
  schema.field("measure", tune.settings.measure, "");
  for (Field& field : schema.fields())
    if (const Node* node = table.find(field.name))
      if (const auto why = field.assign(node->holds_table() ? Value{} : node->value()))
        problems.add(node->place, "sweep.tune." + field.name + ": " + *why);
  read_keys(table, tune, problems);
  double candidates = 1;
  for (const TuneKey& key : tune.settings.keys) candidates *= static_cast<double>(key.values.size());
  if (candidates > static_cast<double>(kMostCandidates))
    problems.add(table.place, "sweep.tune.values: all keys together must have at most " + std::to_string(kMostCandidates) +
                                  " combinations of values, have " + to_string(Value{candidates}));
  read_goal(table, tune, problems);
  tune.settings.measure_place = place_of_member(table, "measure");
  return tune;
}

}  // namespace fl
