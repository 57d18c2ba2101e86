// `run --log-json FILE` and `sweep --log-json FILE`: logs events, one JSON object per line. Each line reaches the file as soon as it is
// written. docs/results.md describes the keys.
//
//   {"event":"started", ...}    a run began
//   {"event":"progress", ...}   a round was measured: the columns of rounds.csv
//   {"event":"finished", ...}   a run ended with any status, or was already in the store: the columns of runs.csv, message, stored
//   {"event":"refused", ...}    no run starts because of a problem of the scenario, its data, the device or the store; one line per problem
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

class JsonLog {
 public:
  enum class Origin { computed, stored };

  explicit JsonLog(const std::string& file);  // "" logs nothing. Throws StoreError if the file is not writable
  void started(const Cell& cell);
  // Logs a measured round; other rounds have no line. `columns` describe the measure values of the row.
  void progress(const std::string& run, const RoundRow& row, const std::vector<MeasureColumn>& columns);
  void finished(const RunRecord& record, Origin origin);
  // Runs a command and returns its result. If the command is rejected, logs the problems and rethrows the error.
  int watch(const std::function<int()>& command);

 private:
  void refused(const std::vector<Problem>& problems);
  void write(const std::string& line);

  std::string file_;
  std::ofstream out_;
};

}  // namespace fl
