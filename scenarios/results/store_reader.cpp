#include "scenarios/results/store_reader.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "scenarios/results/store_checksum.hpp"
#include "scenarios/results/store_columns.hpp"
#include "scenarios/results/store_schema.hpp"

namespace fl {

using sqlite::DamagedError;
using sqlite::Statement;

namespace {

// Bytes of text that may be read beyond twice the file size. A store holds every text once; damaged runs are read again for their labels.
constexpr std::uint64_t kMoreTextBytes = 1 << 20;

// Steps to the next element of a list, whose positions count from 0. Throws DamagedError for an element at a wrong position, because
// continuing might not terminate.
bool next_element(Statement& query, int position_column, std::uint64_t position) {
  if (!query.step()) return false;
  if (query.integer(position_column) != position) throw DamagedError("an element of a list is not at its place");
  return true;
}

std::string title_of(const RunRecord& record) {
  std::string title;
  for (const AxisLabel& axis : record.axes) title += axis.key + "=" + axis.label + "  ";
  return title + "seed=" + std::to_string(record.seed);
}

}  // namespace

StoreReader::StoreReader(sqlite::Database& database)
    : database_(database),
      most_text_bytes_(database.text_bytes() + 2 * database.file_bytes() + kMoreTextBytes),
      id_(database.prepare("SELECT id FROM runs WHERE run=?")),
      checksums_(database.prepare("SELECT run_id,record,rounds FROM checksums WHERE run=?")),
      record_(database.prepare("SELECT id" + store::names_of(kRunColumns) + store::names_of(kRunDetailColumns) + " FROM runs WHERE id=?")),
      axes_(database.prepare("SELECT position,key,label FROM axes WHERE run_id=? ORDER BY position")),
      constants_(database.prepare("SELECT position,name,value FROM constants WHERE run_id=? ORDER BY position")) {
  if (store::has_plugin_table(database))
    plugins_.emplace(database.prepare("SELECT position,name,sha256 FROM plugins WHERE run_id=? ORDER BY position"));
  if (store::has_measure_tables(database)) measures_.emplace(database);
}

void StoreReader::fail(const std::string& run, std::uint64_t id, const std::string& why) {
  DamagedRun damaged{.run = run, .title = "", .why = why};
  try {
    damaged.title = title_of(read_record(id));
  } catch (const DamagedError&) {
    // The labels are not readable either.
  }
  throw DamagedRunError(std::move(damaged));
}

std::optional<StoreReader::Entry> StoreReader::find(const std::string& run) {
  const auto ask = [&run](Statement& query) {
    query.reset();
    query.bind(0, std::string_view(run));
    return query.step();
  };
  Entry entry;
  std::uint64_t id = 0;
  bool has_checksums = false, has_record = false;
  try {
    has_checksums = ask(checksums_);
    if (has_checksums) entry = {.id = checksums_.integer(0), .record = checksums_.integer(1), .rounds = checksums_.integer(2)};
    has_record = ask(id_);
    if (has_record) id = id_.integer(0);
  } catch (const DamagedError& error) {
    fail(run, entry.id, error.what());
  }
  if (!has_checksums && !has_record) return std::nullopt;
  if (!has_record) fail(run, entry.id, "its record has gone");
  if (!has_checksums) fail(run, id, "its checksums have gone");
  if (id != entry.id) fail(run, id, "its number is not that of its checksums");
  return entry;
}

RunRecord StoreReader::record(const std::string& run, const Entry& entry) {
  RunRecord record;
  try {
    record = read_record(entry.id);
  } catch (const DamagedError& error) {
    fail(run, entry.id, error.what());
  }
  if (record.run != run || checksum_of(record) != entry.record)
    throw DamagedRunError({.run = run, .title = title_of(record), .why = "its record does not match its checksum"});
  return record;
}

std::vector<RoundRow> StoreReader::rows(const std::string& run, const Entry& entry) {
  std::vector<RoundRow> rows;
  try {
    rows = read_rows(entry.id);
  } catch (const DamagedError& error) {
    fail(run, entry.id, error.what());
  }
  if (checksum_of(rows) != entry.rounds) fail(run, entry.id, "its rounds do not match their checksum");
  return rows;
}

RunRecord StoreReader::read_record(std::uint64_t id) {
  record_.reset();
  record_.bind(0, id);
  if (!record_.step()) throw DamagedError("its record has gone");
  RunRecord record;
  store::read_columns(record_, store::read_columns(record_, 1, kRunColumns, record), kRunDetailColumns, record);
  read_lists(id, record);
  if (database_.text_bytes() > most_text_bytes_) throw DamagedError("its texts are longer than the file");
  return record;
}

void StoreReader::read_lists(std::uint64_t id, RunRecord& record) {
  const auto ask = [id](Statement& query) {
    query.reset();
    query.bind(0, id);
  };
  ask(axes_);
  while (next_element(axes_, 0, record.axes.size())) record.axes.push_back({axes_.text(1), axes_.text(2)});
  ask(constants_);
  while (next_element(constants_, 0, record.constants.size())) record.constants.push_back({constants_.text(1), constants_.real(2)});
  if (measures_) record.columns = measures_->columns(id);
  if (!plugins_) return;
  ask(*plugins_);
  while (next_element(*plugins_, 0, record.plugins.size())) record.plugins.push_back({plugins_->text(1), plugins_->text(2)});
}

std::vector<RoundRow> StoreReader::read_rows(std::uint64_t id) {
  if (!rows_)  // rows are stored in the order of their rounds
    rows_.emplace(database_.prepare("SELECT " + store::names_of(kRoundColumns).substr(1) + " FROM rounds WHERE run_id=?"));
  rows_->reset();
  rows_->bind(0, id);
  std::vector<RoundRow> rows;
  while (rows_->step()) {
    RoundRow& row = rows.emplace_back();
    store::read_columns(*rows_, 0, kRoundColumns, row);
    if (rows.size() > 1 && row.round <= rows[rows.size() - 2].round) throw DamagedError("its rounds are not in their order");
  }
  rows_->reset();
  if (measures_) measures_->read_values(id, rows);
  return rows;
}

std::vector<std::pair<std::uint64_t, std::string>> StoreReader::read_list(const char* sql, const char* name,
                                                                          std::vector<DamagedRun>& damaged) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  std::set<std::string> met;
  try {
    Statement query = database_.prepare(sql);
    while (query.step()) {
      found.emplace_back(query.integer(0), query.text(1));
      if (!met.insert(found.back().second).second) throw DamagedError("it has '" + found.back().second + "' twice");
      if (database_.text_bytes() > most_text_bytes_) throw DamagedError("its texts are longer than the file");
    }
  } catch (const DamagedError& error) {
    damaged.push_back({.run = "", .title = "", .why = std::string("the list '") + name + "' cannot be read to its end: " + error.what()});
  }
  return found;
}

std::vector<std::string> StoreReader::hashes(std::vector<DamagedRun>& damaged) {
  std::vector<std::pair<std::uint64_t, std::string>> found = read_list("SELECT id,run FROM runs NOT INDEXED ORDER BY id", "runs", damaged);
  std::set<std::string> known;
  for (const auto& [_, run] : found) known.insert(run);
  for (auto& entry : read_list("SELECT run_id,run FROM checksums ORDER BY run", "checksums", damaged))
    if (!known.contains(entry.second)) found.push_back(std::move(entry));
  std::ranges::stable_sort(found, {}, &std::pair<std::uint64_t, std::string>::first);
  std::vector<std::string> hashes;
  for (auto& [_, run] : found) hashes.push_back(std::move(run));
  return hashes;
}

}  // namespace fl
