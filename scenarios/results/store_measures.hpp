// Stores the columns of measures: their descriptions per run, and their values.
//
//   measure_columns(run_id, position, name, unit, ...)   one row per column of a run
//   measure_values(id, position, value)                  one row per value; `id` is that of the round; an unmeasured value has no row
//
// Both tables are created with the first run that has such columns. Stores without such runs have the same schema as before measures
// existed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scenarios/results/run_record.hpp"
#include "scenarios/results/sqlite.hpp"

namespace fl::store {

inline constexpr const char* kMeasureColumns =
    "CREATE TABLE measure_columns(run_id INTEGER NOT NULL,position INTEGER NOT NULL,name TEXT NOT NULL,unit TEXT NOT NULL,"
    "definition TEXT NOT NULL,empty TEXT NOT NULL,title TEXT NOT NULL,type TEXT NOT NULL,better TEXT NOT NULL,shown TEXT NOT NULL,"
    "compared INTEGER NOT NULL,PRIMARY KEY(run_id,position)) WITHOUT ROWID";
inline constexpr const char* kMeasureValues =
    "CREATE TABLE measure_values(id INTEGER NOT NULL,position INTEGER NOT NULL,value REAL NOT NULL,PRIMARY KEY(id,position)) WITHOUT ROWID";

[[nodiscard]] bool has_measure_tables(sqlite::Database& database);

// Throws Error for columns that a store cannot hold, and for a row that does not have one value (or kNotMeasured) for each column.
void require_measure_values(const RunRecord& record, std::span<const RoundRow> rows);
void insert_measures(sqlite::Database& database, std::uint64_t id, const RunRecord& record, std::span<const RoundRow> rows);
void erase_measures(sqlite::Database& database, std::uint64_t id);

// Reads columns of measures. Throws sqlite::DamagedError if they are not as insert_measures writes them.
class MeasureReader {
 public:
  // Requires that the database has the tables.
  explicit MeasureReader(sqlite::Database& database);
  [[nodiscard]] std::vector<MeasureColumn> columns(std::uint64_t id);
  // Sets the measure values of each row. `rows` are the rows of run `id`, ascending.
  void read_values(std::uint64_t id, std::span<RoundRow> rows);

 private:
  sqlite::Statement columns_, count_, values_;
};

}  // namespace fl::store
