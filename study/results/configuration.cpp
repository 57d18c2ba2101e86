#include "study/results/configuration.hpp"

#include <algorithm>
#include <set>

#include "scenarios/file/stored_scenario.hpp"
#include "study/output/json.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

Value tree_of(const RunRecord& run) { return stored_scenario(run.scenario, "the scenario of run " + run.run); }

std::string json_of(const Value& value);

struct JsonOf {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return json_number(value); }
  std::string operator()(const std::string& value) const { return json_text(value); }
  std::string operator()(const Value::List& list) const {
    std::string text = "[";
    for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ",") + json_of(list[i]);
    return text + "]";
  }
  std::string operator()(const Value::Table& table) const {
    std::string text = "{";
    for (std::size_t i = 0; i < table.size(); ++i) text += (i == 0 ? "" : ",") + json_text(table[i].first) + ":" + json_of(table[i].second);
    return text + "}";
  }
};

std::string json_of(const Value& value) { return std::visit(JsonOf{}, value.data); }

// Returns a value as a table cell: a text without JSON's quotes, and an infinite number as in every other column.
std::string cell_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) return *text;
  if (const auto* number = std::get_if<double>(&value.data)) return exact_text(*number);
  return json_of(value);
}

bool is_table(const Value& value) { return std::holds_alternative<Value::Table>(value.data); }

void flatten(const Value& value, const std::string& path, Configuration& values) {
  const auto* list = std::get_if<Value::List>(&value.data);
  if (const auto* table = std::get_if<Value::Table>(&value.data)) {
    for (const auto& [key, member] : *table) flatten(member, path.empty() ? key : path + "." + key, values);
  } else if (list != nullptr && std::ranges::any_of(*list, is_table)) {
    for (std::size_t i = 0; i < list->size(); ++i) flatten((*list)[i], path + "." + std::to_string(i + 1), values);
  } else {
    values[path] = {.json = json_of(value), .cell = cell_of(value), .toml = to_string(value)};
  }
}

}  // namespace

Configuration configuration_of(const RunRecord& run) {
  Configuration values;
  if (!run.scenario.empty()) flatten(tree_of(run), "", values);
  return values;
}

std::string configuration_json(const RunRecord& run) { return run.scenario.empty() ? "" : json_of(tree_of(run)); }

// Compares each run with the first one, so that only two configurations are in memory at a time.
std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs) {
  Configuration first;
  std::set<std::string> keys;
  bool is_first = true;
  for (const RunRecord& run : runs) {
    if (run.scenario.empty()) continue;
    Configuration values = configuration_of(run);
    if (is_first) {
      first = std::move(values);
      is_first = false;
      continue;
    }
    for (const auto& [key, value] : values)
      if (const auto found = first.find(key); found == first.end() || found->second.json != value.json) keys.insert(key);
    for (const auto& [key, _] : first)
      if (!values.contains(key)) keys.insert(key);
  }
  return {keys.begin(), keys.end()};
}

}  // namespace fl
