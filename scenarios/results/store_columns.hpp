// Maps the column lists of scenarios/results/run_record.hpp to SQL: declares, binds and reads columns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "scenarios/results/run_record.hpp"
#include "scenarios/results/sqlite.hpp"

namespace fl::store {

inline constexpr auto kCommon = std::span(kRoundColumns).first<kCommonRoundColumns>();
inline constexpr auto kRare = std::span(kRoundColumns).subspan<kCommonRoundColumns>();

// Returns ",a,b,c".
template <class Columns>
std::string names_of(const Columns& columns) {
  std::string sql;
  for (const auto& column : columns) sql += "," + std::string(column.name);
  return sql;
}

// Returns "?,?,?".
inline std::string placeholders(std::size_t count) {
  std::string sql = "?";
  for (std::size_t i = 1; i < count; ++i) sql += ",?";
  return sql;
}

inline void bind_value(sqlite::Statement& statement, int index, RunStatus status) {
  statement.bind(index, std::string_view(to_string(status)));
}
inline void bind_value(sqlite::Statement& statement, int index, const std::string& text) { statement.bind(index, std::string_view(text)); }
template <class Number>
void bind_value(sqlite::Statement& statement, int index, Number number) {
  statement.bind(index, number);
}

inline void read_value(const sqlite::Statement& row, int column, std::string& text) { text = row.text(column); }
inline void read_value(const sqlite::Statement& row, int column, std::uint64_t& number) { number = row.integer(column); }
inline void read_value(const sqlite::Statement& row, int column, double& number) { number = row.real(column); }
inline void read_value(const sqlite::Statement& row, int column, RunStatus& status) {
  const std::string text = row.text(column);
  status = RunStatus::failed;
  for (const RunStatus candidate : {RunStatus::done, RunStatus::diverged, RunStatus::interrupted})
    if (text == to_string(candidate)) status = candidate;
}

// Binds the columns to the parameters first, first + 1, ... Returns the index of the next parameter.
template <class Columns, class Record>
int bind_columns(sqlite::Statement& statement, int first, const Columns& columns, const Record& record) {
  for (const auto& column : columns) {
    std::visit([&](auto member) { bind_value(statement, first, record.*member); }, column.member);
    ++first;
  }
  return first;
}

template <class Columns, class Record>
int read_columns(const sqlite::Statement& row, int first, const Columns& columns, Record& record) {
  for (const auto& column : columns) {
    std::visit([&](auto member) { read_value(row, first, record.*member); }, column.member);
    ++first;
  }
  return first;
}

}  // namespace fl::store
