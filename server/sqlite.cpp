#include "server/sqlite.hpp"

#include <sqlite3.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "fl_core/error.hpp"

namespace fl::sqlite {
namespace {

// How long to wait for another process that holds the file: appends are short, so that this is reached only when one hangs.
constexpr int kBusyTimeoutMs = 30'000;

const char* way_out(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return "free some space, or choose another folder with --out";
    case SQLITE_READONLY:
    case SQLITE_PERM: return "make the file and its folder writable, or choose another folder with --out";
    case SQLITE_CANTOPEN: return "check that the folder exists and that you may read and write it, or choose another with --out";
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another process holds the file: wait for it, or give each process its own --out";
    case SQLITE_NOTADB: return "it is not a fedbits store: choose another file, or another folder with --out";
    case SQLITE_CORRUPT: return "the file is damaged: restore a copy, or start anew with another --out";
    case SQLITE_IOERR: return "check the disk and its free space, or choose another folder with --out";
    default: return "choose another folder with --out";
  }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  expect_ok(code);
}

void Statement::expect_ok(int code) const {
  if (code != SQLITE_OK) database_.fail(code);
}

void Statement::bind(int index, std::uint64_t value) {
  expect_ok(sqlite3_bind_int64(statement_.get(), index + 1, static_cast<sqlite3_int64>(value)));
}

void Statement::bind(int index, double value) {
  expect_ok(std::isnan(value) ? sqlite3_bind_null(statement_.get(), index + 1) : sqlite3_bind_double(statement_.get(), index + 1, value));
}

void Statement::bind_empty(int index) { expect_ok(sqlite3_bind_zeroblob(statement_.get(), index + 1, 0)); }

void Statement::bind(int index, std::string_view text) {
  // An empty view may have no address, which SQLite would take for NULL.
  const char* data = text.empty() ? "" : text.data();
  expect_ok(sqlite3_bind_text64(statement_.get(), index + 1, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
  expect_ok(sqlite3_reset(statement_.get()));
}

std::uint64_t Statement::integer(int column) const { return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column)); }

double Statement::real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Database::Database(const std::filesystem::path& file, OpenMode mode) : file_(file) {
  sqlite3* connection = nullptr;
  const int create = mode == OpenMode::create ? SQLITE_OPEN_CREATE : 0;
  const int code = sqlite3_open_v2(file.c_str(), &connection, SQLITE_OPEN_READWRITE | create, nullptr);
  connection_.reset(connection);
  if (code != SQLITE_OK) fail(code);
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, kBusyTimeoutMs);
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::uint64_t Database::integer(std::string_view sql) {
  Statement query = prepare(sql);
  return query.step() ? query.integer(0) : 0;
}

std::uint64_t Database::last_row_id() const { return static_cast<std::uint64_t>(sqlite3_last_insert_rowid(connection_.get())); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(connection_.get()) == 0; }

void Database::fail(int code) const {
  std::string reason = connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  const int system = connection_ ? sqlite3_system_errno(connection_.get()) : 0;
  const int kind = code & 0xff;
  if (system != 0 && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN)) reason += std::string(" (") + std::strerror(system) + ")";
  // What SQLite says of a file that has gone depends on the moment; one that could not be opened was never there.
  std::error_code ignored;
  if (kind != SQLITE_CANTOPEN && !std::filesystem::exists(file_, ignored))
    throw StoreError(file_.string() + ": it was moved or removed while it was open (" + reason +
                     "); put it back, or choose another folder with --out");
  throw StoreError(file_.string() + ": " + reason + "; " + way_out(code));
}

Transaction::Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (!database_.in_transaction()) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const StoreError&) {
    // The journal stays beside the file, and the next one to open it rolls back.
  }
}

void Transaction::commit() { database_.execute("COMMIT"); }

}  // namespace fl::sqlite
