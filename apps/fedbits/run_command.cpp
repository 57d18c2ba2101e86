// `fedbits run FILE`: runs every cell of a scenario file, with one line each in their order. Stored cells are shown and not repeated.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/comparison.hpp"
#include "apps/fedbits/json_log.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "apps/fedbits/studies.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "apps/fedbits/terminal.hpp"
#include "clients/gradient_failure.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/memory/usable_cores.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "study/driver/cells_ahead.hpp"
#include "study/machine/machine.hpp"
#include "study/output/numbers.hpp"
#include "study/results/damaged_runs.hpp"

namespace fl {

namespace {

CheckpointPlan checkpoint_of(const Cell& cell, const RunArguments& arguments) {
  return {.file = checkpoint_folder(arguments.out) / (to_hex(cell.hash) + ".checkpoint"),
          .every_rounds = arguments.checkpoints.rounds,
          .every_seconds = 60 * arguments.checkpoints.minutes,
          .resume = arguments.checkpoints.resume,
          .any_build = arguments.checkpoints.any_build,
          .pages = arguments.state_folder};
}

std::string progress_text(const RoundRow& row) {
  if (std::isnan(row.train_loss)) return {};
  return "loss " + short_text(row.train_loss) + (std::isnan(row.test_accuracy) ? "" : "  accuracy " + short_text(row.test_accuracy));
}

// Returns the stored record of a cell if a repetition would end the same way: the run is finished, and made by the same plug-ins.
std::optional<RunRecord> stored_record(const std::string& hash, const std::vector<PluginUse>& plugins, const RunStore& store,
                                       const ModelOutput& models, const std::string& samples) {
  if (!has_everything(store, hash, models)) return std::nullopt;
  std::error_code ignored;
  if (!samples.empty() && !std::filesystem::exists(sample_file_of(samples, hash), ignored)) return std::nullopt;
  RunRecord record = store.record(hash);
  if (record.plugins == plugins) return record;
  spdlog::warn("{} is in the store, made by another build of its plug-ins: it is repeated", hash);
  return std::nullopt;
}

// Returns the distribution of time within the rounds, for -v.
std::string text_of(const RoundTimes& times, int threads) {
  const auto share = [&](double seconds) { return short_text(100 * seconds / times.total_s) + "%"; };
  const auto of_threads = [&](double seconds) { return share(seconds / static_cast<double>(threads)); };
  return std::to_string(times.rounds) + " rounds in " + short_text(times.total_s) + " s: training " + of_threads(times.train_s) +
         ", compression " + of_threads(times.compress_s) + ", aggregation " + share(times.aggregate_s) + ", evaluation " +
         share(times.evaluate_s) + ", waiting threads " + share(times.waiting_s(threads)) + ", the rest " + share(times.rest_s());
}

// Hear of what happens to a cell, which is the `number`-th.
struct CellListeners {
  JsonLog& log;
  StudyWatch& watch;
  std::size_t number = 0;
};

// Tells both listeners of rounds.
class RoundTeller {
 public:
  RoundTeller(const Cell& cell, const CellListeners& listeners)
      : run_(to_hex(cell.hash)), columns_(columns_of_measures(cell.scenario.evaluate.measures)), listeners_(listeners) {}
  void tell(const RoundRow& row) {
    listeners_.log.progress(run_, row, columns_);
    if (!std::isnan(row.train_loss)) train_loss_ = row.train_loss;
    if (!std::isnan(row.test_accuracy)) test_accuracy_ = row.test_accuracy;
    listeners_.watch.reached(listeners_.number, row.round, train_loss_, test_accuracy_);
  }

 private:
  std::string run_;
  std::vector<MeasureColumn> columns_;
  const CellListeners& listeners_;
  double train_loss_ = kNotMeasured, test_accuracy_ = kNotMeasured;
};

// Plays a cell and calls the callback for every round.
using PlayCell = std::function<CellsAhead::Played(const RoundCallback& callback)>;

// Runs one cell with `play`, or takes its result from the store. Returns its record.
RunRecord run_cell(const Cell& cell, const std::string& title, const RunArguments& arguments, const std::vector<Plugin>& plugins,
                   const PlayCell& play, Device device, RunStore& store, Progress& progress, const CellListeners& listeners) {
  JsonLog& log = listeners.log;
  const std::string hash = to_hex(cell.hash);
  const std::vector<PluginUse> used = plugins_used(cell.scenario, plugins);
  const CheckpointPlan checkpoint = checkpoint_of(cell, arguments);
  if (!arguments.again) {
    if (std::optional<RunRecord> stored = stored_record(hash, used, store, arguments.models, arguments.samples)) {
      spdlog::debug("{} is in the store: shown, not repeated (--again repeats it)", hash);
      remove_checkpoint(checkpoint);  // left by a process that was killed before it removed the file
      for (const RoundRow& row : store.rows(hash)) log.progress(hash, row, stored->columns);
      log.finished(*stored, JsonLog::Origin::stored);
      return *std::move(stored);
    }
  }
  log.started(cell);
  listeners.watch.began(listeners.number, 0);
  progress.begin(title, static_cast<std::uint64_t>(cell.scenario.rounds));
  std::string text;
  RoundTeller teller(cell, listeners);
  const auto show = [&](const RoundRow& row) {
    teller.tell(row);
    std::string latest = progress_text(row);
    if (!latest.empty()) text = std::move(latest);
    if (row.round > 0) progress.update(row.round, text);
    return caught_signal() == 0;
  };
  auto [result, times] = [&] {
    try {
      return play(show);
    } catch (const GradientFailure& failure) {  // of a model that is not the simulator's own
      store.append(failed_record(cell, failure.what()), {});
      throw;
    }
  }();
  progress.finish();
  if (times.rounds > 0) spdlog::debug("{}: {}", hash, text_of(times, static_cast<int>(result.record.threads)));
  describe_machine(result.record, device);
  result.record.plugins = used;
  store.append(result.record, result.rows);
  if (is_finished(result.record.status)) remove_checkpoint(checkpoint);
  log.finished(result.record, JsonLog::Origin::computed);
  listeners.watch.ended(listeners.number, result.record);
  return result.record;
}

// The needs of the cells: the most bytes of one of them, and the reasons why clients train on the CPU although the device is a GPU.
struct StudyNeed {
  std::uint64_t largest_bytes = 0;
  std::set<std::string> trains_on_cpu;
};

// Checks all cells before tuning, so that a rejected scenario creates no folder.
StudyNeed check_all(CellRunner& runner, const std::vector<Cell>& cells) {
  std::vector<const Cell*> all;
  for (const Cell& cell : cells) all.push_back(&cell);
  StudyNeed study;
  for (const CellNeed& need : runner.check(all)) {
    study.largest_bytes = std::max<std::uint64_t>(study.largest_bytes, need.bytes);
    study.trains_on_cpu.insert(need.device.trains_on_cpu.begin(), need.device.trains_on_cpu.end());
  }
  return study;
}

// Opens the store, and checks before the first round that results can be written there.
RunStore open_store(const RunArguments& arguments, const std::vector<Cell>& cells) {
  RunStore store = RunStore::open(arguments.out, RunStore::Mode::create);
  tell_rescue(store);
  store.probe_writable();
  if (!arguments.checkpoints.resume && !arguments.again) refuse_begun_runs(store, cells, arguments.out);
  refuse_other_plan(store, cells);
  remove_leftover_pages(checkpoint_folder(arguments.out), pages_folder(arguments, checkpoint_folder(arguments.out)));
  return store;
}

// Prints a comparison of several runs, with notes for the reader.
void print_comparison(const std::vector<RunRecord>& records, const RunArguments& arguments, bool all_done) {
  if (arguments.verbose > 0 || !all_done) std::cout << '\n';
  print(comparison_table(records, {.measures = {"zeta_sq", "train_loss", "f_gap", "test_accuracy"}}), std::cout);
  std::cout << comparison_note(arguments.out) << losses_note(records) << contracts_note(records) << idle_axes_note(records)
            << missing_minima_note(records);
}

// Tells the watch which cells are going to run, and returns them.
std::vector<std::size_t> begin_watch(const std::vector<Cell>& cells, const RunArguments& arguments, const RunStore& store,
                                     StudyWatch& watch) {
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (arguments.again || !store.has_finished(to_hex(cells[i].hash))) pending.push_back(i);
  watch.begin_study(cells, pending, 1, arguments.out, [&store](const Cell& cell) { return store.record(to_hex(cell.hash)).status; });
  return pending;
}

// The runners of cells: one for cells in their turn, and several that play small cells ahead of it.
class Runners {
 public:
  Runners(const std::vector<Cell>& cells, const RunArguments& arguments, const MachineOptions& machine)
      : cells_(cells), arguments_(arguments), machine_(machine), cache_(std::make_shared<ProblemCache>(DataCatalog(arguments.data))) {
    turn_ = make(machine.threads);
  }
  [[nodiscard]] CellRunner& in_turn() { return *turn_->runner; }
  // Plays pending cells ahead if they are small. A GPU, a bound on the memory of state and files of samples are for one cell at a time.
  void play_ahead(const std::vector<std::size_t>& pending, std::uint64_t largest_bytes) {
    if (machine_.device != Device::cpu || machine_.paging.memory_bytes != 0 || !arguments_.samples.empty()) return;
    const CellShare share = share_of_cells(machine_.threads, pending.size(), largest_bytes);
    if (share.cells < 2) return;
    for (int worker = 0; worker < share.cells; ++worker) workers_.push_back(make(share.threads));
    ahead_ = std::make_unique<CellsAhead>(pending, share.cells, [this](std::size_t cell, int worker, const RoundCallback& callback) {
      return play(*workers_[static_cast<std::size_t>(worker)], cell, callback);
    });
  }
  // Returns whether a cell is to be run: after a signal, only those that have begun, which end as interrupted.
  [[nodiscard]] bool goes_on(std::size_t cell) { return caught_signal() == 0 || (ahead_ != nullptr && ahead_->has_begun(cell)); }
  [[nodiscard]] CellsAhead::Played run(std::size_t cell, const RoundCallback& show) {
    if (ahead_ != nullptr && caught_signal() != 0) ahead_->stop();
    return ahead_ != nullptr && ahead_->has(cell) ? ahead_->take(cell, show) : play(*turn_, cell, show);
  }

 private:
  struct One {
    RoundTimes times;
    std::unique_ptr<CellRunner> runner;
  };
  [[nodiscard]] std::unique_ptr<One> make(int threads) {
    auto one = std::make_unique<One>();
    MachineOptions own = machine_;
    own.threads = threads;
    if (arguments_.verbose > 0) own.times = &one->times;
    one->runner = std::make_unique<CellRunner>(cache_, own);
    return one;
  }
  [[nodiscard]] CellsAhead::Played play(One& one, std::size_t cell, const RoundCallback& callback) const {
    one.times = {};
    RunResult result = one.runner->run(cells_[cell], callback, checkpoint_of(cells_[cell], arguments_));
    return {std::move(result), one.times};
  }

  const std::vector<Cell>& cells_;
  const RunArguments& arguments_;
  const MachineOptions machine_;
  std::shared_ptr<ProblemCache> cache_;
  std::unique_ptr<One> turn_;
  std::vector<std::unique_ptr<One>> workers_;
  std::unique_ptr<CellsAhead> ahead_;  // after the workers, whose runners it uses
};

// Runs all cells with the machine's options, and stores each run. Returns the exit code.
int run_cells(const std::vector<Cell>& cells, const RunArguments& arguments, const std::vector<Plugin>& plugins,
              const MachineOptions& machine, JsonLog& log, StudyWatch& watch) {
  Runners runners(cells, arguments, machine);
  const StudyNeed need = check_all(runners.in_turn(), cells);
  if (machine.device != Device::cpu) warn_of_training_on_cpu({need.trains_on_cpu.begin(), need.trains_on_cpu.end()});
  RunStore store = open_store(arguments, cells);
  runners.play_ahead(begin_watch(cells, arguments, store, watch), need.largest_bytes);
  Progress progress(std::cerr, arguments.quiet ? ProgressStyle::silent : stderr_style(), stderr_width());
  std::vector<RunRecord> records;
  bool all_done = true;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!runners.goes_on(i)) continue;
    try {
      const std::string title = title_of(cells[i], i + 1, cells.size());
      const auto play = [&](const RoundCallback& show) { return runners.run(i, show); };
      records.push_back(run_cell(cells[i], title, arguments, plugins, play, machine.device, store, progress, {log, watch, i}));
    } catch (const Stopped&) {
      continue;  // those that have begun still end
    } catch (const NotStoredError&) {
      throw;
    } catch (const StoreError& error) {  // of the model's file, after a run
      throw NotStoredError(error.what());
    }
    const bool is_good = records.back().status == RunStatus::done;
    if (!arguments.quiet && (cells.size() == 1 || !is_good || arguments.verbose > 0))
      std::cout << closing_line(records.back(), hashes_of(arguments)) << std::endl;
    all_done = all_done && is_good;
  }
  if (!arguments.quiet && records.size() > 1) print_comparison(records, arguments, all_done);
  if (!arguments.quiet && records.size() == 1) std::cout << missing_minima_note(records);
  if (caught_signal() != 0) {
    const auto finished = std::ranges::count_if(cells, [&store](const Cell& cell) { return store.has_finished(to_hex(cell.hash)); });
    spdlog::warn("interrupted: {} of {} runs are stored in {}; --resume continues", finished, cells.size(), arguments.out);
    return exit_code_of(caught_signal());
  }
  return all_done ? 0 : 1;
}

}  // namespace

int run_study(RunArguments arguments, JsonLog& log, StudyWatch& watch) {
  const Device device = choose_device(arguments.device);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const DataCatalog catalog(arguments.data);
  std::vector<Cell> cells = cells_of(arguments, &catalog);
  if (arguments.out.empty()) arguments.out = default_folder(cells).string();
  const int threads = arguments.threads > 0 ? arguments.threads : usable_cores();
  const StatePaging paging = paging_of(arguments.state_memory, arguments.state_folder);
  if (std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); })) {
    CellRunner untuned(catalog, {.threads = threads, .device = device, .paging = paging});
    static_cast<void>(check_all(untuned, cells));
    watch.stage("tuning");
  }
  tune(cells, arguments.out, arguments.data, {.jobs = threads, .workers = arguments.workers, .paging = paging}, arguments.quiet, watch);
  if (caught_signal() != 0) return exit_code_of(caught_signal());
  return run_cells(cells, arguments, plugins,
                   {.threads = threads,
                    .block = arguments.block,
                    .materialise = arguments.materialise,
                    .device = device,
                    .paging = paging,
                    .models = arguments.models,
                    .samples = arguments.samples},
                   log, watch);
}

namespace {

int run(const RunArguments& arguments) {
  choose_log_level(arguments.quiet, arguments.verbose);
  JsonLog log(arguments.log_json);
  const std::unique_ptr<StudyWatch> watch = watch_study("run", arguments.status, arguments.quiet);
  catch_signals(arguments.quiet);
  return log.watch([&] { return watched(*watch, [&] { return run_study(arguments, log, *watch); }); });
}

}  // namespace

void add_run_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run every cell of a scenario file; stored results are shown, not repeated");
  add_study_options(*command, *arguments);
  command
      ->add_option("--threads", arguments->threads, "threads (default: the cores that this process may use); results do not depend on it")
      ->check(CLI::Range(1, 4096));
  command->add_option("--block", arguments->block, "clients computed together (default: chosen); results do not depend on it");
  command
      ->add_option("--save-samples", arguments->samples,
                   "write the rows of every minibatch to this folder, as HASH.csv, which local.sample_file reads")
      ->excludes("--resume");
  command->add_flag("--materialise", arguments->materialise, "encode and decode every message instead of computing its length");
  command->footer("Example: fedbits run scenarios/library/quickstart.toml --set rounds=50 --out results");
  command->callback([arguments, guard] { guard([&] { return run(*arguments); }); });
}

}  // namespace fl
