#include "scenarios/sweep_runner.hpp"

#include <cstring>
#include <new>
#include <set>

#include "fl_core/checksum.hpp"
#include "fl_core/error.hpp"

namespace fl {

namespace {

std::string pack(RunResult& result) {
  Archive archive;
  persist(archive, result.record, result.rows);
  return {reinterpret_cast<const char*>(archive.bytes().data()), archive.bytes().size()};
}

RunResult unpack(const std::string& bytes) {
  Archive archive(std::as_bytes(std::span<const char>(bytes)));
  RunResult result;
  persist(archive, result.record, result.rows);
  archive.finish();
  return result;
}

std::string_view as_report(const RunProgress& progress) { return {reinterpret_cast<const char*>(&progress), sizeof progress}; }

RunProgress as_progress(std::string_view report) {
  RunProgress progress;
  if (report.size() == sizeof progress) std::memcpy(&progress, report.data(), sizeof progress);
  return progress;
}

}  // namespace

RunRecord failed_record(const Cell& cell, const std::string& reason) {
  RunRecord record;
  record.run = to_hex(cell.hash);
  record.name = cell.scenario.name;
  record.seed = cell.scenario.seeds.data;
  record.status = RunStatus::failed;
  record.scenario = cell.resolved_toml;
  record.version = FL_VERSION;
  record.threads = 1;
  record.message = reason;
  for (const auto& [key, label] : cell.axis_labels) record.axes.push_back({key, label});
  return record;
}

SweepRunner::SweepRunner(std::vector<Cell> cells, DataCatalog catalog, SweepSettings settings)
    : cells_(std::move(cells)),
      settings_(std::move(settings)),
      runner_(std::move(catalog), {.threads = 1, .block = settings_.block, .materialise = settings_.materialise}) {}
SweepRunner::~SweepRunner() = default;

void SweepRunner::check() {
  std::set<std::vector<std::pair<std::string, std::string>>> seen;
  for (const Cell& cell : cells_)
    if (seen.insert(cell.axis_labels).second) runner_.check(cell);
}

CheckpointPlan SweepRunner::checkpoint_of(const Cell& cell) const {
  if (settings_.checkpoints.empty()) return {};
  return {.file = settings_.checkpoints / (to_hex(cell.hash) + ".checkpoint"),
          .every_rounds = settings_.checkpoint_every_rounds,
          .every_seconds = settings_.checkpoint_every_seconds,
          .resume = settings_.resume,
          .any_build = settings_.any_build,
          .system = settings_.system};
}

std::string SweepRunner::work(std::size_t number, const Report& report) {
  const Cell& cell = cells_[number];
  RunProgress progress;
  RunResult result = runner_.run(
      cell,
      [&](const RoundRow& row) {
        progress.round = row.round;
        if (row.train_loss == row.train_loss) progress.train_loss = row.train_loss;
        if (row.test_accuracy == row.test_accuracy) progress.test_accuracy = row.test_accuracy;
        report(as_report(progress));
        return !ProcessPool::asked_to_stop();
      },
      checkpoint_of(cell));
  return pack(result);
}

// Those of runs that were stored by a sweep which was killed before it could take them away.
void SweepRunner::forget_checkpoints_without(const std::vector<std::size_t>& pending) const {
  std::error_code error;
  if (!std::filesystem::exists(settings_.checkpoints, error)) return;
  const std::set<std::size_t> kept(pending.begin(), pending.end());
  for (std::size_t cell = 0; cell < cells_.size(); ++cell)
    if (!kept.contains(cell)) remove_checkpoint(checkpoint_of(cells_[cell]));
}

void SweepRunner::run(const std::vector<std::size_t>& pending, RunStore& store, const SweepEvents& events) {
  forget_checkpoints_without(pending);
  ProcessPool pool(settings_.workers, [this](std::size_t cell, const Report& report) {
    try {
      return work(cell, report);
    } catch (const std::bad_alloc&) {
      throw Error("out of memory: fewer workers (--jobs), fewer clients, fewer rounds or a smaller model need less");
    }
  });
  const auto keep = [&](std::size_t cell, RunResult result) {
    if (events.describe) events.describe(cell, result.record);
    store.append(result.record, result.rows);
    if (is_finished(result.record.status)) remove_checkpoint(checkpoint_of(cells_[cell]));
    if (events.ended) events.ended(cell, result.record);
  };
  PoolEvents heard;
  heard.started = events.started;
  heard.progress = [&](std::size_t cell, std::string_view report) {
    if (events.progress) events.progress(cell, as_progress(report));
  };
  heard.finished = [&](std::size_t cell, const std::string& bytes) { keep(cell, unpack(bytes)); };
  heard.failed = [&](std::size_t cell, const std::string& reason) { keep(cell, {failed_record(cells_[cell], reason), {}}); };
  heard.tick = events.tick;
  heard.signal = events.signal;
  pool.run(pending, heard);
}

}  // namespace fl
