#include "scenarios/results/run_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/results/sqlite.hpp"
#include "scenarios/results/store_reader.hpp"
#include "scenarios/results/store_schema.hpp"
#include "scenarios/results/store_writer.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::OpenMode;
using sqlite::Statement;
using sqlite::Transaction;
// Bytes that must be free before a run starts: the empty schema and the rounds of a short run.
constexpr std::size_t kProbeBytes = 64 * 1024;
constexpr std::size_t kListedCandidates = 10;

[[noreturn]] void fail_folder(const fs::path& folder, const std::string& reason) {
  throw StoreError("cannot write results in " + folder.string() + ": " + reason + "; choose a writable folder with free space with --out");
}

fs::path or_here(const fs::path& folder) { return folder.empty() ? fs::path(".") : folder; }

// Returns an unnamed file in `folder`, so that a killed process leaves nothing behind. If the file system does not support unnamed files,
// the name is removed at once.
int open_probe_file(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = (folder / ".fedbits-probe-XXXXXX").string();
  const int named = ::mkstemp(name.data());
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Returns whether the file system takes no file of this name, because it is too long.
bool is_too_long(const fs::path& path) {
  struct stat ignored {};
  return ::lstat(path.c_str(), &ignored) != 0 && errno == ENAMETOOLONG;
}

// Tries to write in `folder` or, if it is missing, in the folder in which it would be created.
void probe_folder(const fs::path& folder) {
  std::error_code error;
  fs::path place = fs::absolute(folder, error);
  if (error) fail_folder(folder, error.message() + " (the current folder may have been removed)");
  if (place.native().find('\0') != std::string::npos) fail_folder(folder, "its name contains a byte 0");
  std::vector<fs::path> missing = {"results.sqlite-journal"};
  for (; !fs::exists(place, error) && !error && place.has_relative_path(); place = place.parent_path()) missing.push_back(place.filename());
  if (!error && std::ranges::any_of(missing, [&place](const fs::path& name) { return is_too_long(place / name); }))
    error = std::make_error_code(std::errc::filename_too_long);
  if (error) fail_folder(folder, error.message());
  const int file = open_probe_file(place);
  if (file < 0) fail_folder(folder, std::strerror(errno));
  const std::string bytes(kProbeBytes, 'f');
  errno = ENOSPC;  // a short write sets no errno of its own
  const bool written = ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int reason = errno;
  ::close(file);
  if (!written) fail_folder(folder, std::strerror(reason));
}

// Reads all data of a run. Throws DamagedRunError.
bool is_finished_and_whole_or_throw(Database& database, const std::string& run) {
  StoreReader reader(database);
  const std::optional<StoreReader::Entry> entry = reader.find(run);
  if (!entry) return false;
  const RunRecord record = reader.record(run, *entry);
  (void)reader.rows(run, *entry);
  return is_finished(record.status);
}

bool is_finished_and_whole(Database& database, const std::string& run) {
  try {
    return is_finished_and_whole_or_throw(database, run);
  } catch (const DamagedRunError&) {
    return false;
  }
}

// Returns damage of the file as a whole: damaged pages, as SQLite finds them, or a difference between the two lists of runs. Call in a
// transaction, because another process may store a run between two queries.
std::vector<std::string> damage_in_transaction(Database& database, int most) {
  std::vector<std::string> found;
  try {
    Statement pages = database.prepare("PRAGMA integrity_check(" + std::to_string(most) + ")");
    while (pages.step())
      if (std::string text = pages.text(0); text != "ok") found.push_back(std::move(text));
    if (!found.empty()) return found;  // the lists may have arbitrary contents
    const std::uint64_t runs = database.integer("SELECT count(*) FROM runs"), listed = database.integer("SELECT count(*) FROM checksums");
    const std::uint64_t both = database.integer("SELECT count(*) FROM checksums c JOIN runs r ON r.id=c.run_id AND r.run=c.run");
    if (both != runs || both != listed)
      found.push_back("there are " + std::to_string(runs) + " runs and checksums of " + std::to_string(listed) + ", " +
                      std::to_string(both) + " of them for the same runs");
  } catch (const sqlite::DamagedError& error) {
    found.emplace_back(error.what());
  }
  return found;
}

std::vector<std::string> damage_of_file(Database& database, int most) {
  std::optional<Transaction> reading;
  try {
    reading.emplace(database, Transaction::Kind::read);
  } catch (const sqlite::DamagedError& error) {
    return {error.what()};
  }
  return damage_in_transaction(database, most);
}

// Returns the path in the same folder under which a damaged file is kept: results.sqlite.damaged, results.sqlite.damaged-2, ...
fs::path place_of_damaged(const fs::path& file) {
  std::error_code error;
  fs::path place = file.string() + ".damaged";
  for (int number = 2; fs::exists(place, error); ++number) place = file.string() + ".damaged-" + std::to_string(number);
  return place;
}

}  // namespace

std::string to_string(const DamagedRun& damaged) {
  if (damaged.run.empty()) return damaged.why;
  return "run " + damaged.run + (damaged.title.empty() ? "" : " (" + damaged.title + ")") + " is damaged: " + damaged.why;
}

struct RunStore::State {
  fs::path file;
  Mode mode = Mode::read;
  bool has_schema = false;
  std::unique_ptr<Database> database;  // null until the file exists
  std::optional<Rescue> rescue;
  std::mutex mutex;

  void connect(OpenMode open_mode) {
    auto opened = std::make_unique<Database>(file, open_mode);
    has_schema = store::holds_our_schema(*opened, file);
    opened->execute(mode == Mode::read ? "PRAGMA query_only=ON" : "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL");
    database = std::move(opened);
  }

  // Returns whether the tables exist; another process may have created them in the meantime.
  [[nodiscard]] bool ready() {
    if (has_schema) return true;
    std::error_code ignored;
    if (!database && fs::exists(file, ignored))
      connect(OpenMode::existing);
    else if (database)
      has_schema = store::holds_our_schema(*database, file);
    return has_schema;
  }

  // Returns whether another process has rescued a damaged store, so that the path names another file. If the path names no file, the folder
  // was moved or removed; writing then fails with an error that says so.
  [[nodiscard]] bool is_replaced() const {
    std::error_code ignored;
    return database && !database->is_in_place() && fs::exists(file, ignored);
  }

  void connect_for_writing() {
    if (is_replaced()) database.reset();
    if (database) return;
    std::error_code error;
    fs::create_directories(or_here(file.parent_path()), error);
    if (error) fail_folder(or_here(file.parent_path()), error.message());
    connect(OpenMode::create);
  }

  [[nodiscard]] std::vector<std::string> hashes(const std::string& prefix) const {
    Statement query = database->prepare(
        "SELECT run FROM (SELECT id,run FROM runs UNION SELECT run_id,run FROM checksums) WHERE substr(run,1,length(?1))=?1 ORDER BY id");
    query.bind(0, std::string_view(prefix));
    std::vector<std::string> found;
    while (query.step())
      if (found.empty() || found.back() != query.text(0)) found.push_back(query.text(0));
    return found;
  }

  [[nodiscard]] std::vector<RunRecord> list(std::vector<DamagedRun>& damaged) const {
    StoreReader reader(*database);
    std::vector<RunRecord> records;
    for (const std::string& run : reader.hashes(damaged)) {
      try {
        const std::optional<StoreReader::Entry> entry = reader.find(run);
        if (entry)
          records.push_back(reader.record(run, *entry));
        else
          damaged.push_back({.run = run, .title = "", .why = "its record stands under a hash that no list has"});
      } catch (const DamagedRunError& error) {
        damaged.push_back(error.damaged());
      }
    }
    return records;
  }
};

RunStore::RunStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

RunStore RunStore::open(const fs::path& place, Mode mode) {
  auto state = std::make_unique<State>();
  std::error_code error;
  const bool is_file = fs::exists(place, error) && !fs::is_directory(place, error);
  if (is_file && mode == Mode::create)
    throw StoreError("cannot write results in " + place.string() + ": it is a file; --out takes a folder");
  state->file = is_file ? place : place / kFileName;
  state->mode = mode;
  if (mode == Mode::read && !fs::exists(state->file, error))
    throw StoreError("no results in " + or_here(place).string() + ": " + state->file.string() +
                     (error ? " (" + error.message() + ")" : "") +
                     " is not there; name the folder that was given to `fedbits run` with --out");
  if (fs::exists(state->file, error)) state->connect(OpenMode::existing);
  RunStore store(std::move(state));
  if (mode == Mode::create && store.state_->has_schema)
    if (const std::vector<std::string> damage = damage_of_file(*store.state_->database, 1); !damage.empty())
      store.rescue_from(damage.front());
  return store;
}

const std::optional<Rescue>& RunStore::rescue() const { return state_->rescue; }

// Copies the whole runs to a new file, which then replaces the damaged one. No other process can read or write the damaged file meanwhile.
void RunStore::rescue_from(const std::string& why) {
  const fs::path folder = or_here(state_->file.parent_path()), made = folder / ".fedbits-rescue";
  Rescue rescue{.why = why, .kept = {}, .num_whole = 0, .damaged = {}};
  std::error_code error;
  {
    Transaction alone(*state_->database, Transaction::Kind::exclusive);
    if (!state_->database->is_in_place()) return;                     // another process was faster; the next append opens its file
    if (damage_in_transaction(*state_->database, 1).empty()) return;  // a whole file is not replaced
    fs::remove_all(made, error);                                      // left by a process that was killed here
    {
      RunStore whole = open(made, Mode::create);
      StoreReader reader(*state_->database);
      for (const RunRecord& record : state_->list(rescue.damaged)) try {
          whole.append(record, reader.rows(record.run, *reader.find(record.run)));
          ++rescue.num_whole;
        } catch (const DamagedRunError& one) {
          rescue.damaged.push_back(one.damaged());
        }
    }
    rescue.kept = place_of_damaged(state_->file);
    fs::create_hard_link(state_->file, rescue.kept, error);  // keeps a store at the path at all times
    if (error) fs::rename(state_->file, rescue.kept, error);
    if (!error && rescue.num_whole > 0) fs::rename(made / kFileName, state_->file, error);
    if (!error && rescue.num_whole == 0) fs::remove(state_->file, error);
    if (error) throw StoreError(state_->file.string() + " is damaged (" + why + ") and cannot be replaced: " + error.message());
    fs::remove_all(made, error);
  }
  state_->database.reset();
  state_->has_schema = false;
  if (rescue.num_whole > 0) state_->connect(OpenMode::existing);
  state_->rescue = std::move(rescue);
}

void RunStore::probe_writable() {
  const std::lock_guard lock(state_->mutex);
  probe_folder(or_here(state_->file.parent_path()));
  if (state_->database) Transaction untouched(*state_->database);
}

RunStore::Appended RunStore::append(const RunRecord& record, const std::vector<RoundRow>& rows) {
  const std::lock_guard lock(state_->mutex);
  try {
    return write(record, rows);
  } catch (const StoreError& error) {
    throw NotStoredError("cannot store run " + record.run + ": " + error.what());
  }
}

RunStore::Appended RunStore::write(const RunRecord& record, const std::vector<RoundRow>& rows) {
  state_->connect_for_writing();
  std::optional<Transaction> transaction(*state_->database);
  if (state_->is_replaced()) {  // while this process waited for the lock
    transaction.reset();
    state_->connect_for_writing();
    transaction.emplace(*state_->database);
  }
  Database& database = *state_->database;
  const bool has_schema = store::holds_our_schema(database, state_->file);
  if (!has_schema) store::create_schema(database);
  if (has_schema && !is_finished(record.status) && is_finished_and_whole(database, record.run)) return Appended::kept;
  const std::optional<std::uint64_t> known = store::number_of(database, record.run);
  store::write_run(database, known, record, rows);
  transaction->commit();
  state_->has_schema = true;
  return known ? Appended::replaced : Appended::added;
}

bool RunStore::holds(const std::string& run) const {
  const std::lock_guard lock(state_->mutex);
  return state_->ready() && store::number_of(*state_->database, run).has_value();
}

bool RunStore::has_finished(const std::string& run) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->ready()) return false;
  const Transaction reading(*state_->database, Transaction::Kind::read);
  return is_finished_and_whole(*state_->database, run);
}

std::optional<DamagedRun> RunStore::damage_of(const std::string& run) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->ready()) return std::nullopt;
  const Transaction reading(*state_->database, Transaction::Kind::read);
  try {
    (void)is_finished_and_whole_or_throw(*state_->database, run);
  } catch (const DamagedRunError& error) {
    return error.damaged();
  }
  return std::nullopt;
}

std::vector<RunRecord> RunStore::list(std::vector<DamagedRun>& damaged) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->ready()) return {};
  const Transaction reading(*state_->database, Transaction::Kind::read);
  return state_->list(damaged);
}

std::vector<RunRecord> RunStore::list() const {
  std::vector<DamagedRun> damaged;
  std::vector<RunRecord> records = list(damaged);
  if (!damaged.empty()) throw DamagedRunError(damaged.front());
  return records;
}

std::vector<std::string> RunStore::structural_damage() const {
  constexpr int kMostSentences = 20;
  const std::lock_guard lock(state_->mutex);
  if (!state_->ready()) return {};
  return damage_of_file(*state_->database, kMostSentences);
}

std::string RunStore::resolve(const std::string& prefix) const {
  const std::lock_guard lock(state_->mutex);
  const std::string where = state_->file.string();
  if (!state_->ready()) throw StoreError(where + " holds no runs yet");
  std::vector<std::string> found = state_->hashes(prefix);
  for (const std::string& run : found)
    if (run == prefix || (found.size() == 1 && !prefix.empty())) return run;
  std::string message = found.empty() ? "no run begins with '" + prefix + "' in " : "'" + prefix + "' begins more than one run in ";
  if (found.empty()) found = state_->hashes("");
  message += where + "; there are";
  for (std::size_t i = 0; i < found.size() && i < kListedCandidates; ++i) message += (i == 0 ? " " : ", ") + found[i];
  if (found.empty()) message += " no runs";
  if (found.size() > kListedCandidates) message += " and " + std::to_string(found.size() - kListedCandidates) + " more";
  throw StoreError(message);
}

RunRecord RunStore::record(const std::string& prefix) const {
  const std::string run = resolve(prefix);
  const std::lock_guard lock(state_->mutex);
  const Transaction reading(*state_->database, Transaction::Kind::read);
  StoreReader reader(*state_->database);
  const std::optional<StoreReader::Entry> entry = reader.find(run);
  if (!entry) throw StoreError("run " + run + " was removed from " + state_->file.string() + " while it was read; try again");
  return reader.record(run, *entry);
}

StoredRun RunStore::load(const std::string& prefix) const {
  StoredRun stored{.record = record(prefix), .rows = {}};
  stored.rows = rows(stored.record.run);
  return stored;
}

std::vector<RoundRow> RunStore::rows(const std::string& run) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->ready()) return {};
  const Transaction reading(*state_->database, Transaction::Kind::read);
  StoreReader reader(*state_->database);
  const std::optional<StoreReader::Entry> entry = reader.find(run);
  return entry ? reader.rows(run, *entry) : std::vector<RoundRow>{};
}

const fs::path& RunStore::file() const { return state_->file; }

}  // namespace fl
