// The progress display of tuning: a table for each batch of runs, on the terminal and on the status page.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/fedbits/live_table.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl {

class TuningDisplay final : public TuningObserver {
 public:
  // `folder` is that of the tuning runs. The watch outlives it.
  TuningDisplay(StudyWatch& watch, std::string folder, ProgressStyle style) : watch_(watch), folder_(std::move(folder)), style_(style) {}

  [[nodiscard]] SweepEvents begin(const std::string& purpose, const std::vector<Cell>& runs, const std::vector<std::size_t>& pending,
                                  int workers) override;
  void end() override { table_.reset(); }
  // Prints a line above the table.
  void note(const std::string& line);

 private:
  StudyWatch& watch_;
  std::string folder_;
  ProgressStyle style_;
  std::optional<LiveTable> table_;
  std::map<std::size_t, std::size_t> worker_of_;  // by cell
};

}  // namespace fl
