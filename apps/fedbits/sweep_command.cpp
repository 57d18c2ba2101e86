// `fedbits sweep FILE`: runs every cell of a scenario file in parallel processes, resumable, and in shards over machines.
// `fedbits merge STORE... --out DIR`: merges the stores of shards into one.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/comparison.hpp"
#include "apps/fedbits/json_log.hpp"
#include "apps/fedbits/live_table.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "apps/fedbits/studies.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "scenarios/sweep/tuning.hpp"
#include "study/machine/folder_lock.hpp"
#include "study/machine/machine.hpp"
#include "study/machine/memory.hpp"
#include "study/output/numbers.hpp"
#include "study/results/damaged_runs.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;

SweepShard parse_shard(const std::string& text) {
  SweepShard shard;
  std::size_t slash = text.find('/'), used = 0, used_count = 0;
  try {
    if (slash == std::string::npos) throw std::invalid_argument("no slash");
    shard.index = std::stoull(text.substr(0, slash), &used);
    shard.count = std::stoull(text.substr(slash + 1), &used_count);
    if (used != slash || used_count != text.size() - slash - 1) throw std::invalid_argument("more than numbers");
  } catch (const std::exception&) {
    throw ConfigError("--shard: must be i/n with 1 <= i <= n, such as 2/8, is '" + text + "'");
  }
  if (shard.count == 0 || shard.index == 0 || shard.index > shard.count)
    throw ConfigError("--shard: must be i/n with 1 <= i <= n, such as 2/8, is '" + text + "'");
  return shard;
}

// Returns the folder of a shard. Each shard has its own store.
std::string folder_of(const SweepArguments& arguments, const SweepShard& shard) {
  if (shard.count == 1) return arguments.out;
  return (fs::path(arguments.out) / ("shard-" + std::to_string(shard.index) + "-of-" + std::to_string(shard.count))).string();
}

void keep_shard(std::vector<Cell>& cells, const SweepShard& shard) {
  std::erase_if(cells, [&shard](const Cell& cell) { return !shard.holds(cell); });
}

// Returns a line about a cell. A tuned value is shown if it is known, and marked if it is not; so is the hash, which depends on it.
std::string describe(const Cell& cell, const std::vector<TunedOption>& found, const std::string& budget) {
  std::string line = cell.needs_tuning() ? "(when tuned)    " : to_hex(cell.hash);
  line += "  " + cell.scenario.name;
  for (const auto& [key, label] : cell.axis_labels) line += "  " + key + "=" + shown_label(label);
  for (const std::size_t key : cell.tuned_keys) line += "  " + cell.tune->keys[key].key + "=tuned";
  if (cell.match) line += "  " + cell.match->option + "=tuned";
  if (cell.goes_to_budget) line += (cell.tune->at == TuneSettings::At::target ? "  ends=at the level of " : "  bits=those of ") + budget;
  for (const TunedOption& tuned : found)
    if (tuned.axis_labels == cell.axis_labels) line += "  " + tuned.option + "=" + to_string(tuned.value);
  return line + "  seed=" + std::to_string(cell.scenario.seeds.data);
}

// Returns the status of each run in a store, or that the run is damaged.
std::map<std::string, std::string> stored_statuses(const std::string& folder) {
  std::map<std::string, std::string> statuses;
  std::error_code ignored;
  if (!fs::exists(fs::path(folder) / RunStore::kFileName, ignored)) return statuses;
  std::vector<DamagedRun> damaged;
  const RunStore store = RunStore::open(folder, RunStore::Mode::read);
  for (const RunRecord& record : store.list(damaged))
    statuses[record.run] = store.damage_of(record.run) ? "damaged" : to_string(record.status);
  for (const DamagedRun& run : damaged) statuses[run.run] = "damaged";
  return statuses;
}

int list_cells(const SweepArguments& arguments, const SweepShard& shard, std::vector<Cell> cells) {
  const std::string folder = folder_of(arguments, shard);
  const std::map<std::string, std::string> statuses = stored_statuses(folder);
  const std::string budget = label_of_budget(cells);
  const std::vector<TunedOption> found = recall_tuning(cells, tuning_folder(folder));
  const bool is_open = std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); });
  if (is_open && shard.count > 1)
    throw ConfigError("--list: which runs of a tuned sweep belong to shard " + arguments.shard.value_or("") + " is known only when " +
                      tuning_folder(folder).string() + " holds its tuning runs; without --shard all are listed");
  keep_shard(cells, shard);
  for (const Cell& cell : cells) {
    const auto status = cell.needs_tuning() ? statuses.end() : statuses.find(to_hex(cell.hash));
    std::cout << describe(cell, found, budget) << "  " << (status == statuses.end() ? "pending" : status->second) << '\n';
  }
  return 0;
}

// Returns the cells that still have to run. A finished study has none, and its results are shown.
std::vector<std::size_t> pending_of(const SweepArguments& arguments, const std::vector<Cell>& cells, const RunStore& store,
                                    const std::string& folder) {
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (arguments.again || !has_everything(store, to_hex(cells[i].hash), arguments.models)) pending.push_back(i);
  const std::size_t finished = cells.size() - pending.size();
  if (arguments.again || arguments.checkpoints.resume || pending.empty()) return pending;
  if (finished > 0)
    throw ConfigError(folder + " holds " + std::to_string(finished) + " of the " + std::to_string(cells.size()) +
                      " runs already: --resume runs the others, --again repeats all of them");
  refuse_begun_runs(store, cells, folder);
  return pending;
}

std::string progress_text(const RunProgress& progress) {
  std::string text;
  if (!std::isnan(progress.train_loss)) text += "loss " + short_text(progress.train_loss);
  if (!std::isnan(progress.test_accuracy)) text += "  accuracy " + short_text(progress.test_accuracy);
  return text;
}

// Hear of what happens in a sweep.
struct Listeners {
  JsonLog& log;
  StudyWatch& watch;
};

// Displays a sweep while it runs, and adds the machine and the plug-ins to its records.
class Display {
 public:
  Display(const SweepArguments& arguments, Device device, int jobs, std::size_t pending, const SweepRunner& runner,
          const std::vector<Plugin>& plugins, const Listeners& listeners)
      : runner_(runner),
        plugins_(plugins),
        log_(listeners.log),
        watch_(listeners.watch),
        device_(device),
        hashes_(hashes_of(arguments)),
        says_every_run_(!arguments.quiet && arguments.verbose > 0),
        says_bad_runs_(!arguments.silent),
        table_(std::cerr, arguments.quiet ? ProgressStyle::silent : stderr_style(), stderr_width(), static_cast<std::size_t>(jobs),
               pending) {}

  SweepEvents events() {
    return {.started = [this](std::size_t cell, int worker) { begin(cell, static_cast<std::size_t>(worker)); },
            .progress = [this](std::size_t cell, const RunProgress& at) { update(cell, at); },
            .ended = [this](std::size_t cell, const RunRecord& record) { end(cell, record); },
            .tick = [this] { tick(); },
            .stop = stop_token(),
            .describe = [this](std::size_t cell, RunRecord& record) { describe(cell, record); }};
  }

 private:
  void begin(std::size_t cell, std::size_t worker) {
    const std::vector<Cell>& cells = runner_.cells();
    worker_of_[cell] = worker;
    table_.begin(worker, title_of(cells[cell], cell + 1, cells.size()), static_cast<std::uint64_t>(cells[cell].scenario.rounds));
    log_.started(cells[cell]);
    watch_.began(cell, worker);
  }
  void tick() {
    table_.tick();
    watch_.tick();
  }
  // Logs each measured round once, even if several reports contain it.
  void update(std::size_t cell, const RunProgress& at) {
    table_.update(worker_of_[cell], at.round, progress_text(at));
    watch_.reached(cell, at.round, at.train_loss, at.test_accuracy);
    if (!at.has_measured) return;
    const auto [logged, is_first] = logged_.try_emplace(cell, at.measured.round);
    if (!is_first && std::exchange(logged->second, at.measured.round) == at.measured.round) return;
    const Cell& of = runner_.cells()[cell];
    log_.progress(to_hex(of.hash), at.measured, columns_of_measures(of.scenario.evaluate.measures));
  }
  void end(std::size_t cell, const RunRecord& record) {
    const bool good = record.status == RunStatus::done;
    table_.end(worker_of_[cell], good);
    if ((!good && says_bad_runs_) || says_every_run_) table_.note(closing_line(record, hashes_));
    log_.finished(record, JsonLog::Origin::computed);
    watch_.ended(cell, record);
  }
  void describe(std::size_t cell, RunRecord& record) const {
    describe_machine(record, device_);
    record.plugins = plugins_used(runner_.cells()[cell].scenario, plugins_);
  }

  const SweepRunner& runner_;
  const std::vector<Plugin>& plugins_;
  JsonLog& log_;
  StudyWatch& watch_;
  const Device device_;
  const Hashes hashes_;
  const bool says_every_run_, says_bad_runs_;
  LiveTable table_;
  std::map<std::size_t, std::size_t> worker_of_;
  std::map<std::size_t, std::uint64_t> logged_;  // by cell: the round that was logged last
};

// Logs the runs that are already stored, and reports it if nothing remains to be done.
void tell_stored(const SweepArguments& arguments, const std::vector<Cell>& cells, const std::vector<std::size_t>& pending,
                 const RunStore& store, const std::string& folder, JsonLog& log) {
  const std::set<std::size_t> to_run(pending.begin(), pending.end());
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (!to_run.contains(i)) log.finished(store.record(to_hex(cells[i].hash)), JsonLog::Origin::stored);
  if (!pending.empty() || arguments.quiet || cells.empty()) return;
  std::cerr << (cells.size() == 1 ? "the run is" : "all " + std::to_string(cells.size()) + " runs are") << " in " << folder
            << ": shown, not repeated (--again repeats " << (cells.size() == 1 ? "it" : "them") << ")\n";
}

// Prints the comparison and the missing runs. Returns the exit code.
int conclude(const SweepArguments& arguments, const std::vector<Cell>& cells, const RunStore& store, const std::string& folder) {
  std::vector<RunRecord> records;
  std::size_t good = 0;
  for (const Cell& cell : cells)
    if (const std::string hash = to_hex(cell.hash); store.holds(hash)) {
      records.push_back(store.record(hash));
      good += records.back().status == RunStatus::done ? 1 : 0;
    }
  if (!arguments.quiet && records.size() > 1) {
    print(comparison_table(records, {.measures = {"zeta_sq", "train_loss", "f_gap", "test_accuracy"}}), std::cout);
    std::cout << comparison_note(folder) << losses_note(records) << contracts_note(records) << idle_axes_note(records)
              << missing_minima_note(records);
  }
  if (!arguments.quiet && records.size() == 1) std::cout << closing_line(records.front(), hashes_of(arguments)) << '\n';
  if (caught_signal() != 0) {
    spdlog::warn("interrupted: {} of {} runs are stored in {}; --resume continues", good, cells.size(), folder);
    return exit_code_of(caught_signal());
  }
  if (good == cells.size()) return 0;
  spdlog::error("{} of {} runs failed or diverged; `fedbits export {} --runs runs.csv` lists them", cells.size() - good, cells.size(),
                folder);
  return 1;
}

MachineShare share_of(const SweepArguments& arguments) {
  const std::uint64_t memory = arguments.memory.empty() ? available_memory_bytes() : parse_bytes("--memory", arguments.memory);
  return {.jobs = jobs_for(arguments.jobs, arguments.threads),
          .threads = arguments.threads,
          .workers = arguments.workers,
          .memory_bytes = memory,
          .data_memory = {arguments.memory.empty() ? 0 : memory},
          .paging = paging_of(arguments.state_memory, arguments.state_folder)};
}

// Returns the number of parallel runs that fit into the memory.
int fit_memory(SweepRunner& runner, Device device, const MachineShare& share) {
  const std::uint64_t bytes = device == Device::cpu ? share.memory_bytes : free_device_bytes();
  if (device != Device::cpu) warn_of_training_on_cpu(runner.device_need().trains_on_cpu);
  const int jobs = device == Device::cpu ? runner.fit(bytes) : runner.fit_device(bytes);
  if (jobs < share.jobs)
    spdlog::warn("{} MB of {}memory are enough for only {} of {} runs at a time", bytes / 1000000,
                 device == Device::cpu ? "" : "the GPU's ", jobs, share.jobs);
  return jobs;
}

// Builds the runs of this shard, each combination once, so that a combination that cannot run is rejected here.
void put_together(const SweepArguments& arguments, std::vector<Cell> cells, const SweepShard& shard, const std::string& folder,
                  const MachineShare& share, Device device, std::optional<SweepRunner>& runner) {
  keep_shard(cells, shard);
  runner.emplace(std::move(cells), DataCatalog(arguments.data, share.data_memory),
                 SweepSettings{.workers = share.jobs,
                               .kind = share.workers,
                               .threads = share.threads,
                               .device = device,
                               .checkpoints = checkpoint_folder(folder),
                               .checkpoint_every_rounds = arguments.checkpoints.rounds,
                               .checkpoint_every_seconds = 60 * arguments.checkpoints.minutes,
                               .resume = arguments.checkpoints.resume,
                               .any_build = arguments.checkpoints.any_build,
                               .paging = share.paging,
                               .pages = arguments.state_folder,
                               .models = arguments.models});
  runner->check();
}

// Builds every combination once with the values of the file, before tuning replaces them, and discards it. Errors appear before tuning
// creates a folder.
void check_before_tuning(const std::vector<Cell>& cells, const SweepArguments& arguments, const MachineShare& share, Device device) {
  SweepSettings settings;
  settings.workers = share.jobs;
  settings.threads = share.threads;
  settings.device = device;
  settings.paging = share.paging;
  SweepRunner(cells, DataCatalog(arguments.data, share.data_memory), settings).check();
}

}  // namespace

int sweep_study(SweepArguments arguments, JsonLog& log, StudyWatch& watch) {
  const Listeners listeners{log, watch};
  const Device device = choose_device(arguments.device);
  const SweepShard shard = arguments.shard ? parse_shard(*arguments.shard) : SweepShard{};
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const DataCatalog catalog(arguments.data);
  const bool needs_data = !arguments.list;
  std::vector<Cell> cells = cells_of(arguments, needs_data ? &catalog : nullptr);
  if (arguments.out.empty()) arguments.out = default_folder(cells).string();
  if (arguments.list) return list_cells(arguments, shard, std::move(cells));
  const std::string folder = folder_of(arguments, shard);
  const MachineShare share = share_of(arguments);
  const bool is_known = std::none_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); });
  std::optional<SweepRunner> runner;
  // A rejected sweep creates no folder.
  if (is_known)
    put_together(arguments, std::move(cells), shard, folder, share, device, runner);
  else
    check_before_tuning(cells, arguments, share, device);
  RunStore store = RunStore::open(folder, RunStore::Mode::create);
  tell_rescue(store);
  store.probe_writable();
  const FolderLock lock(folder);
  refuse_other_plan(store, is_known ? runner->cells() : cells);  // NOLINT(bugprone-use-after-move): moved only if is_known
  if (!is_known) listeners.watch.stage("tuning");
  if (!is_known) tune(cells, folder, arguments.data, share, arguments.quiet, watch);
  if (!is_known && caught_signal() != 0) {
    spdlog::warn("interrupted while tuning: the values found so far are kept in {}; --resume continues", tuning_folder(folder).string());
    return exit_code_of(caught_signal());
  }
  if (!is_known)
    put_together(arguments, std::move(cells), shard, folder, share, device, runner);  // NOLINT(bugprone-use-after-move): as above
  remove_leftover_pages(checkpoint_folder(folder), pages_folder(arguments, checkpoint_folder(folder)));
  const std::vector<std::size_t> pending = pending_of(arguments, runner->cells(), store, folder);
  tell_stored(arguments, runner->cells(), pending, store, folder, listeners.log);
  const int jobs = pending.empty() ? share.jobs : fit_memory(*runner, device, share);
  {
    listeners.watch.begin_study(runner->cells(), pending, static_cast<std::uint64_t>(jobs), folder,
                                [&store](const Cell& cell) { return store.record(to_hex(cell.hash)).status; });
    Display display(arguments, device, jobs, pending.size(), *runner, plugins, listeners);
    runner->run(pending, store, display.events());
  }
  return conclude(arguments, runner->cells(), store, folder);
}

namespace {

int sweep(const SweepArguments& arguments) {
  choose_log_level(arguments.quiet, arguments.verbose);
  JsonLog log(arguments.log_json);
  const std::unique_ptr<StudyWatch> watch = watch_study("sweep", arguments.status, arguments.quiet);
  catch_signals(arguments.quiet);
  return log.watch([&] { return watched(*watch, [&] { return sweep_study(arguments, log, *watch); }); });
}

struct MergeArguments {
  std::vector<std::string> stores;
  std::string out = "./fedbits-out/merged";
};

// Merges every run of every store. If a run has two results, the finished one is kept; two finished results must be equal. Runs whose
// results another version of fedbits made are not merged.
int merge(const MergeArguments& arguments) {
  for (const std::string& place : arguments.stores) (void)RunStore::open(place, RunStore::Mode::read);  // checks all stores first
  RunStore target = RunStore::open(arguments.out, RunStore::Mode::create);
  tell_rescue(target);
  target.probe_writable();
  std::size_t added = 0;
  std::vector<Problem> problems;
  int code = 0;
  for (const std::string& place : arguments.stores) {
    const RunStore source = RunStore::open(place, RunStore::Mode::read);
    std::vector<DamagedRun> damaged;
    std::vector<RunRecord> records = list_whole(source, damaged);
    const std::string others = note_of_other_results(remove_other_results(records));
    if (!others.empty()) std::cerr << place << ": " << others << '\n';
    for (const RunRecord& record : records) {
      if (target.has_finished(record.run) && is_finished(record.status)) {
        if (target.record(record.run).checksum != record.checksum)
          problems.push_back({place, "run " + record.run + " has another result here than in " + target.file().string() +
                                         " (another build, or another machine?); the stored one is kept"});
        continue;
      }
      if (const std::optional<std::vector<RoundRow>> rows = whole_rows(source, record.run, damaged))
        added += target.append(record, *rows) != RunStore::Appended::kept ? 1 : 0;
    }
    code = std::max(code, tell_damaged(source.file().string(), damaged));
  }
  std::cout << added << " runs added to " << target.file().string() << '\n';
  for (const Problem& problem : problems) std::cerr << problem.where << ": " << problem.message << '\n';
  return problems.empty() ? code : 1;
}

void add_merge_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand("merge", "join the stores of shards into one");
  command->add_option("STORE", arguments->stores, "folders that hold results.sqlite, or such files")->required();
  command->add_option("--out", arguments->out, "folder of the joined store")->capture_default_str();
  command->footer("Example: fedbits merge results/shard-*-of-8 --out results");
  command->callback([arguments, guard] { guard([&] { return merge(*arguments); }); });
}

}  // namespace

void add_sweep_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand("sweep", "run every cell of a scenario file, several at a time");
  add_study_options(*command, *arguments);
  command->add_option("-j,--jobs", arguments->jobs, "runs at a time (default: cores / threads); results do not depend on it")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--threads", arguments->threads,
                   "threads of each run, useful for runs that are few and large; results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--memory", arguments->memory,
                      "memory for all runs together, such as 8G; fewer run at a time if it is short (default: the available memory)");
  command->add_option_function<std::string>(
      "--shard", [arguments](const std::string& text) { arguments->shard = text; },
      "run only the I-th of N parts, into OUT/shard-I-of-N; merge joins them");
  command->add_flag("--list", arguments->list, "print the runs and their status, and run nothing")
      ->excludes("--log-json")
      ->excludes("--status");
  command->footer(
      "Examples:\n"
      "  fedbits sweep study.toml --out results\n"
      "  fedbits sweep study.toml --out results --resume\n"
      "  fedbits sweep study.toml --out results --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT\n"
      "  parallel fedbits sweep study.toml --jobs 1 --shard {}/4 --out results ::: 1 2 3 4\n"
      "  fedbits merge results/shard-*-of-4 --out results");
  command->callback([arguments, guard] { guard([&] { return sweep(*arguments); }); });
  add_merge_command(app, guard);
}

}  // namespace fl
