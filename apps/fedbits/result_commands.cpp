// `fedbits export` and `fedbits explain`: show the contents of a store.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/damaged_runs.hpp"
#include "apps/fedbits/explain.hpp"
#include "apps/fedbits/export.hpp"
#include "apps/fedbits/output_file.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "fl_core/config/error.hpp"
#include "scenarios/plugins/plugins.hpp"

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

void add_export_command(CLI::App& app, const Guard& guard) {
  struct Arguments {
    std::string store;
    ExportOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "write stored results as CSV or JSON");
  command->add_option("STORE", arguments->store, "folder with results.sqlite, or the file")->required();
  command->add_option("--rounds", arguments->options.rounds, "one line per round (.csv or .json)");
  command->add_option("--runs", arguments->options.runs, "one line per run (.csv or .json)");
  command->add_flag("--reproducible", arguments->options.reproducible, "sort by hash and leave measured seconds empty");
  command->add_flag_callback(
      "--all-results", [arguments] { arguments->options.others = OtherResults::written; },
      "also write runs of other versions of fedbits, whose results this one does not reproduce; runs get a column results_version");
  command->footer("Example: fedbits export fedbits-out/quickstart --rounds rounds.csv --runs runs.csv");
  command->callback([arguments, guard] {
    guard([&] {
      validate(arguments->options);
      const RunStore store = RunStore::open(store_named("export", arguments->store), RunStore::Mode::read);
      try {
        std::vector<DamagedRun> damaged;
        const ExportOptions& options = arguments->options;
        const std::string others = note_of_other_results(export_results(store, options, damaged));
        tell_written("tables", {options.runs, options.rounds});
        if (!others.empty()) std::cerr << others << "; --all-results writes them too\n";
        return tell_damaged(store.file().string(), damaged);
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
