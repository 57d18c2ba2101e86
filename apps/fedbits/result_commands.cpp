// `fedbits export` and `fedbits explain`: show the contents of a store.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/contrast_option.hpp"
#include "apps/fedbits/explain.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "fl_core/config/error.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/output/output_file.hpp"
#include "study/results/damaged_runs.hpp"
#include "study/results/export.hpp"
#include "study/results/export_contrasts.hpp"
#include "study/results/planned_options.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace {

// Returns a sentence about whether a result was made with this plug-in.
std::string told_of(const Plugin& plugin, const RunRecord& record) {
  for (const PluginUse& used : record.plugins) {
    if (used.sha256 == plugin.sha256) return "the result was made with this file";
    if (used.name == plugin.file.filename()) return "the result was made with another build of it";
  }
  return "the result was made without it";
}

// Returns the record of the run whose hash begins with `prefix`, from the named store or from any store in the folder of results.
RunRecord record_of(const std::string& prefix, const std::string& store) {
  const std::vector<std::filesystem::path> stores = store.empty() ? stores_here() : std::vector{store_named("explain", store)};
  if (stores.size() < 2)
    return RunStore::open(stores.empty() ? store_named("explain", "") : stores.front(), RunStore::Mode::read).record(prefix);
  std::optional<RunRecord> record;
  for (const std::filesystem::path& one : stores) {
    const RunStore opened = RunStore::open(one, RunStore::Mode::read);
    std::vector<DamagedRun> damaged;
    const std::vector<RunRecord> all = list_whole(opened, damaged);
    if (std::ranges::none_of(all, [&](const RunRecord& run) { return run.run.starts_with(prefix); })) continue;
    RunRecord found = opened.record(prefix);
    if (record && record->run != found.run)
      throw StoreError("run '" + prefix + "': stores in " + kResultsFolder + " have several, such as " + record->run + " and " + found.run +
                       "; give more digits, or --out FOLDER");
    record = std::move(found);
  }
  if (!record)
    throw StoreError("run '" + prefix + "': no store in " + kResultsFolder + " has a run that begins so; --out FOLDER names another store");
  return *std::move(record);
}

}  // namespace

namespace {

struct ExportArguments {
  std::string store;
  ExportOptions options;
  ContrastExport contrasts;
  AnalysisArguments asked;
  [[nodiscard]] bool has_tables() const { return !options.runs.empty() || !options.rounds.empty(); }
  [[nodiscard]] bool has_contrasts() const { return !contrasts.differences.empty() || !contrasts.slopes.empty(); }
};

// Throws ConfigError with all problems of the options at once.
void validate(const ExportArguments& arguments) {
  Problems problems;
  (void)contrast_options(arguments.asked.contrasts, problems);
  if (!arguments.has_contrasts() && !arguments.asked.contrasts.contrasts.empty())
    problems.push_back({"export", "--contrast has no effect without --differences FILE or --slopes FILE"});
  for (const std::filesystem::path& path : {arguments.contrasts.differences, arguments.contrasts.slopes})
    if (!path.empty() && path.extension() != ".csv" && path.extension() != ".json" && !path.string().starts_with("/dev/"))
      problems.push_back({"export", path.string() + " must end in .csv or .json"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  if (arguments.has_tables() || !arguments.has_contrasts()) validate(arguments.options);
}

// Returns the export of contrasts as the plan of the store's runs and the command line say. Throws ConfigError without a contrast.
ContrastExport planned_export(const RunStore& store, const ExportArguments& arguments) {
  Problems problems;
  const PlannedOptions planned = planned_options(store, arguments.asked, problems);
  if (planned.contrasts.contrasts.empty())
    problems.push_back(
        {"export", "--differences and --slopes need the methods that are compared: --contrast A:B, or a study with a plan_file"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  tell_departures(planned);
  ContrastExport options = arguments.contrasts;
  options.study = planned.study;
  options.contrasts = planned.contrasts;
  return options;
}

int export_all(const RunStore& store, const ExportArguments& arguments) {
  std::vector<DamagedRun> damaged;
  const ExportOptions& options = arguments.options;
  if (arguments.has_contrasts()) {
    damaged = export_contrasts(store, planned_export(store, arguments));
    tell_written("contrasts", {arguments.contrasts.differences, arguments.contrasts.slopes});
  }
  if (arguments.has_tables()) {
    damaged.clear();
    const std::string others = note_of_other_results(export_results(store, options, damaged));
    tell_written("tables", {options.runs, options.rounds});
    if (!others.empty()) std::cerr << others << "; --all-results writes them too\n";
  }
  return tell_damaged(store.file().string(), damaged);
}

void add_differences_options(CLI::App& command, ExportArguments& arguments) {
  command.add_option("--differences", arguments.contrasts.differences, "one line per pair of runs of a contrast (.csv or .json)");
  command.add_option("--slopes", arguments.contrasts.slopes, "one line per contrast, with its tests (.csv or .json)");
  add_contrast_options(command, arguments.asked.contrasts);
  StudyOptions& study = arguments.asked.study;
  command.add_option("--measure", study.measures, "column of rounds.csv that contrasts compare (repeatable; default: as for report)")
      ->allow_extra_args(false);
  command.add_option("--study", study.study, "study of the contrasts (default: the one with the most runs)");
  command.add_option("--method", study.method_axis, "axis that is the method of the contrasts (default: as for report)");
  command.add_option("--level", study.level_axis, "axis that is the level of heterogeneity (default: as for report)");
  command.add_option("--window", arguments.asked.window, "share of a budget over which a value of a contrast is averaged (default: 0.2)");
}

}  // namespace

void add_export_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "write stored results as CSV or JSON");
  command->add_option("STORE", arguments->store, "folder with results.sqlite, or the file")->required();
  command->add_option("--rounds", arguments->options.rounds, "one line per round (.csv or .json)");
  command->add_option("--runs", arguments->options.runs, "one line per run (.csv or .json)");
  command->add_flag("--reproducible", arguments->options.reproducible, "sort by hash and leave measured seconds empty");
  command->add_flag_callback(
      "--all-results", [arguments] { arguments->options.others = OtherResults::written; },
      "also write runs of other versions of fedbits, whose results this one does not reproduce; runs get a column results_version");
  add_differences_options(*command, *arguments);
  command->footer("Example: fedbits export fedbits-out/quickstart --rounds rounds.csv --runs runs.csv");
  command->callback([arguments, guard] {
    guard([&] {
      validate(*arguments);
      const RunStore store = RunStore::open(store_named("export", arguments->store), RunStore::Mode::read);
      try {
        return export_all(store, *arguments);
      } catch (const StoreError& error) {
        std::cerr << "fedbits: " << error.what() << '\n';
        return 1;
      }
    });
  });
}

void add_explain_command(CLI::App& app, const Guard& guard) {
  struct Arguments {
    std::string run, store;
    std::vector<std::string> plugins;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("explain", "print the exact scenario that made a result");
  command->add_option("RUN", arguments->run, "the beginning of a run's hash")->required();
  command->add_option("--out", arguments->store, "folder with results.sqlite, or the file (default: every store in fedbits-out)");
  add_plugin_option(*command, arguments->plugins);
  command->footer("Example: fedbits explain 3f2a\nWith --plugin it also says whether that file is the one that the result was made with.");
  command->callback([arguments, guard] {
    guard([&] {
      const std::vector<Plugin> plugins = load_plugins(arguments->plugins);
      const RunRecord record = record_of(arguments->run, arguments->store);
      explain(record, std::cout);
      for (const Plugin& plugin : plugins) std::cerr << plugin.file.string() << ": " << told_of(plugin, record) << '\n';
      return 0;
    });
  });
}

}  // namespace fl
