// Results of runs: one SQLite file, DIR/results.sqlite.
//
//   runs(id, run, name, ..., scenario, version, ...)      one row per run; `run` is the hash of the resolved scenario
//   axes(run_id, position, key, label)                    where the run lies in its sweep
//   constants(run_id, position, name, value)              what rules were resolved to
//   plugins(run_id, position, name, sha256)               which plug-ins its parts came from; made with the first run that has one
//   rounds(run_id, round, clients, ...)                   one row per round; an unmeasured value is NULL. A view of round_values,
//                                                         where f_gap, density and measured_delta are empty when they follow from others,
//                                                         and rare_values, which has rows of rounds with such values alone
//
// A run is written when it ends, summary and rounds in one transaction, so the file holds whole runs whenever the process dies: `kill -9`
// leaves a rollback journal that the next one to open the file undoes. The journal is SQLite's DELETE mode and not its write-ahead log,
// which needs shared memory and is unsafe on network file systems. Several processes may append to one file; they wait for each other.
//
// Nothing is created before there is something to write: a store that is opened for writing comes into being with the first append.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/device.hpp"
#include "fl_core/error.hpp"
#include "server/run_record.hpp"

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
  static constexpr int kVersion = 5;  // of the schema, in PRAGMA user_version
  static constexpr const char* kFileName = "results.sqlite";

  // `place` is the folder that holds results.sqlite or, in read mode, the file itself. StoreError: missing, not a store, another version.
  [[nodiscard]] static RunStore open(const std::filesystem::path& place, Mode mode);
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  // StoreError when results could not be written here. Leaves nothing behind: neither a file nor a folder.
  void probe_writable();

  // Writes a run, whole or not at all; a run of the same hash is replaced and keeps its place in the order. NotStoredError.
  Appended append(const RunRecord& record, const std::vector<RoundRow>& rows);

  [[nodiscard]] bool holds(const std::string& run) const;
  [[nodiscard]] bool has_finished(const std::string& run) const;
  // The summaries, in the order in which the runs were first appended.
  [[nodiscard]] std::vector<RunRecord> list() const;
  // The full hash of the only run that begins with `prefix`. StoreError when there is none or more than one; it lists the candidates.
  [[nodiscard]] std::string resolve(const std::string& prefix) const;
  // The summary of the run that begins with `prefix`; load() adds its rounds.
  [[nodiscard]] RunRecord record(const std::string& prefix) const;
  [[nodiscard]] StoredRun load(const std::string& prefix) const;
  // The rounds of a run, by its full hash; none when it is not there.
  [[nodiscard]] std::vector<RoundRow> rows(const std::string& run) const;

  [[nodiscard]] const std::filesystem::path& file() const;

 private:
  struct State;
  Appended write(const RunRecord& record, const std::vector<RoundRow>& rows);
  explicit RunStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fl
