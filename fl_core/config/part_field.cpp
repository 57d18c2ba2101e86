#include "fl_core/config/part_field.hpp"

#include <algorithm>

#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

using Refusal = std::optional<std::string>;

constexpr int kDeepestParts = 8;  // parts inside of parts

// Returns how deep tables are nested in a value; stops counting above `most`.
int depth_of(const Value& value, int most) {
  int deepest = 0;
  const auto look = [&](const Value& inner) {
    if (deepest < most) deepest = std::max(deepest, depth_of(inner, most));
  };
  if (const auto* list = std::get_if<Value::List>(&value.data))
    for (const Value& item : *list) look(item);
  const auto* table = std::get_if<Value::Table>(&value.data);
  if (table == nullptr) return deepest;
  for (const auto& [_, member] : *table) look(member);
  return deepest + 1;
}

std::string unknown_option(const std::string& key, const std::string& part, Schema& schema) {
  std::vector<std::string> known = {"kind"};
  std::string all = "kind";
  for (const Field& field : schema.fields()) {
    known.push_back(field.name);
    all += ", " + field.name;
  }
  return "has no option \"" + key + "\"" + did_you_mean(key, known, Sought::key) + " (" + part + " has: " + all + ")";
}

Refusal set_options(const Value::Table& table, NamedPart& part) {
  Schema schema = part.options.schema();
  for (const auto& [key, value] : table) {
    if (key == "kind") continue;
    Field* field = schema.find(key);
    if (field == nullptr) return unknown_option(key, part.part, schema);
    if (const Refusal why = field->assign(value)) return "its " + key + " " + *why;
  }
  Problems problems;
  part.options.validate(problems);
  if (problems.empty()) return std::nullopt;
  return "its " + problems.front().where + ": " + problems.front().message;
}

// Options without a kind are those of the part that is there.
const std::string* kind_of(const Value::Table& table, const NamedPart& part) {
  for (const auto& [key, value] : table)
    if (key == "kind") return std::get_if<std::string>(&value.data);
  return part.part.empty() ? nullptr : &part.part;
}

Refusal set_part(const std::string& role, const Value& value, NamedPart& part) {
  if (depth_of(value, kDeepestParts + 1) > kDeepestParts)
    return "nests parts more than " + std::to_string(kDeepestParts) + " levels deep, which is the limit";
  const auto* table = std::get_if<Value::Table>(&value.data);
  const auto* name = std::get_if<std::string>(&value.data);  // "top_k" is short for { kind = "top_k" }
  if (table != nullptr) name = kind_of(*table, part);
  if (name == nullptr)
    return "must be a " + role + " such as { kind = \"" + (role == "compressor" ? "top_k" : "NAME") + "\" }, is " + to_string(value);
  try {
    NamedPart named = resolve_name(role, *name);
    if (table != nullptr)
      if (const Refusal why = set_options(*table, named)) return *why;
    part = std::move(named);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

Value value_of(const std::string& role, const NamedPart& part) {
  NamedPart full = with_options(role, part);
  Schema schema = full.options.schema();
  Value::Table table = {{"kind", Value{full.part}}};
  for (const Field& field : schema.fields()) {
    Value value = field.value();
    // A part within this one has no bounds, and asking for its value twice at every level would take 2^levels steps.
    const bool is_set = field.takes_tables || field.is_set();
    if (is_set && field.is_written() && !std::holds_alternative<std::monostate>(value.data))
      table.emplace_back(field.name, std::move(value));
  }
  Value value;
  value.data = std::move(table);
  return value;
}

}  // namespace

NamedPart with_options(const std::string& role, const NamedPart& part) {
  return part.options.empty() && Registry::instance().contains(role, part.part) ? resolve_name(role, part.part) : part;
}

Field& part_field(Schema& schema, std::string name, std::string role, NamedPart& value, std::string doc) {
  const std::string of = std::move(role);
  Field field(
      std::move(name), of, std::move(doc), [of, &value](const Value& v) { return set_part(of, v, value); },
      [of, &value] { return value_of(of, value); });
  field.takes_tables = true;
  return schema.add(std::move(field));
}

Field& part_field(Schema& schema, std::string name, std::string role, std::vector<NamedPart>& value, std::string doc) {
  const std::string of = std::move(role);
  const auto set = [of, &value](const Value& v) -> Refusal {
    const auto* list = std::get_if<Value::List>(&v.data);
    if (list == nullptr) return "must be a list of " + of + "s, is " + to_string(v);
    std::vector<NamedPart> parts(list->size());
    for (std::size_t i = 0; i < list->size(); ++i)
      if (const Refusal why = set_part(of, (*list)[i], parts[i])) return "element " + std::to_string(i + 1) + " " + *why;
    value = std::move(parts);
    return std::nullopt;
  };
  const auto get = [of, &value] {
    Value::List list;
    for (const NamedPart& part : value) list.push_back(value_of(of, part));
    Value result;
    result.data = std::move(list);
    return result;
  };
  Field field(std::move(name), "list of " + of + "s", std::move(doc), set, get);
  field.takes_tables = true;
  return schema.add(std::move(field));
}

}  // namespace fl
