#include "scenarios/results/store_measures.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "fl_core/config/error.hpp"

namespace fl::store {
namespace {

using sqlite::DamagedError;
using sqlite::Database;
using sqlite::Statement;

constexpr std::uint64_t kRoundBits = 32;  // bits of the round in a row's id; the others are the run's number

// Returns the problem with the columns of a run, or "".
std::string fault_of_all(std::span<const MeasureColumn> columns) {
  if (columns.size() > kMostMeasureColumns)
    return "there are " + std::to_string(columns.size()) + " columns of measures, and a run may have " +
           std::to_string(kMostMeasureColumns);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string& name = columns[c].name;
    if (std::string fault = fault_of(columns[c]); !fault.empty()) return fault;
    if (place_of(columns, name) != c) return "column \"" + name + "\" stands twice";
    if (std::ranges::find(kRoundColumns, name, &RoundColumn::name) != kRoundColumns.end())
      return "column \"" + name + "\" has the name of a column that every run has";
  }
  return {};
}

// Returns the enumerator with this text.
template <class Enum>
Enum choice_of(const std::string& text, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (text == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  throw DamagedError("a column of a measure is '" + text + "', which no column is");
}

}  // namespace

bool has_measure_tables(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='measure_columns'") > 0;
}

void require_measure_values(const RunRecord& record, std::span<const RoundRow> rows) {
  if (const std::string fault = fault_of_all(record.columns); !fault.empty()) throw Error("run " + record.run + ": " + fault);
  for (const RoundRow& row : rows)
    if (row.more.size() != record.columns.size())
      throw Error("run " + record.run + ": round " + std::to_string(row.round) + " has " + std::to_string(row.more.size()) +
                  " values of measures where the run has " + std::to_string(record.columns.size()) + " columns for them");
}

void insert_measures(Database& database, std::uint64_t id, const RunRecord& record, std::span<const RoundRow> rows) {
  if (record.columns.empty()) return;
  if (!has_measure_tables(database)) {
    database.execute(kMeasureColumns);
    database.execute(kMeasureValues);
  }
  Statement column = database.prepare("INSERT INTO measure_columns VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  for (std::uint64_t i = 0; i < record.columns.size(); ++i) {
    const MeasureColumn& c = record.columns[i];
    column.bind(0, id);
    column.bind(1, i);
    int at = 2;
    for (const std::string* text : {&c.name, &c.unit, &c.definition, &c.empty, &c.title}) column.bind(at++, std::string_view(*text));
    for (const char* text : {to_string(c.type), to_string(c.better), to_string(c.shown)}) column.bind(at++, std::string_view(text));
    column.bind(at, std::uint64_t{c.is_compared});
    column.run();
  }
  Statement value = database.prepare("INSERT INTO measure_values VALUES(?,?,?)");
  for (const RoundRow& row : rows)
    for (std::uint64_t i = 0; i < row.more.size(); ++i) {
      if (std::isnan(row.more[i])) continue;
      value.bind(0, id << kRoundBits | row.round);
      value.bind(1, i);
      value.bind(2, row.more[i]);
      value.run();
    }
}

void erase_measures(Database& database, std::uint64_t id) {
  if (!has_measure_tables(database)) return;
  for (const char* sql :
       {"DELETE FROM measure_columns WHERE run_id=?", "DELETE FROM measure_values WHERE id BETWEEN ?1<<32 AND ?1<<32|4294967295"}) {
    Statement statement = database.prepare(sql);
    statement.bind(0, id);
    statement.run();
  }
}

MeasureReader::MeasureReader(Database& database)
    : columns_(database.prepare("SELECT position,name,unit,definition,empty,title,type,better,shown,compared FROM measure_columns "
                                "WHERE run_id=? ORDER BY position")),
      count_(database.prepare("SELECT count(*) FROM measure_columns WHERE run_id=?")),
      values_(database.prepare("SELECT id&4294967295,position,value FROM measure_values WHERE id BETWEEN ?1<<32 AND ?1<<32|4294967295 "
                               "ORDER BY id,position")) {}

std::vector<MeasureColumn> MeasureReader::columns(std::uint64_t id) {
  std::vector<MeasureColumn> columns;
  columns_.reset();
  columns_.bind(0, id);
  while (columns_.step()) {
    if (columns_.integer(0) != columns.size() || columns.size() == kMostMeasureColumns)
      throw DamagedError("a column of a measure is not at its place");
    MeasureColumn& c = columns.emplace_back();
    int at = 1;
    for (std::string* text : {&c.name, &c.unit, &c.definition, &c.empty, &c.title}) *text = columns_.text(at++);
    c.type = choice_of(columns_.text(at), MeasureColumn::Type::count);
    c.better = choice_of(columns_.text(at + 1), MeasureColumn::Better::higher);
    c.shown = choice_of(columns_.text(at + 2), MeasureColumn::Shown::gap);
    c.is_compared = columns_.integer(at + 3) != 0;
  }
  if (const std::string fault = fault_of_all(columns); !fault.empty()) throw DamagedError(fault);
  return columns;
}

void MeasureReader::read_values(std::uint64_t id, std::span<RoundRow> rows) {
  count_.reset();
  count_.bind(0, id);
  const std::uint64_t num_columns = count_.step() ? count_.integer(0) : 0;
  count_.reset();
  if (num_columns > kMostMeasureColumns) throw DamagedError("it has more columns of measures than a run may have");
  for (RoundRow& row : rows) row.more.assign(num_columns, kNotMeasured);
  values_.reset();
  values_.bind(0, id);
  auto row = rows.begin();
  while (values_.step()) {
    const std::uint64_t round = values_.integer(0), position = values_.integer(1);
    while (row != rows.end() && row->round < round) ++row;
    if (row == rows.end() || row->round != round || position >= num_columns) throw DamagedError("a value of a measure has no place");
    row->more[position] = values_.real(2);
  }
  values_.reset();
}

}  // namespace fl::store
