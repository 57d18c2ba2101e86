// `run --log-json FILE` and `sweep --log-json FILE`: what happens, one JSON object per line. Each line is in the file as soon as it is
// written. docs/results.md describes the keys.
//
//   {"event":"started", ...}    a run began
//   {"event":"progress", ...}   a round was measured: the columns of rounds.csv
//   {"event":"finished", ...}   a run ended, however it did, or was in the store already: the columns of runs.csv, message, stored
//   {"event":"refused", ...}    nothing is run: a problem of the scenario, its data, the device or the store; one line for each
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

  explicit JsonLog(const std::string& file);  // "" logs nothing. Throws StoreError when the file cannot be written
  void started(const Cell& cell);
  // `columns` are those of the row's values of measures. Rounds that were not measured have no line.
  void progress(const std::string& run, const RoundRow& row, const std::vector<MeasureColumn>& columns);
  void finished(const RunRecord& record, Origin origin);
  // Returns what the command returns. Writes why it is refused before the error goes on.
  int watch(const std::function<int()>& command);

 private:
  void refused(const std::vector<Problem>& problems);
  void write(const std::string& line);

  std::string file_;
  std::ofstream out_;
};

}  // namespace fl
