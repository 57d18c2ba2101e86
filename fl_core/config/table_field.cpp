#include "fl_core/config/table_field.hpp"

namespace fl {
namespace {

using Refusal = std::optional<std::string>;

std::string unknown_row_key(const std::string& key, Schema& schema) {
  std::vector<std::string> known;
  std::string all;
  for (const Field& field : schema.fields()) {
    known.push_back(field.name);
    all += (all.empty() ? "" : ", ") + field.name;
  }
  const std::string near = nearest_name(key, known);
  return "has no key \"" + key + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") + " (its keys: " + all + ")";
}

Refusal read_row(const Value& value, Options& row) {
  const auto* table = std::get_if<Value::Table>(&value.data);
  if (table == nullptr) return "must be a table, is " + to_string(value);
  Schema schema = row.schema();
  for (const auto& [key, given] : *table) {
    Field* field = schema.find(key);
    if (field == nullptr) return unknown_row_key(key, schema);
    if (const Refusal why = field->assign(given)) return "its " + key + " " + *why;
  }
  for (const Field& field : schema.fields())
    if (field.is_required && !field.is_set()) return "needs " + field.name + ": " + field.doc;
  Problems problems;
  row.validate(problems);
  if (problems.empty()) return std::nullopt;
  return "its " + problems.front().where + " " + problems.front().message;
}

}  // namespace

Refusal read_table_list(const Value& value, const Options& row, std::vector<Options>& rows) {
  const auto* list = std::get_if<Value::List>(&value.data);
  if (list == nullptr) return "must be a list of tables, is " + to_string(value);
  std::vector<Options> read(list->size(), row);
  for (std::size_t i = 0; i < list->size(); ++i)
    if (const Refusal why = read_row((*list)[i], read[i])) return "element " + std::to_string(i + 1) + " " + *why;
  rows = std::move(read);
  return std::nullopt;
}

Value table_value(Options row) {
  Value::Table table;
  Schema schema = row.schema();
  for (const Field& field : schema.fields()) {
    Value value = field.value();
    const auto* text = std::get_if<std::string>(&value.data);
    if (field.is_set() && field.is_written() && (text == nullptr || !text->empty())) table.emplace_back(field.name, std::move(value));
  }
  Value value;
  value.data = std::move(table);
  return value;
}

std::string row_documentation(Options row) {
  std::string text;
  Schema schema = row.schema();
  for (const Field& field : schema.fields())
    text += (text.empty() ? "" : "; ") + field.name + (field.unit_text.empty() ? "" : " [" + field.unit_text + "]") + ", " + field.doc;
  return text;
}

}  // namespace fl
