#include "scenarios/results/store_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "scenarios/results/store_checksum.hpp"
#include "scenarios/results/store_columns.hpp"
#include "scenarios/results/store_measures.hpp"
#include "scenarios/results/store_schema.hpp"

namespace fl::store {

using sqlite::Database;
using sqlite::Statement;

namespace {

void erase(Database& database, std::uint64_t id, const std::string& run) {
  for (const char* sql : {"DELETE FROM round_values WHERE id BETWEEN ?1<<32 AND ?1<<32|4294967295",
                          "DELETE FROM rare_values WHERE id BETWEEN ?1<<32 AND ?1<<32|4294967295", "DELETE FROM axes WHERE run_id=?",
                          "DELETE FROM constants WHERE run_id=?", "DELETE FROM runs WHERE id=?"}) {
    Statement statement = database.prepare(sql);
    statement.bind(0, id);
    statement.run();
  }
  Statement checksums = database.prepare("DELETE FROM checksums WHERE run=?");
  checksums.bind(0, std::string_view(run));
  checksums.run();
  erase_measures(database, id);
  if (!has_plugin_table(database)) return;
  Statement plugins = database.prepare("DELETE FROM plugins WHERE run_id=?");
  plugins.bind(0, id);
  plugins.run();
}

void insert_checksums(Database& database, std::uint64_t id, const RunRecord& record, const std::vector<RoundRow>& rows) {
  Statement statement = database.prepare("INSERT INTO checksums VALUES(?,?,?,?)");
  statement.bind(0, std::string_view(record.run));
  statement.bind(1, id);
  statement.bind(2, checksum_of(record));
  statement.bind(3, checksum_of(std::span<const RoundRow>(rows)));
  statement.run();
}

// Inserts a record. A new run takes the next id; a replaced run keeps its own.
std::uint64_t insert_record(Database& database, std::optional<std::uint64_t> id, const RunRecord& record) {
  const std::size_t count = kRunColumns.size() + kRunDetailColumns.size();
  Statement statement = database.prepare("INSERT INTO runs(id" + names_of(kRunColumns) + names_of(kRunDetailColumns) + ") VALUES(" +
                                         placeholders(count + 1) + ")");
  if (id) statement.bind(0, *id);
  bind_columns(statement, bind_columns(statement, 1, kRunColumns, record), kRunDetailColumns, record);
  statement.run();
  return database.last_row_id();
}

void insert_lists(Database& database, std::uint64_t id, const RunRecord& record) {
  Statement axis = database.prepare("INSERT INTO axes VALUES(?,?,?,?)");
  for (std::uint64_t i = 0; i < record.axes.size(); ++i) {
    axis.bind(0, id);
    axis.bind(1, i);
    axis.bind(2, std::string_view(record.axes[i].key));
    axis.bind(3, std::string_view(record.axes[i].label));
    axis.run();
  }
  Statement constant = database.prepare("INSERT INTO constants VALUES(?,?,?,?)");
  for (std::uint64_t i = 0; i < record.constants.size(); ++i) {
    constant.bind(0, id);
    constant.bind(1, i);
    constant.bind(2, std::string_view(record.constants[i].name));
    constant.bind(3, record.constants[i].value);
    constant.run();
  }
}

void insert_plugins(Database& database, std::uint64_t id, const std::vector<PluginUse>& plugins) {
  if (plugins.empty()) return;
  create_plugin_table(database);
  Statement statement = database.prepare("INSERT INTO plugins VALUES(?,?,?,?)");
  for (std::uint64_t i = 0; i < plugins.size(); ++i) {
    statement.bind(0, id);
    statement.bind(1, i);
    statement.bind(2, std::string_view(plugins[i].name));
    statement.bind(3, std::string_view(plugins[i].sha256));
    statement.run();
  }
}

void bind_derived(Statement& statement, int index, const DerivedColumn& column, const RunRecord& record, const RoundRow& row) {
  const double stored = row.*column.member, follows = column.value(row, record);
  const bool same = std::bit_cast<std::uint64_t>(stored) == std::bit_cast<std::uint64_t>(follows);
  if (same || (std::isnan(stored) && std::isnan(follows)))
    statement.bind(index, kNotMeasured);
  else if (std::isnan(stored))
    statement.bind_empty(index);
}

bool has_rare_values(const RoundRow& row) {
  return std::any_of(kRare.begin(), kRare.end(), [&row](const RoundColumn& column) {
    if (const auto* count = std::get_if<std::uint64_t RoundRow::*>(&column.member)) return row.**count != 0;
    return !std::isnan(row.*std::get<double RoundRow::*>(column.member));
  });
}

void insert_rare_values(Database& database, std::uint64_t id, const std::vector<RoundRow>& rows) {
  Statement statement = database.prepare("INSERT INTO rare_values VALUES(" + placeholders(kRare.size() + 1) + ")");
  for (const RoundRow& row : rows) {
    if (!has_rare_values(row)) continue;
    statement.bind(0, id << 32 | row.round);
    bind_columns(statement, 1, kRare, row);
    statement.run();
  }
}

void insert_rounds(Database& database, std::uint64_t id, const RunRecord& record, const std::vector<RoundRow>& rows) {
  Statement statement = database.prepare("INSERT INTO round_values VALUES(" + placeholders(kCommon.size()) + ")");
  std::array<int, kDerivedColumns.size()> place{};
  for (std::size_t c = 0; c < kCommon.size(); ++c)
    for (std::size_t d = 0; d < kDerivedColumns.size(); ++d)
      if (kCommon[c].name == kDerivedColumns[d].name) place[d] = static_cast<int>(c);
  for (const RoundRow& row : rows) {
    bind_columns(statement, 0, kCommon, row);
    statement.bind(0, id << 32 | row.round);  // instead of the round alone
    for (std::size_t d = 0; d < kDerivedColumns.size(); ++d) bind_derived(statement, place[d], kDerivedColumns[d], record, row);
    statement.run();
  }
}

}  // namespace

std::optional<std::uint64_t> number_of(Database& database, const std::string& run) {
  Statement query = database.prepare(
      "SELECT id FROM runs WHERE run=?1 UNION ALL "
      "SELECT run_id FROM checksums WHERE run=?1 AND run_id NOT IN (SELECT id FROM runs WHERE id=checksums.run_id)");
  query.bind(0, std::string_view(run));
  if (!query.step()) return std::nullopt;
  return query.integer(0);
}

void write_run(Database& database, const std::optional<std::uint64_t>& number, const RunRecord& record, const std::vector<RoundRow>& rows) {
  require_measure_values(record, rows);
  if (number) erase(database, *number, record.run);
  const std::uint64_t id = insert_record(database, number, record);
  insert_checksums(database, id, record, rows);
  insert_lists(database, id, record);
  insert_plugins(database, id, record.plugins);
  insert_rounds(database, id, record, rows);
  insert_rare_values(database, id, rows);
  insert_measures(database, id, record, rows);
}

}  // namespace fl::store
