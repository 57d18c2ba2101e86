// Options that are lists of tables, such as the tiers of a network. Each table has the keys of an options struct.
//
//   struct Tier { double share = 0; };
//   inline void describe(Schema& s, Tier& tier) { s.field("share", tier.share, "of the clients").above(0).at_most(1).required(); }
//   table_list_field(schema, "tiers", o.tiers, "the kinds of clients");          tiers = [{ share = 0.4 }, { share = 0.6 }]
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl {

// Reads a list of tables into copies of `row`, one for each table. Returns the reason if the value is rejected; `rows` then stay.
[[nodiscard]] FL_API std::optional<std::string> read_table_list(const Value& value, const Options& row, std::vector<Options>& rows);
// Returns the table of a row: its keys that are set.
[[nodiscard]] FL_API Value table_value(Options row);

// Returns the keys of a row with their documentation, for the documentation of the field.
[[nodiscard]] FL_API std::string row_documentation(Options row);

template <class Row>
Field& table_list_field(Schema& schema, std::string name, std::vector<Row>& rows, const std::string& doc) {
  const auto set = [&rows](const Value& value) -> std::optional<std::string> {
    std::vector<Options> read;
    if (auto why = read_table_list(value, Options::of<Row>(), read)) return why;
    rows.clear();
    for (const Options& row : read) rows.push_back(row.as<Row>());
    return std::nullopt;
  };
  const auto get = [&rows] {
    Value::List list;
    for (const Row& row : rows) list.push_back(table_value(Options::of<Row>(row)));
    Value value;
    value.data = std::move(list);
    return value;
  };
  Field field(std::move(name), "list of tables", doc + "; keys of a table: " + row_documentation(Options::of<Row>()), set, get);
  field.takes_tables = true;
  return schema.add(std::move(field));
}

}  // namespace fl
