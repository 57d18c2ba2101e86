#include "scenarios/sweep/sweep_runner.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <numeric>
#include <set>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/results/measured_row.hpp"
#include "scenarios/sweep/thread_crew.hpp"

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

// The fixed-size part of a report. The values of measures follow it.
struct ReportHead {
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
  std::uint64_t has_measured = 0;
  RoundBitsOfColumns measured{};
};

// Writes a report into `text`, whose memory is reused because every round makes a report. `has_new` says whether progress.measured differs
// from the row of the previous report.
void write_progress(const RunProgress& progress, bool has_new, std::string& text) {
  ReportHead head{.round = progress.round,
                  .train_loss = progress.train_loss,
                  .test_accuracy = progress.test_accuracy,
                  .has_measured = progress.has_measured,
                  .measured = {}};
  constexpr std::size_t kCounts = offsetof(ReportHead, measured);
  if (!has_new && text.size() >= sizeof head) {
    std::memcpy(text.data(), &head, kCounts);
    return;
  }
  if (progress.has_measured) head.measured = bits_of_columns(progress.measured);
  text.assign(reinterpret_cast<const char*>(&head), sizeof head);
  for (const double value : progress.measured.more) text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

RunProgress as_progress(std::string_view report) {
  RunProgress progress;
  ReportHead head;
  if (report.size() < sizeof head || (report.size() - sizeof head) % sizeof(double) != 0) return progress;
  std::memcpy(&head, report.data(), sizeof head);
  progress = {.round = head.round,
              .train_loss = head.train_loss,
              .test_accuracy = head.test_accuracy,
              .has_measured = head.has_measured != 0,
              .measured = {}};
  if (!progress.has_measured) return progress;
  set_columns(progress.measured, head.measured);
  for (std::size_t at = sizeof head; at < report.size(); at += sizeof(double))
    std::memcpy(&progress.measured.more.emplace_back(), report.data() + at, sizeof(double));
  return progress;
}

constexpr double kFitSeconds = 0.05;             // duration of a trial that only measures memory
constexpr std::uint64_t kWorkerBytes = 8 << 20;  // memory of an idle worker

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// Returns "1.25 GB" or "340 MB".
std::string text_of_bytes(std::uint64_t bytes) {
  char text[32];
  const bool is_large = bytes >= 1000000000;
  std::snprintf(text, sizeof text, "%.3g %s", static_cast<double>(bytes) / (is_large ? 1e9 : 1e6), is_large ? "GB" : "MB");
  return text;
}

std::string labels_of(const Cell& cell) {
  std::string text = cell.scenario.name;
  for (const auto& [key, label] : cell.axis_labels) text += ", " + key + " = " + label;
  return text;
}

// The result of a trial as a worker sends it. Exceptions are reported in another way.
struct Told {
  CalibrationNumbers calibration;
  std::uint64_t start_bytes, peak_bytes;
};

std::string text_of(const Trial& trial) {
  const Told told{trial.calibration, trial.start_bytes, trial.peak_bytes};
  return std::string(reinterpret_cast<const char*>(&told), sizeof told) + text_of_tiers(trial.calibration.tiers);
}
Trial trial_of(const std::string& text) {
  Told told;
  std::memcpy(&told, text.data(), sizeof told);
  return {.calibration = {told.calibration, tiers_of_text(text.substr(sizeof told))},
          .start_bytes = told.start_bytes,
          .peak_bytes = told.peak_bytes};
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
  record.constants = cell.found;
  return record;
}

SweepRunner::SweepRunner(std::vector<Cell> cells, DataCatalog catalog, SweepSettings settings)
    : cells_(std::move(cells)),
      settings_(std::move(settings)),
      cache_(std::make_shared<ProblemCache>(std::move(catalog))),
      runner_(cache_, machine_options()) {}
SweepRunner::~SweepRunner() = default;

MachineOptions SweepRunner::machine_options() const {
  return {.threads = 1,
          .block = settings_.block,
          .materialise = settings_.materialise,
          .device = settings_.device,
          .paging = settings_.paging,
          .models = settings_.models};
}

void SweepRunner::check() {
  std::set<std::vector<std::pair<std::string, std::string>>> seen;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (seen.insert(cells_[i].axis_labels).second) firsts.push_back(i);
  check(firsts);
}

void SweepRunner::check(const std::vector<std::size_t>& cells) {
  std::vector<const Cell*> asked;
  for (const std::size_t cell : cells) asked.push_back(&cells_[cell]);
  const std::vector<CellNeed> needs = runner_.check(asked);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t cell = cells[i];
    const CellNeed& need = needs[i];
    add(cell, need.device);
    facts_.add(need);
    if (need.minibatch.bytes > minibatch_.bytes) minibatch_ = need.minibatch;
    const std::size_t bytes = need.bytes + 3 * static_cast<std::size_t>(cells_[cell].scenario.rounds) * sizeof(RoundRow);
    if (bytes <= largest_bytes_) continue;
    largest_ = cell;
    largest_bytes_ = bytes;
  }
}

void SweepRunner::add(std::size_t cell, const DeviceNeed& need) {
  if (need.own_bytes() > device_need_.own_bytes()) largest_on_device_ = cell;
  data_[need.data] = need.data_bytes;
  for (const auto reasons : {&DeviceNeed::needs_managed, &DeviceNeed::trains_on_cpu})
    for (const std::string& why : need.*reasons)
      if (std::ranges::find(device_need_.*reasons, why) == (device_need_.*reasons).end()) (device_need_.*reasons).push_back(why);
  const auto raise = [&](std::uint64_t DeviceNeed::*field) { device_need_.*field = std::max(device_need_.*field, need.*field); };
  for (const auto field : {&DeviceNeed::round_bytes, &DeviceNeed::state_bytes, &DeviceNeed::least_state_bytes, &DeviceNeed::pinned_bytes,
                           &DeviceNeed::data_bytes})
    raise(field);
}

// A worker may load its own data, as large as the parent's, because another seed may draw another data set.
int SweepRunner::fit(std::uint64_t memory_bytes) {
  const std::uint64_t shared = resident_bytes(), rough = largest_bytes_ + shared + kWorkerBytes;
  if (shared + static_cast<std::uint64_t>(settings_.workers) * rough <= memory_bytes) return settings_.workers;
  const std::uint64_t at_once = static_cast<std::uint64_t>(settings_.threads) * minibatch_.bytes;
  if (settings_.device == Device::cpu && at_once > 0 && shared + at_once > memory_bytes)
    throw ConfigError("memory: batch_norm computes all rows of a minibatch at once; " + std::to_string(minibatch_.rows) +
                      " rows of a client take " + text_of_bytes(minibatch_.bytes) + " in each of " + std::to_string(settings_.threads) +
                      " threads, and " + text_of_bytes(memory_bytes) +
                      " are allowed; a smaller local.batch or group_norm needs less, --memory allows more");
  if (is_threaded()) {
    const std::uint64_t left = memory_bytes - std::min(memory_bytes, shared), one = largest_bytes_ + kWorkerBytes;
    return settings_.workers = static_cast<int>(std::clamp<std::uint64_t>(left / one, 1, static_cast<std::uint64_t>(settings_.workers)));
  }
  const Trial trial = try_out({largest_}, kFitSeconds, {}).front();
  const std::string what = "memory: one run of " + labels_of(cells_[largest_]);
  if (!trial.failure.empty()) throw ConfigError(what + " was tried and failed: " + trial.failure);
  const std::uint64_t own =
      trial.peak_bytes - std::min(trial.peak_bytes, trial.start_bytes) + trial.calibration.growth_bytes + kWorkerBytes;
  if (shared + own > memory_bytes)
    throw ConfigError(what + " takes about " + text_of_bytes(own) + " beside " + text_of_bytes(shared) + " that all share, and " +
                      text_of_bytes(memory_bytes) + " are allowed; --memory allows more, fewer clients or a smaller model need less");
  const auto fitting = static_cast<int>(std::min<std::uint64_t>((memory_bytes - shared) / own, 4096));
  return settings_.workers = std::min(settings_.workers, fitting);
}

// Each run gets the upper bound of the largest run, in addition to the data, which all runs share. The driver keeps some memory for itself,
// and managed memory is bounded (fl_core/memory/cuda/memory.hpp).
int SweepRunner::fit_device(std::uint64_t free_bytes) {
  constexpr double kUsable = 0.9, kUsableManaged = 0.8;
  const auto usable =
      static_cast<std::uint64_t>((device_need_.needs_managed.empty() ? kUsable : kUsableManaged) * static_cast<double>(free_bytes));
  const bool shares_data = data_.size() == 1;
  const std::uint64_t shared = shares_data ? device_need_.data_bytes : 0, own_data = shares_data ? 0 : device_need_.data_bytes;
  if (const std::uint64_t least = shared + own_data + device_need_.least_bytes(); least > usable)
    throw ConfigError("memory: one run of " + labels_of(cells_[largest_on_device_]) + " may take " + text_of_bytes(least) +
                      " of the GPU, and " + text_of_bytes(usable) +
                      " are free; fewer clients in a round, smaller blocks (--block), a smaller model or --device cpu need less");
  const std::uint64_t left = usable - shared, one = std::max<std::uint64_t>(own_data + device_need_.own_bytes(), 1);
  settings_.workers = static_cast<int>(std::clamp<std::uint64_t>(left / one, 1, static_cast<std::uint64_t>(settings_.workers)));
  device_share_ = left / static_cast<std::uint64_t>(settings_.workers) - own_data;
  return settings_.workers;
}

// Creates the threads of a worker, because a forked process does not inherit its parent's threads.
void SweepRunner::begin_work() {
  if (is_working_) return;
  is_working_ = true;
  start_bytes_ = resident_bytes();
  if (settings_.threads > 1) runner_.use_threads(settings_.threads);
}

Trial SweepRunner::try_with(CellRunner& runner, std::size_t number, double seconds, const std::function<bool()>& goes_on) const {
  const Cell& cell = cells_[number];
  const bool is_drawn = !cell.scenario.data.synthetic.kind.empty();  // each seed is then tried separately
  const bool has_later = !is_drawn && number + 1 < cells_.size() && cells_[number + 1].axis_labels == cell.axis_labels;
  const Calibration found = runner.calibrate(cell, has_later ? &cells_[number + 1] : nullptr, seconds, goes_on);
  return {.calibration = found, .start_bytes = start_bytes_, .peak_bytes = peak_bytes()};
}

std::vector<Trial> SweepRunner::try_out(const std::vector<std::size_t>& cells, double seconds, const StopToken& stop) {
  if (settings_.device != Device::cpu)
    throw Error("cells are tried in processes of their own, which cannot share a GPU: try them on the CPU");
  ::malloc_trim(0);  // as in run()
  const bool in_threads = is_threaded();
  const auto goes_on = [&stop, in_threads] { return in_threads ? !stop.is_asked() : !ProcessPool::asked_to_stop(); };
  const auto tell = [&](CellRunner& runner, std::size_t task) { return text_of(try_with(runner, cells[task], seconds, goes_on)); };
  const int workers = std::min(settings_.workers, static_cast<int>(cells.size()));
  std::vector<Trial> trials(cells.size());
  PoolEvents events;
  events.stop = stop;
  events.finished = [&](std::size_t task, const std::string& text) { trials[task] = trial_of(text); };
  events.failed = [&](std::size_t task, const std::string& reason) { trials[task].failure = reason; };
  const Preparation trying("combinations are tried");
  std::size_t num_begun = 0;
  events.started = [&](std::size_t, int) { ++num_begun; };
  events.tick = [&] { check_for_stop([&] { return "number " + std::to_string(num_begun) + " of " + std::to_string(cells.size()); }); };
  std::vector<std::size_t> tasks(cells.size());
  std::iota(tasks.begin(), tasks.end(), std::size_t{0});
  if (is_threaded()) {
    start_bytes_ = resident_bytes();
    const std::vector<std::unique_ptr<CellRunner>> runners = make_runners(workers);
    ThreadCrew(workers, [&](std::size_t task, int worker, const Report&) {
      return tell(*runners[static_cast<std::size_t>(worker)], task);
    }).run(tasks, events);
  } else {
    ProcessPool(workers, [&](std::size_t task, const Report&) {
      begin_work();
      return tell(runner_, task);
    }).run(tasks, events);
  }
  return trials;
}

CheckpointPlan SweepRunner::checkpoint_of(const Cell& cell) const {
  if (settings_.checkpoints.empty()) return {};
  return {.file = settings_.checkpoints / (to_hex(cell.hash) + ".checkpoint"),
          .every_rounds = settings_.checkpoint_every_rounds,
          .every_seconds = settings_.checkpoint_every_seconds,
          .resume = settings_.resume,
          .any_build = settings_.any_build,
          .system = settings_.system,
          .pages = settings_.pages};
}

std::string SweepRunner::work(CellRunner& runner, std::size_t number, const Report& report, const std::function<bool()>& asked_to_stop) {
  const Cell& cell = cells_[number];
  RunProgress progress;
  std::string text;
  try {
    RunResult result = runner.run(
        cell,
        [&](const RoundRow& row) {
          progress.round = row.round;
          if (row.train_loss == row.train_loss) progress.train_loss = row.train_loss;
          if (row.test_accuracy == row.test_accuracy) progress.test_accuracy = row.test_accuracy;
          const bool has_new = is_measured(row);
          if (has_new) {
            progress.has_measured = true;
            progress.measured = row;
          }
          write_progress(progress, has_new, text);
          report(text);
          return !asked_to_stop();
        },
        checkpoint_of(cell));
    return pack(result);
  } catch (const std::bad_alloc&) {
    throw Error("out of memory: fewer workers (--jobs), fewer clients, fewer rounds or a smaller model need less");
  }
}

void SweepRunner::run_in_processes(const std::vector<std::size_t>& pending, const PoolEvents& events) {
  ::malloc_trim(0);  // workers would inherit the memory that check() has freed
  ProcessPool pool(settings_.workers, [this](std::size_t cell, const Report& report) {
    begin_work();
    return work(runner_, cell, report, [] { return ProcessPool::asked_to_stop(); });
  });
  pool.run(pending, events);
}

// Returns the runners of workers that are threads of this process.
std::vector<std::unique_ptr<CellRunner>> SweepRunner::make_runners(int workers) const {
  std::vector<std::unique_ptr<CellRunner>> runners;
  MachineOptions machine = machine_options();
  machine.threads = settings_.threads;
  machine.device_bytes = device_share_;
  for (int worker = 0; worker < workers; ++worker) runners.push_back(std::make_unique<CellRunner>(cache_, machine));
  return runners;
}

// Runs cells in threads. Each worker has its own parts and stream and takes the data from the common cache.
void SweepRunner::run_in_threads(const std::vector<std::size_t>& pending, const PoolEvents& events) {
  const std::vector<std::unique_ptr<CellRunner>> runners = make_runners(settings_.workers);
  ThreadCrew* listening = nullptr;
  ThreadCrew crew(settings_.workers, [&](std::size_t cell, int worker, const Report& report) {
    return work(*runners[static_cast<std::size_t>(worker)], cell, report, [&listening] { return listening->asked_to_stop(); });
  });
  listening = &crew;
  crew.run(pending, events);
}

// Removes the checkpoints of stored runs. A killed sweep may have left them.
void SweepRunner::forget_checkpoints_without(const std::vector<std::size_t>& pending) const {
  std::error_code error;
  if (!std::filesystem::exists(settings_.checkpoints, error)) return;
  const std::set<std::size_t> kept(pending.begin(), pending.end());
  for (std::size_t cell = 0; cell < cells_.size(); ++cell)
    if (!kept.contains(cell)) remove_checkpoint(checkpoint_of(cells_[cell]));
}

void SweepRunner::run(const std::vector<std::size_t>& pending, RunStore& store, const SweepEvents& events) {
  forget_checkpoints_without(pending);
  const auto keep = [&](std::size_t cell, RunResult result) {
    if (events.describe) events.describe(cell, result.record);
    store.append(result.record, result.rows);
    if (is_finished(result.record.status)) remove_checkpoint(checkpoint_of(cells_[cell]));
    if (events.ended) events.ended(cell, result.record);
  };
  PoolEvents of_cells;
  of_cells.started = events.started;
  of_cells.progress = [&](std::size_t cell, std::string_view report) {
    if (events.progress) events.progress(cell, as_progress(report));
  };
  of_cells.finished = [&](std::size_t cell, const std::string& bytes) { keep(cell, unpack(bytes)); };
  of_cells.failed = [&](std::size_t cell, const std::string& reason) { keep(cell, {failed_record(cells_[cell], reason), {}}); };
  of_cells.tick = events.tick;
  of_cells.stop = events.stop;
  if (is_threaded())
    run_in_threads(pending, of_cells);
  else
    run_in_processes(pending, of_cells);
}

}  // namespace fl
