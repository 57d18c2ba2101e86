// `fedbits run FILE`: every cell of a scenario file, one after another, a line each; stored ones are shown and not repeated.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <thread>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/comparison.hpp"
#include "apps/fedbits/json.hpp"
#include "apps/fedbits/machine.hpp"
#include "apps/fedbits/numbers.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/checksum.hpp"
#include "fl_core/error.hpp"
#include "scenarios/experiment.hpp"
#include "scenarios/plugins.hpp"
#include "scenarios/sweep.hpp"
#include "server/run_store.hpp"

namespace fl {

namespace {

// The signal that asked for the end, 0 = none. The second one of the same kind ends the process at once.
volatile std::sig_atomic_t g_signal = 0;
void on_signal(int signal) {
  g_signal = signal;
  std::signal(signal, SIG_DFL);
}

struct RunArguments {
  std::string file, out = "./fedbits-out", data, device = "cpu", log_json;
  std::vector<std::string> settings, plugins;
  int threads = 0;
  std::uint32_t block = 0;
  bool quiet = false, again = false, materialise = false;
  int verbose = 0;
};

void choose_log_level(const RunArguments& arguments) {
  spdlog::set_default_logger(spdlog::stderr_color_st("fedbits"));
  spdlog::set_pattern("%^%l%$: %v");
  spdlog::set_level(arguments.quiet ? spdlog::level::err : arguments.verbose > 0 ? spdlog::level::debug : spdlog::level::warn);
}

std::string progress_text(const RoundRow& row) {
  if (std::isnan(row.train_loss)) return {};
  return "loss " + short_text(row.train_loss) + (std::isnan(row.test_accuracy) ? "" : "  accuracy " + short_text(row.test_accuracy));
}

// The stored record of a cell, if it would end the same way again: finished, and made by the same plug-ins.
std::optional<RunRecord> stored_record(const std::string& hash, const std::vector<PluginUse>& plugins, const RunStore& store) {
  if (!store.has_finished(hash)) return std::nullopt;
  RunRecord record = store.record(hash);
  if (record.plugins == plugins) return record;
  spdlog::warn("{} is in the store, made by another build of its plug-ins: it is repeated", hash);
  return std::nullopt;
}

// Runs one cell, or takes it from the store. Returns its record.
RunRecord run_cell(const Cell& cell, const std::string& title, const RunArguments& arguments, const std::vector<Plugin>& plugins,
                   CellRunner& runner, RunStore& store, Progress& progress, JsonLog& log) {
  const std::string hash = to_hex(cell.hash);
  const std::vector<PluginUse> used = plugins_used(cell.scenario, plugins);
  if (!arguments.again) {
    if (std::optional<RunRecord> stored = stored_record(hash, used, store)) {
      spdlog::debug("{} is in the store: shown, not repeated (--again repeats it)", hash);
      for (const RoundRow& row : store.rows(hash)) log.add(hash, row);
      return *std::move(stored);
    }
  }
  progress.begin(title, static_cast<std::uint64_t>(cell.scenario.rounds));
  std::string text;
  RunResult result = runner.run(cell, [&](const RoundRow& row) {
    log.add(hash, row);
    std::string latest = progress_text(row);
    if (!latest.empty()) text = std::move(latest);
    if (row.round > 0) progress.update(row.round, text);
    return g_signal == 0;
  });
  progress.finish();
  describe_machine(result.record);
  result.record.plugins = used;
  store.append(result.record, result.rows);
  return result.record;
}

std::string title_of(const Cell& cell, std::size_t number, std::size_t count) {
  std::string title = cell.scenario.name;
  if (count > 1) title += " " + std::to_string(number) + "/" + std::to_string(count);
  for (const auto& [_, label] : cell.axis_labels) title += "  " + label;
  return title;
}

int run(const RunArguments& arguments) {
  choose_log_level(arguments);
  require_device(arguments.device);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const std::vector<Cell> cells = read_cells(arguments.file, arguments.settings);
  const int threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CellRunner runner(DataCatalog(arguments.data), {.threads = threads, .block = arguments.block, .materialise = arguments.materialise});
  for (const Cell& cell : cells) runner.check(cell);

  RunStore store = RunStore::open(arguments.out, RunStore::Mode::create);
  store.probe_writable();
  JsonLog log(arguments.log_json);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Progress progress(std::cerr, arguments.quiet ? ProgressStyle::silent : stderr_style(), stderr_width());
  std::vector<RunRecord> records;
  bool all_done = true;
  for (std::size_t i = 0; i < cells.size() && g_signal == 0; ++i) {
    try {
      records.push_back(run_cell(cells[i], title_of(cells[i], i + 1, cells.size()), arguments, plugins, runner, store, progress, log));
    } catch (const StoreError& error) {
      spdlog::error("{}", error.what());
      return 1;
    }
    if (!arguments.quiet) std::cout << closing_line(records.back()) << std::endl;
    all_done = all_done && records.back().status == RunStatus::done;
  }
  if (!arguments.quiet && records.size() > 1) {
    std::cout << '\n';
    print(comparison_table(records, {.measures = {"zeta_sq", "train_loss", "f_gap", "test_accuracy"}}), std::cout);
  }
  if (g_signal != 0) {
    spdlog::warn("interrupted: what was finished is stored in {}", arguments.out);
    return g_signal == SIGTERM ? 143 : 130;
  }
  return all_done ? 0 : 1;
}

}  // namespace

void add_run_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run every cell of a scenario file; stored results are shown, not repeated");
  command->add_option("FILE", arguments->file, "scenario file (TOML)")->required();
  command->add_option("--set", arguments->settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  add_plugin_option(*command, arguments->plugins);
  command->add_option("--out", arguments->out, "folder for results.sqlite")->capture_default_str();
  command->add_option("--data", arguments->data, "folder with data sets (else FEDBITS_DATA, ./data, the embedded set)");
  command->add_option("--device", arguments->device, "cpu, cuda or auto")->capture_default_str();
  command->add_option("--threads", arguments->threads, "threads (default: all cores); results do not depend on it")
      ->check(CLI::Range(1, 4096));
  command->add_option("--block", arguments->block, "clients computed together (default: chosen); results do not depend on it");
  command->add_option("--log-json", arguments->log_json, "a line of JSON for each measured round, as soon as it is over");
  command->add_flag("--materialise", arguments->materialise, "encode and decode every message instead of computing its length");
  command->add_flag("--again", arguments->again, "repeat runs that are stored");
  command->add_flag("-q,--quiet", arguments->quiet, "print errors only");
  command->add_flag("-v,--verbose", arguments->verbose, "say more");
  command->footer("Example: fedbits run scenarios/library/quickstart.toml --set rounds=50 --out results");
  command->callback([arguments, guard] { guard([&] { return run(*arguments); }); });
}

}  // namespace fl
