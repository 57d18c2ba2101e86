// The progress display of tuning: a table for each batch of runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/fedbits/live_table.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_progress.hpp"

namespace fl {

class TuningDisplay {
 public:
  explicit TuningDisplay(ProgressStyle style) : style_(style) {}

  // Begins a batch, whose runs outlive it.
  void begin(const std::string& purpose, const std::vector<Cell>& runs, std::size_t pending, int workers);
  [[nodiscard]] bool is_running() const { return table_.has_value(); }
  void began(std::size_t cell, int worker);
  void reached(std::size_t cell, const RunProgress& at);
  void ended(std::size_t cell, bool is_done);
  void tick() { table_->tick(); }
  void end() { table_.reset(); }
  // Prints a line above the table.
  void note(const std::string& line);

 private:
  ProgressStyle style_;
  std::optional<LiveTable> table_;
  const std::vector<Cell>* runs_ = nullptr;
  std::map<std::size_t, std::size_t> worker_of_;  // by cell
};

}  // namespace fl
