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

// Which budget, and where candidates are compared. A budget that is described asks for at = "bits".
void read_budget(const Node& table, TuneTable& tune, ProblemList& problems) {
  using At = TuneSettings::At;
  Schema schema;
  At at = At::rounds;
  schema.choice("at", at, {{At::rounds, "rounds"}, {At::bits, "bits"}}, "");
  schema.choice("bits", tune.settings.budget_bits, {{Against::bits_up, "up"}, {Against::bits_both, "both"}}, "");
  schema.field("budget_of", tune.budget_of, "");
  for (Field& field : schema.fields()) {
    const Node* node = table.find(field.name);
    if (node == nullptr) continue;
    if (const auto why = field.assign(node->holds_table() ? Value{} : node->value()))
      problems.add(node->place, "sweep.tune." + field.name + ": " + *why);
    else if (field.name == "at")
      tune.at = at;
  }
  if (const Node* node = table.find("budget_of")) tune.budget_place = node->place;
  for (const char* name : {"bits", "budget_of"}) {
    const Node* node = table.find(name);
    if (node != nullptr && tune.at == At::rounds)
      problems.add(node->place, std::string("sweep.tune.") + name + ": has no effect with at = \"rounds\"; drop one of them");
  }
  if (!tune.at && (table.find("bits") != nullptr || !tune.budget_of.empty())) tune.at = At::bits;
}

}  // namespace

TuneTable read_tune(const Node& table, ProblemList& problems) {
  TuneTable tune;
  tune.place = tune.budget_place = table.place;
  if (table.kind != Node::Kind::table) {
    problems.add(table.place, "sweep.tune: must be a table, is " + table.shown());
    return tune;
  }
  refuse_other_keys(table, "sweep.tune", {"seeds", "key", "values", "keys", "measure", "at", "budget_of", "bits"}, problems);
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
  read_budget(table, tune, problems);
  tune.settings.measure_place = place_of_member(table, "measure");
  return tune;
}

}  // namespace fl
