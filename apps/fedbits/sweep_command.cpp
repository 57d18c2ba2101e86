// `fedbits sweep FILE`: runs every cell of a scenario file in parallel processes, resumable, and in shards over machines.
// `fedbits merge STORE... --out DIR`: merges the stores of shards into one.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/comparison.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "apps/fedbits/study_display.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/sweep/tuning.hpp"
#include "study/driver/study_title.hpp"
#include "study/output/numbers.hpp"
#include "study/results/damaged_runs.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;

struct SweepArguments : StudyArguments {
  SweepArguments() { play = PlayInParallel{}; }
  std::optional<std::string> shard;  // as it was given
  bool list = false;
};

// Returns a line about a cell. A tuned value is shown if it is known, and marked if it is not; so is the hash, which depends on it.
std::string describe(const Cell& cell, const std::vector<TunedOption>& found, const std::string& budget) {
  std::string line = cell.needs_tuning() ? "(when tuned)    " : to_hex(cell.hash);
  line += "  " + cell.scenario.name;
  for (const auto& [key, label] : cell.axis_labels) line += "  " + key + "=" + shown_label(label);
  for (const std::size_t key : cell.tuned_keys) line += "  " + cell.tune->keys[key].key + "=tuned";
  if (cell.match) line += "  " + cell.match->option + "=tuned";
  if (cell.goes_to_budget)
    line += (cell.tune->at == TuneSettings::At::target    ? "  ends=at the level of "
             : cell.tune->budget_bits == Against::seconds ? "  seconds=those of "
                                                          : "  bits=those of ") +
            budget;
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

int list_cells(const SweepArguments& arguments, const std::optional<SweepShard>& shard) {
  (void)load_plugins(arguments.plugins);
  std::vector<Cell> cells = cells_of(arguments, nullptr);
  const std::string folder = shard_folder(arguments.out.empty() ? default_folder(cells).string() : arguments.out, shard);
  const std::map<std::string, std::string> statuses = stored_statuses(folder);
  const std::string budget = label_of_budget(cells);
  const std::vector<TunedOption> found = recall_tuning(cells, tuning_folder(folder));
  const bool is_open = std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); });
  if (is_open && shard && shard->count > 1)
    throw ConfigError("--list: which runs of a tuned sweep belong to shard " + *arguments.shard + " is known only when " +
                      tuning_folder(folder).string() + " holds its tuning runs; without --shard all are listed");
  if (shard) std::erase_if(cells, [&shard](const Cell& cell) { return !shard->holds(cell.hash); });
  for (const Cell& cell : cells) {
    const auto status = cell.needs_tuning() ? statuses.end() : statuses.find(to_hex(cell.hash));
    std::cout << describe(cell, found, budget) << "  " << (status == statuses.end() ? "pending" : status->second) << '\n';
  }
  return 0;
}

// Shows a sweep while it runs: a line per worker, and lines of runs that have no result.
class RunsInParallel final : public RunsView {
 public:
  explicit RunsInParallel(const StudyArguments& arguments) : arguments_(arguments) {}

  void begin(const Simulation& study, std::size_t pending, int workers) override {
    study_ = &study;
    table_.emplace(std::cerr, style_of(arguments_), stderr_width(), static_cast<std::size_t>(workers), pending);
    const std::size_t runs = study.size();
    if (pending > 0 || arguments_.quiet || runs == 0) return;
    std::cerr << (runs == 1 ? "the run is" : "all " + std::to_string(runs) + " runs are") << " in " << study.folder()
              << ": shown, not repeated (--again repeats " << (runs == 1 ? "it" : "them") << ")\n";
  }
  void stored(std::size_t, const RunRecord&) override {}
  void began(std::size_t cell, int worker) override {
    worker_of_[cell] = static_cast<std::size_t>(worker);
    table_->begin(worker_of_[cell], study_->title(cell), study_->rounds(cell));
  }
  void reached(std::size_t cell, const RunProgress& at) override { table_->update(worker_of_[cell], at.round, progress_text(at)); }
  void ended(std::size_t cell, const RunRecord& record) override {
    const bool is_good = record.status == RunStatus::done;
    table_->end(worker_of_[cell], is_good);
    if (!is_good || (!arguments_.quiet && arguments_.verbose > 0)) table_->note(closing_line(record, hashes_of(arguments_)));
  }
  void tick() override { table_->tick(); }
  void end() { table_.reset(); }

 private:
  const StudyArguments& arguments_;
  const Simulation* study_ = nullptr;
  std::optional<LiveTable> table_;
  std::map<std::size_t, std::size_t> worker_of_;
};

// Prints the comparison and the missing runs. Returns the exit code.
int conclude_sweep(const StudyOutcome& outcome, const SweepArguments& arguments, const Simulation& study) {
  const std::vector<RunRecord>& records = outcome.records;
  if (!arguments.quiet && records.size() > 1) print_comparison(records, study.folder());
  if (!arguments.quiet && records.size() == 1) std::cout << closing_line(records.front(), hashes_of(arguments)) << '\n';
  if (caught_signal() != 0) return exit_code_of(caught_signal());
  if (outcome.end == StudyEnd::done) return 0;
  const auto good = std::ranges::count(records, RunStatus::done, &RunRecord::status);
  spdlog::error("{} of {} runs failed or diverged; `fedbits export {} --runs runs.csv` lists them",
                study.size() - static_cast<std::size_t>(good), study.size(), study.folder());
  return 1;
}

int sweep(SweepArguments arguments) {
  return shown("sweep", arguments, [&arguments](JsonLog& log, StudyWatch& watch) {
    const std::optional<SweepShard> shard = arguments.shard ? std::optional(parse_shard(*arguments.shard)) : std::nullopt;
    if (arguments.list) return list_cells(arguments, shard);
    std::get<PlayInParallel>(arguments.play).shard = shard;
    RunsInParallel view(arguments);
    StudyDisplay display(arguments, log, watch, view);
    Simulation study = Simulation::open(arguments);
    const StudyOutcome outcome = study.run(display, stop_token());
    view.end();
    return conclude_sweep(outcome, arguments, study);
  });
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
  PlayInParallel& play = std::get<PlayInParallel>(arguments->play);
  CLI::App* command = app.add_subcommand("sweep", "run every cell of a scenario file, several at a time");
  add_study_options(*command, *arguments);
  command->add_option("-j,--jobs", play.jobs, "runs at a time (default: cores / threads); results do not depend on it")
      ->check(CLI::Range(1, 4096));
  command->add_option("--threads", play.threads, "threads of each run, useful for runs that are few and large; results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--memory", play.memory,
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
