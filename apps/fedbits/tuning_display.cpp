#include "apps/fedbits/tuning_display.hpp"

#include <cmath>
#include <iostream>

#include "apps/fedbits/run_support.hpp"
#include "study/output/numbers.hpp"

namespace fl {

SweepEvents TuningDisplay::begin(const std::string& purpose, const std::vector<Cell>& runs, const std::vector<std::size_t>& pending,
                                 int workers) {
  table_.emplace(std::cerr, style_, stderr_width(), static_cast<std::size_t>(workers), pending.size());
  table_->name("tuning, " + purpose);
  worker_of_.clear();
  watch_.begin_tuning(purpose, runs, pending, static_cast<std::uint64_t>(workers), folder_);
  return {.started =
              [this, &runs](std::size_t cell, int worker) {
                worker_of_[cell] = static_cast<std::size_t>(worker);
                table_->begin(worker_of_[cell], title_of(runs[cell], cell + 1, runs.size()),
                              static_cast<std::uint64_t>(runs[cell].scenario.rounds));
                watch_.began(cell, worker_of_[cell]);
              },
          .progress =
              [this](std::size_t cell, const RunProgress& at) {
                table_->update(worker_of_[cell], at.round, std::isnan(at.train_loss) ? "" : "loss " + short_text(at.train_loss));
                watch_.reached(cell, at.round, at.train_loss, at.test_accuracy);
              },
          .ended =
              [this](std::size_t cell, const RunRecord& record) {
                table_->end(worker_of_[cell], record.status == RunStatus::done);
                watch_.ended(cell, record);
              },
          .tick =
              [this] {
                table_->tick();
                watch_.tick();
              },
          .stop = {},
          .describe = {}};
}

void TuningDisplay::note(const std::string& line) {
  if (style_ == ProgressStyle::silent) return;
  if (table_)
    table_->note(line);
  else
    std::cerr << line << std::endl;
}

}  // namespace fl
