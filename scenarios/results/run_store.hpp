// Results of runs: one SQLite file, DIR/results.sqlite.
//
//   runs(id, run, name, ..., scenario, version, ...)      one row per run; `run` is the hash of the resolved scenario
//   axes(run_id, position, key, label)                    where the run lies in its sweep
//   constants(run_id, position, name, value)              what rules were resolved to
//   plugins(run_id, position, name, sha256)               which plug-ins its parts came from; made with the first run that has one
//   rounds(run_id, round, clients, ...)                   one row per round; an unmeasured value is NULL. A view of round_values,
//                                                         where f_gap, density and measured_delta are empty when they follow from others,
//                                                         and rare_values, which has rows of rounds with such values alone
//   measure_columns, measure_values                       columns of measures that scenarios ask for (store_measures.hpp)
//   checksums(run, run_id, record, rounds)                the list of runs once more, with XXH64 of all that is read of each
//
// A run is written when it ends, summary and rounds in one transaction, so the file holds whole runs whenever the process dies: `kill -9`
// leaves a rollback journal that the next one to open the file undoes. The journal is SQLite's DELETE mode and not its write-ahead log,
// which needs shared memory and is unsafe on network file systems. Several processes may append to one file; they wait for each other.
//
// Nothing of a run is given out that does not match its checksums; a run that is in one list and not in the other is damaged too. A file
// that is opened for writing is first checked as a whole (PRAGMA integrity_check, and the two lists against each other), because SQLite
// would write over pages that a damaged list calls free. Where that fails, the whole runs move to a new file that takes the place of the
// damaged one, which is kept beside it.
//
// Nothing is created before there is something to write: a store that is opened for writing comes into being with the first append.
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

// A run that was computed could not be stored: the disk is full or broken, or the folder has gone. What was stored before stays.
class FL_API NotStoredError : public StoreError {
 public:
  using StoreError::StoreError;
};

// A run whose stored bytes do not match their checksums, or that is in part no longer there. Where a list of runs itself cannot be read,
// `run` is empty.
struct DamagedRun {
  std::string run;    // its hash
  std::string title;  // "compressor.up=top-1%  seed=3", as far as it can be read
  std::string why;
};
// "run 3f2a (compressor.up=top-1%  seed=3) is damaged: its rounds do not match their checksum"
[[nodiscard]] FL_API std::string to_string(const DamagedRun& damaged);

class FL_API DamagedRunError : public StoreError {
 public:
  explicit DamagedRunError(DamagedRun damaged) : StoreError(to_string(damaged)), damaged_(std::move(damaged)) {}
  [[nodiscard]] const DamagedRun& damaged() const { return damaged_; }

 private:
  DamagedRun damaged_;
};

// What was done when a store that is damaged as a whole was opened for writing.
struct Rescue {
  std::string why;             // what SQLite found, or which list lacks what the other has
  std::filesystem::path kept;  // the damaged file
  std::size_t num_whole = 0;   // runs that were moved to the new one
  std::vector<DamagedRun> damaged;
};

class FL_API RunStore {
 public:
  enum class Mode {
    read,    // the store must be there
    create,  // appended to; made at the first append when it is not there
  };
  enum class Appended {
    added,     // a new run
    replaced,  // the run was there, unfinished or repeated on purpose
    kept,      // a finished run was there and the new one is not finished: nothing was written
  };
  static constexpr int kVersion = 6;  // of the schema, in PRAGMA user_version
  static constexpr const char* kFileName = "results.sqlite";

  // `place` is the folder that holds results.sqlite or, in read mode, the file itself. StoreError: missing, not a store, another version.
  // In create mode a file that is there is checked, and replaced by its whole runs if it is damaged.
  [[nodiscard]] static RunStore open(const std::filesystem::path& place, Mode mode);
  [[nodiscard]] const std::optional<Rescue>& rescue() const;
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  // StoreError when results could not be written here. Leaves nothing behind: neither a file nor a folder.
  void probe_writable();

  // Writes a run, whole or not at all; a run of the same hash is replaced and keeps its place in the order. NotStoredError.
  Appended append(const RunRecord& record, const std::vector<RoundRow>& rows);

  // Whether the store knows a run, whole or not.
  [[nodiscard]] bool holds(const std::string& run) const;
  // Whether it holds the run finished and whole; reads all of it.
  [[nodiscard]] bool has_finished(const std::string& run) const;
  // Why a run cannot be used; nothing for one that is whole or not there. Reads all of it.
  [[nodiscard]] std::optional<DamagedRun> damage_of(const std::string& run) const;
  // The summaries of whole runs, in the order in which the runs were first appended. Their rounds are checked when they are read. Adds what
  // is damaged; without a place for that a damaged run is a DamagedRunError.
  [[nodiscard]] std::vector<RunRecord> list(std::vector<DamagedRun>& damaged) const;
  [[nodiscard]] std::vector<RunRecord> list() const;
  // The full hash of the only run that begins with `prefix`. StoreError when there is none or more than one; it lists the candidates.
  [[nodiscard]] std::string resolve(const std::string& prefix) const;
  // The summary of the run that begins with `prefix`; load() adds its rounds. DamagedRunError.
  [[nodiscard]] RunRecord record(const std::string& prefix) const;
  [[nodiscard]] StoredRun load(const std::string& prefix) const;
  // The rounds of a run, by its full hash; none when it is not there. DamagedRunError.
  [[nodiscard]] std::vector<RoundRow> rows(const std::string& run) const;

  // What is damaged of the file as a whole, in sentences; nothing of single runs.
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
