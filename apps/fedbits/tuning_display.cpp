#include "apps/fedbits/tuning_display.hpp"

#include <cmath>
#include <iostream>

#include "study/driver/study_title.hpp"
#include "study/output/numbers.hpp"

namespace fl {

void TuningDisplay::begin(const std::string& purpose, const std::vector<Cell>& runs, std::size_t pending, int workers) {
  table_.emplace(std::cerr, style_, stderr_width(), static_cast<std::size_t>(workers), pending);
  table_->name("tuning, " + purpose);
  runs_ = &runs;
  worker_of_.clear();
}

void TuningDisplay::began(std::size_t cell, int worker) {
  worker_of_[cell] = static_cast<std::size_t>(worker);
  table_->begin(worker_of_[cell], title_of((*runs_)[cell], cell + 1, runs_->size()),
                static_cast<std::uint64_t>((*runs_)[cell].scenario.rounds));
}

void TuningDisplay::reached(std::size_t cell, const RunProgress& at) {
  table_->update(worker_of_[cell], at.round, std::isnan(at.train_loss) ? "" : "loss " + short_text(at.train_loss));
}

void TuningDisplay::ended(std::size_t cell, bool is_done) { table_->end(worker_of_[cell], is_done); }

void TuningDisplay::note(const std::string& line) {
  if (style_ == ProgressStyle::silent) return;
  if (table_)
    table_->note(line);
  else
    std::cerr << line << std::endl;
}

}  // namespace fl
