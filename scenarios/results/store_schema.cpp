#include "scenarios/results/store_schema.hpp"

#include <map>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/results/store_columns.hpp"
#include "scenarios/results/store_measures.hpp"

namespace fl::store {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::Statement;

// "fedb": distinguishes stores from other SQLite files.
constexpr std::uint64_t kApplicationId = 0x66656462;
constexpr const char* kPlugins =
    "CREATE TABLE plugins(run_id INTEGER NOT NULL,position INTEGER NOT NULL,name TEXT NOT NULL,sha256 TEXT NOT NULL,"
    "PRIMARY KEY(run_id,position)) WITHOUT ROWID";

// Returns the column type of a member.
template <class Record>
const char* declaration(const std::string Record::*) {
  return "TEXT NOT NULL";
}
template <class Record>
const char* declaration(const std::uint64_t Record::*) {
  return "INTEGER NOT NULL";
}
template <class Record>
const char* declaration(const double Record::*) {
  return "REAL";
}
const char* declaration(const RunStatus RunRecord::*) { return "TEXT NOT NULL"; }

template <class Columns>
std::string declare(const Columns& columns) {
  std::string sql;
  for (const auto& column : columns)
    sql += "," + std::string(column.name) + " " + std::visit([](auto member) { return declaration(member); }, column.member);
  return sql;
}

const DerivedColumn* derived(std::string_view name) {
  for (const DerivedColumn& column : kDerivedColumns)
    if (column.name == name) return &column;
  return nullptr;
}

// Returns the SQL of the view `rounds`. A derived column holds NULL if it follows from others, an empty blob if it was not measured
// although the others were, else its number.
std::string rounds_view() {
  std::string sql = "CREATE VIEW rounds AS SELECT runs.id AS run_id";
  for (const RoundColumn& column : kCommon) {
    const std::string name(column.name);
    if (const DerivedColumn* from = derived(column.name))
      sql += ",CASE typeof(v." + name + ") WHEN 'null' THEN " + std::string(from->sql) + " WHEN 'blob' THEN NULL ELSE v." + name +
             " END AS " + name;
    else
      sql += name == "round" ? ",v.id&4294967295 AS round" : ",v." + name;
  }
  for (const RoundColumn& column : kRare) {
    const std::string name(column.name);
    const bool counts = std::holds_alternative<std::uint64_t RoundRow::*>(column.member);
    sql += counts ? ",coalesce(w." + name + ",0) AS " + name : ",w." + name;
  }
  return sql +
         " FROM runs CROSS JOIN round_values AS v ON v.id BETWEEN runs.id<<32 AND runs.id<<32|4294967295"
         " LEFT JOIN rare_values AS w ON w.id=v.id";
}

struct Object {
  std::string name, sql;
};

// Returns the tables and views of the schema. The id of a row is run_id << 32 | round; rows are appended in this order, which leaves no
// page half full. A run's checksums are in a separate table, so that a damaged page cannot remove both a run and its checksums.
std::vector<Object> objects() {
  return {
      {"runs", "CREATE TABLE runs(id INTEGER PRIMARY KEY" + declare(kRunColumns) + declare(kRunDetailColumns) + ",UNIQUE(run))"},
      {"axes",
       "CREATE TABLE axes(run_id INTEGER NOT NULL,position INTEGER NOT NULL,key TEXT NOT NULL,label TEXT NOT NULL,"
       "PRIMARY KEY(run_id,position)) WITHOUT ROWID"},
      {"constants",
       "CREATE TABLE constants(run_id INTEGER NOT NULL,position INTEGER NOT NULL,name TEXT NOT NULL,value REAL,"
       "PRIMARY KEY(run_id,position)) WITHOUT ROWID"},
      {"checksums",
       "CREATE TABLE checksums(run TEXT PRIMARY KEY,run_id INTEGER NOT NULL,record INTEGER NOT NULL,rounds INTEGER NOT NULL) "
       "WITHOUT ROWID"},
      {"round_values", "CREATE TABLE round_values(id INTEGER PRIMARY KEY" + declare(kCommon).substr(declare(kCommon).find(',', 1)) + ")"},
      {"rare_values", "CREATE TABLE rare_values(id INTEGER PRIMARY KEY" + declare(kRare) + ")"},
      {"rounds", rounds_view()}};
}

// Throws if a table or view of the store differs from its original definition, because every number is read through them. Other tables and
// views are allowed.
void require_our_objects(Database& database, const fs::path& file) {
  std::map<std::string, std::string> found;
  Statement query = database.prepare("SELECT name,sql FROM sqlite_master WHERE sql IS NOT NULL");
  while (query.step()) found[query.text(0)] = query.text(1);
  std::vector<Object> expected = objects();
  if (found.contains("plugins")) expected.push_back({"plugins", kPlugins});
  if (found.contains("measure_columns") || found.contains("measure_values")) {
    expected.push_back({"measure_columns", kMeasureColumns});
    expected.push_back({"measure_values", kMeasureValues});
  }
  for (const Object& object : expected)
    if (const auto place = found.find(object.name); place == found.end() || place->second != object.sql)
      throw sqlite::DamagedError(
          file.string() + ": the table or view '" + object.name +
          "' is not as fedbits made it, so no number can be read; restore a copy, or move the file away and run anew");
}

}  // namespace

void create_schema(Database& database) {
  std::string sql;
  for (const Object& object : objects()) sql += object.sql + ";";
  database.execute(sql + "PRAGMA application_id=" + std::to_string(kApplicationId) +
                   ";PRAGMA user_version=" + std::to_string(RunStore::kVersion) + ";");
}

void create_plugin_table(Database& database) {
  if (!has_plugin_table(database)) database.execute(kPlugins);
}

bool has_plugin_table(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='plugins'") > 0;
}

bool holds_our_schema(Database& database, const fs::path& file) {
  // Queries the tables first: another process may commit them, together with both numbers, between two of these queries.
  const bool has_tables = database.integer("SELECT count(*) FROM sqlite_master") > 0;
  const std::uint64_t version = database.integer("PRAGMA user_version");
  const std::uint64_t application = database.integer("PRAGMA application_id");
  if (!has_tables && version == 0 && application == 0) return false;
  if (application != kApplicationId)
    throw StoreError(file.string() + " is an SQLite file but not a fedbits store; choose another file, or another folder with --out");
  if (version != static_cast<std::uint64_t>(RunStore::kVersion))
    throw StoreError(file.string() + " is a store of version " + std::to_string(version) + "; this fedbits reads and writes version " +
                     std::to_string(RunStore::kVersion) +
                     ": export it with the fedbits that wrote it, and choose another folder with --out for new runs");
  require_our_objects(database, file);
  return true;
}

}  // namespace fl::store
