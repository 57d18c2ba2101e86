#include "apps/fedbits/study_display.hpp"

#include <spdlog/spdlog.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

#include "apps/fedbits/comparison.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/measure_set.hpp"
#include "study/output/numbers.hpp"

namespace fl {

ProgressStyle style_of(const StudyArguments& arguments) { return arguments.quiet ? ProgressStyle::silent : stderr_style(); }

StudyDisplay::StudyDisplay(const StudyArguments& arguments, JsonLog& log, StudyWatch& watch, RunsView& view)
    : log_(log), watch_(watch), view_(view), tuning_(style_of(arguments)) {}

void StudyDisplay::note(Note kind, const std::string& text) {
  if (kind == Note::warning) spdlog::warn("{}", text);
  if (kind == Note::detail) spdlog::debug("{}", text);
  if (kind == Note::tuning) tuning_.note(text);
}

void StudyDisplay::begin_tuning(const std::string& purpose, const std::vector<Cell>& runs, const std::vector<std::size_t>& pending,
                                int workers, const std::string& folder) {
  tuning_.begin(purpose, runs, pending.size(), workers);
  watch_.begin_tuning(purpose, runs, pending, static_cast<std::uint64_t>(workers), folder);
}

void StudyDisplay::begin(const Simulation& study, const std::vector<std::size_t>& pending, int workers) {
  study_ = &study;
  watch_.begin_study(study.cells(), pending, static_cast<std::uint64_t>(workers), study.folder(),
                     [&study](const Cell& cell) { return study.store().record(to_hex(cell.hash)).status; });
  view_.begin(study, pending.size(), workers);
}

void StudyDisplay::stored(std::size_t cell, const RunRecord& record) {
  view_.stored(cell, record);
  log_.finished(record, JsonLog::Origin::stored);
}

void StudyDisplay::began(std::size_t cell, int worker) {
  watch_.began(cell, static_cast<std::uint64_t>(worker));
  if (tuning_.is_running()) return tuning_.began(cell, worker);
  log_.started(study_->cells()[cell]);
  view_.began(cell, worker);
}

// Logs each measured round once, even if several reports contain it.
void StudyDisplay::reached(std::size_t cell, const RunProgress& at) {
  watch_.reached(cell, at.round, at.train_loss, at.test_accuracy);
  if (tuning_.is_running()) return tuning_.reached(cell, at);
  view_.reached(cell, at);
  if (!at.has_measured) return;
  const auto [logged, is_first] = logged_.try_emplace(cell, at.measured.round);
  if (!is_first && std::exchange(logged->second, at.measured.round) == at.measured.round) return;
  log_.progress(study_->hash(cell), at.measured, columns_of_measures(study_->cells()[cell].scenario.evaluate.measures));
}

void StudyDisplay::ended(std::size_t cell, const RunRecord& record) {
  if (tuning_.is_running()) {
    tuning_.ended(cell, record.status == RunStatus::done);
  } else {
    view_.ended(cell, record);
    log_.finished(record, JsonLog::Origin::computed);
  }
  watch_.ended(cell, record);
}

void StudyDisplay::tick() {
  if (tuning_.is_running())
    tuning_.tick();
  else
    view_.tick();
  watch_.tick();
}

std::string progress_text(const RunProgress& at) {
  std::string text;
  if (!std::isnan(at.train_loss)) text += "loss " + short_text(at.train_loss);
  if (!std::isnan(at.test_accuracy)) text += "  accuracy " + short_text(at.test_accuracy);
  return text;
}

void print_comparison(const std::vector<RunRecord>& records, const std::string& folder) {
  print(comparison_table(records, {.measures = {"zeta_sq", "train_loss", "f_gap", "test_accuracy"}}), std::cout);
  std::cout << comparison_note(folder) << losses_note(records) << contracts_note(records) << idle_axes_note(records)
            << missing_minima_note(records);
}

int shown(const std::string& command, const StudyArguments& arguments, const std::function<int(JsonLog& log, StudyWatch& watch)>& play) {
  choose_log_level(arguments.quiet, arguments.verbose);
  JsonLog log(arguments.log_json);
  const std::unique_ptr<StudyWatch> watch = watch_study(command, arguments.status, arguments.quiet);
  catch_signals(arguments.quiet);
  return log.watch([&] { return watched(*watch, [&] { return play(log, *watch); }); });
}

}  // namespace fl
