// Stores results of runs in one SQLite file, DIR/results.sqlite.
//
//   runs(id, run, name, ..., scenario, version, ...)      one row per run; `run` is the hash of the resolved scenario
//   axes(run_id, position, key, label)                    the labels of the run in its sweep
//   constants(run_id, position, name, value)              resolved values of rules
//   plugins(run_id, position, name, sha256)               plug-ins that define the run's parts; created with the first run that has one
//   rounds(run_id, round, clients, ...)                   one row per round; an unmeasured value is NULL. This is a view of round_values,
//                                                         where f_gap, density and measured_delta are empty if they follow from others,
//                                                         and of rare_values, which has rows only for rounds with such values
//   measure_columns, measure_values                       columns of measures that scenarios ask for (store_measures.hpp)
//   checksums(run, run_id, record, rounds)                a second list of the runs, with XXH64 of all data that are read of each run
//
// A run is written when it ends, its summary and rounds in one transaction. The file therefore holds whole runs even if the process dies:
// `kill -9` leaves a rollback journal, and the next process that opens the file undoes it. The store uses SQLite's DELETE journal mode and
// not its write-ahead log, which needs shared memory and is unsafe on network file systems. Several processes can append to one file; they
// wait for each other.
//
// The store returns no data of a run that does not match its checksums. A run that is in only one of the two lists is damaged too. A file
// that is opened for writing is first checked as a whole (PRAGMA integrity_check, and the two lists against each other), because SQLite
// would write over pages that a damaged list marks as free. If this check fails, the whole runs move to a new file that replaces the
// damaged one, and the damaged file is kept beside it.
//
// A store that is opened for writing creates its file at the first append, not before.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/config/error.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct StoredRun {
  RunRecord record;
  std::vector<RoundRow> rows;  // ascending round
};

// Reports that the result of a run could not be stored because the disk is full or broken, or the folder is gone. Earlier results stay
// stored.
class FL_API NotStoredError : public StoreError {
 public:
  using StoreError::StoreError;
};

// A run whose stored bytes do not match their checksums, or that is partly missing. `run` is empty if a list of runs cannot be read.
struct DamagedRun {
  std::string run;    // hash of the run
  std::string title;  // "compressor.up=top-1%  seed=3", as far as it is readable
  std::string why;
};
// Returns "run 3f2a (compressor.up=top-1%  seed=3) is damaged: its rounds do not match their checksum".
[[nodiscard]] FL_API std::string to_string(const DamagedRun& damaged);

class FL_API DamagedRunError : public StoreError {
 public:
  explicit DamagedRunError(DamagedRun damaged) : StoreError(to_string(damaged)), damaged_(std::move(damaged)) {}
  [[nodiscard]] const DamagedRun& damaged() const { return damaged_; }

 private:
  DamagedRun damaged_;
};

// Describes the repair of a store that was damaged as a whole when it was opened for writing.
struct Rescue {
  std::string why;             // SQLite's finding, or the list of runs that lacks an entry of the other
  std::filesystem::path kept;  // the damaged file
  std::size_t num_whole = 0;   // runs that were moved to the new file
  std::vector<DamagedRun> damaged;
};

class FL_API RunStore {
 public:
  enum class Mode {
    read,    // the store must exist
    create,  // opens the store for appending; the first append creates a missing file
  };
  enum class Appended {
    added,     // a new run
    replaced,  // the run was stored, unfinished or repeated on purpose
    kept,      // a finished run was stored and the new one is not finished: nothing was written
  };
  static constexpr int kVersion = 6;  // of the schema, stored in PRAGMA user_version
  static constexpr const char* kFileName = "results.sqlite";

  // Opens a store. `place` is the folder that holds results.sqlite or, in read mode, the file itself. Throws StoreError if the store is
  // missing, is not a store or has another version. In create mode an existing file is checked, and replaced by its whole runs if it is
  // damaged.
  [[nodiscard]] static RunStore open(const std::filesystem::path& place, Mode mode);
  [[nodiscard]] const std::optional<Rescue>& rescue() const;
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  // Throws StoreError if results cannot be written here. Leaves neither a file nor a folder behind.
  void probe_writable();

  // Writes a run, whole or not at all. A run of the same hash is replaced and keeps its place in the order. Throws NotStoredError.
  Appended append(const RunRecord& record, const std::vector<RoundRow>& rows);

  // Returns whether the store knows a run, whole or damaged.
  [[nodiscard]] bool holds(const std::string& run) const;
  // Returns whether the store holds the run finished and whole. Reads all data of the run.
  [[nodiscard]] bool has_finished(const std::string& run) const;
  // Returns the reason why a run cannot be used; nothing if the run is whole or absent. Reads all data of the run.
  [[nodiscard]] std::optional<DamagedRun> damage_of(const std::string& run) const;
  // Returns the summaries of whole runs, in the order in which the runs were first appended. Rounds are checked only when they are read.
  // Damaged runs are added to `damaged`; the overload without it throws DamagedRunError.
  [[nodiscard]] std::vector<RunRecord> list(std::vector<DamagedRun>& damaged) const;
  [[nodiscard]] std::vector<RunRecord> list() const;
  // Returns the full hash of the only run whose hash begins with `prefix`. Throws StoreError, which lists candidates, if there is not
  // exactly one.
  [[nodiscard]] std::string resolve(const std::string& prefix) const;
  // Returns the summary of the run whose hash begins with `prefix`; load() adds its rounds. Throws DamagedRunError.
  [[nodiscard]] RunRecord record(const std::string& prefix) const;
  [[nodiscard]] StoredRun load(const std::string& prefix) const;
  // Returns the rounds of a run given by its full hash; empty if the run is absent. Throws DamagedRunError.
  [[nodiscard]] std::vector<RoundRow> rows(const std::string& run) const;

  // Returns sentences that describe damage of the file as a whole. Damage of single runs is not included.
  [[nodiscard]] std::vector<std::string> structural_damage() const;
  [[nodiscard]] const std::filesystem::path& file() const;

 private:
  struct State;
  Appended write(const RunRecord& record, const std::vector<RoundRow>& rows);
  void rescue_from(const std::string& why);
  explicit RunStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fl
