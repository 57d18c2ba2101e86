#include "scenarios/results/sqlite.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fl_core/config/error.hpp"

namespace fl::sqlite {
namespace {

// Waiting time for another process that holds the file. Appends are short, so the limit is reached only if a process hangs.
constexpr int kBusyTimeoutMs = 30'000;
// Steps of SQLite's virtual machine. A row of a round takes about 150 steps and at least 30 bytes.
constexpr int kStepsPerCall = 1000;
constexpr std::uint64_t kLeastSteps = 2'000'000, kStepsPerByte = 64;
// Minimum for the limit on the length of a value, so that texts of this length can also be written into small files.
constexpr std::uint64_t kLeastValue = 16 << 20;

const char* way_out(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return "free some space, or choose another folder with --out";
    case SQLITE_READONLY:
    case SQLITE_PERM: return "make the file and its folder writable, or choose another folder with --out";
    case SQLITE_CANTOPEN: return "check that the folder exists and that you may read and write it, or choose another with --out";
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another process holds the file: wait for it, or give each process its own --out";
    case SQLITE_NOTADB:
      return "it is not a fedbits store, or its first bytes are damaged: choose another file, or restore a copy, or move it away and run "
             "anew";
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:
    case SQLITE_INTERRUPT:
      return "the file is damaged: `fedbits verify` says where, `fedbits merge` keeps the whole runs of it in another folder";
    case SQLITE_IOERR: return "check the disk and its free space, or choose another folder with --out";
    default: return "choose another folder with --out";
  }
}

bool is_damage(int code) {
  const int kind = code & 0xff;
  return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_TOOBIG || kind == SQLITE_INTERRUPT;
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
  // An empty view may have a null address, which SQLite would treat as NULL.
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
  database_.allow_steps();
  while (step()) {
  }
  expect_ok(sqlite3_reset(statement_.get()));
}

void Statement::reset() {
  (void)sqlite3_reset(statement_.get());
  database_.allow_steps();
}

std::uint64_t Statement::integer(int column) const { return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column)); }

double Statement::real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  database_.text_bytes_ += size;
  return {reinterpret_cast<const char*>(data), size};
}

Database::Database(const std::filesystem::path& file, OpenMode mode) : file_(file) {
  sqlite3* connection = nullptr;
  const int create = mode == OpenMode::create ? SQLITE_OPEN_CREATE : 0;
  const int code = sqlite3_open_v2(file.c_str(), &connection, SQLITE_OPEN_READWRITE | create, nullptr);
  connection_.reset(connection);
  if (code != SQLITE_OK) fail(code);
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, kBusyTimeoutMs);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  if (mode == OpenMode::existing) {
    const std::uint64_t most = std::max(kLeastValue, static_cast<std::uint64_t>(status.st_size));
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, static_cast<int>(std::min<std::uint64_t>(most, std::numeric_limits<int>::max())));
  }
  sqlite3_progress_handler(connection, kStepsPerCall, count_steps, steps_.get());
}

std::uint64_t Database::file_bytes() const {
  struct stat status {};
  return ::stat(file_.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool Database::is_in_place() const {
  struct stat status {};
  return ::stat(file_.c_str(), &status) == 0 && device_ == status.st_dev && inode_ == status.st_ino;
}

int Database::count_steps(void* steps) {
  auto* const count = static_cast<Steps*>(steps);
  return ++count->taken > count->most ? 1 : 0;
}

void Database::allow_steps() { *steps_ = {.taken = 0, .most = (kLeastSteps + kStepsPerByte * file_bytes()) / kStepsPerCall}; }

Statement Database::prepare(std::string_view sql) {
  allow_steps();
  return {*this, sql};
}

void Database::execute(const std::string& sql) {
  allow_steps();
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
  // SQLite's message for a file that is gone depends on the moment. A file that could not be opened never existed.
  std::error_code ignored;
  if (kind != SQLITE_CANTOPEN && !std::filesystem::exists(file_, ignored))
    throw StoreError(file_.string() + ": it was moved or removed while it was open (" + reason +
                     "); put it back, or choose another folder with --out");
  if (kind == SQLITE_INTERRUPT) reason = "a query takes more steps than a file of its size can need";
  if (is_damage(code)) throw DamagedError(file_.string() + ": " + reason + "; " + way_out(code));
  throw StoreError(file_.string() + ": " + reason + "; " + way_out(code));
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database_.execute(kind == Kind::read ? "BEGIN" : kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN EXCLUSIVE");
}

Transaction::~Transaction() {
  if (!database_.in_transaction()) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const StoreError&) {
    // The journal stays in the folder, and the next process that opens the file rolls back.
  }
}

void Transaction::commit() { database_.execute("COMMIT"); }

}  // namespace fl::sqlite
