// `fedbits report`: writes a store as a page with charts and tables, or as tables for the terminal.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/contrast_option.hpp"
#include "apps/fedbits/report_latex.hpp"
#include "apps/fedbits/report_text.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "scenarios/analysis/study_setup.hpp"
#include "scenarios/report/report.hpp"
#include "study/output/output_file.hpp"
#include "study/results/damaged_runs.hpp"
#include "study/results/planned_options.hpp"
#include "study/results/store_folders.hpp"

namespace fl {
namespace {

struct ReportArguments {
  std::string store, out, data, latex, scenario;
  bool text = false, all = false, no_splits = false;
  // Without a file to write, the tables are what is asked for.
  [[nodiscard]] bool prints() const { return text || all || (out.empty() && latex.empty() && scenario.empty()); }
  AnalysisArguments analysis;
  ReportOptions report;
};

// Throws ConfigError with all problems of the options at once.
void validate(const ReportArguments& arguments) {
  Problems problems;
  (void)contrast_options(arguments.analysis.contrasts, problems);
  if (arguments.report.target && !std::isfinite(*arguments.report.target)) problems.push_back({"--target", "must be a finite number"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  if (!arguments.out.empty()) require_report_assets();
}

// Writes a file by write(stream). Returns the exit code.
template <class Write>
int write_file(const std::string& name, const Write& write) {
  OutputFile file(name);
  try {
    write(file.stream());
    file.close();
    file.rename();
    tell_written("report", {name});
  } catch (const StoreError& error) {
    std::cerr << "fedbits: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

int write_page(const std::vector<Study>& studies, const ReportArguments& arguments) {
  std::vector<ReportedStudy> reported;
  for (const Study& study : studies) {
    reported.push_back({study, arguments.report});
    if (!arguments.no_splits) reported.back().options.splits = split_pictures(study, DataCatalog(arguments.data));
  }
  return write_file(arguments.out, [&](std::ostream& out) { write_report(reported, out); });
}

int write_latex(const Study& study, const ReportArguments& arguments) {
  return write_file(arguments.latex, [&](std::ostream& out) { write_latex_tables(study, arguments.report, out); });
}

int report(ReportArguments& arguments) {
  validate(arguments);
  const RunStore store = RunStore::open(store_named("report", arguments.store), RunStore::Mode::read);
  Problems problems;
  const PlannedOptions planned = planned_options(store, arguments.analysis, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  arguments.report.contrasts = planned.contrasts;
  std::vector<Study> studies;
  if (arguments.out.empty())
    studies.push_back(read_study(store, planned.study));
  else
    studies = read_studies(store, planned.study);
  // Contrasts that do not fit the first study are an error; the page leaves them out of its other studies.
  if (!planned.contrasts.contrasts.empty()) (void)contrast_methods(studies.front(), 0, Against::bits_up, planned.contrasts);
  for (Study& study : studies) study.notes.insert(study.notes.begin(), planned.notes.begin(), planned.notes.end());
  tell_departures(planned);
  int code = tell_damaged(studies.front().store.file, studies.front().damaged);
  if (arguments.prints()) print_report(studies.front(), arguments.report, arguments.all ? Tables::all : Tables::one, std::cout);
  if (!arguments.scenario.empty())
    code = std::max(code, write_file(arguments.scenario, [&](std::ostream& out) { out << common_scenario(studies.front()); }));
  if (!arguments.latex.empty()) code = std::max(code, write_latex(studies.front(), arguments));
  return arguments.out.empty() ? code : std::max(code, write_page(studies, arguments));
}

}  // namespace

void add_report_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "compare methods at equal bits: a page with charts, or tables");
  command->add_option("STORE", arguments->store,
                      "folder with results.sqlite, or the file (default: the store in fedbits-out, if there is only one)");
  command->add_option("-o,--output", arguments->out, "write one HTML page that opens anywhere, without a network");
  command->add_flag("--text", arguments->text, "print the answer and its table, also beside a file (the default without one)");
  command->add_flag("--all", arguments->all, "print the tables of every measure, kind of bits and budget");
  command->add_option("--latex", arguments->latex, "write tables for a paper (LaTeX, booktabs): setup, comparison, bits to a target");
  command->add_option("--scenario", arguments->scenario, "write the scenario that plays the runs of the study again");
  command->add_option("--data", arguments->data, "folder with data sets, to draw the data distribution (default: as for run)");
  command->add_flag("--no-splits", arguments->no_splits, "do not split the data again to draw the data distribution");
  command
      ->add_option("--measure", arguments->analysis.study.measures,
                   "column of rounds.csv (repeatable; default: the losses, accuracies and measures that any run has)")
      ->allow_extra_args(false);
  command->add_option("--study", arguments->analysis.study.study,
                      "one of the store's studies by its name (default: the one with the most runs; the page offers the others as well)");
  command->add_option("--baseline", arguments->analysis.study.baseline,
                      "label of the method to compare with (default: the first of the compressing methods that send the fewest bits)");
  command->add_option("--method", arguments->analysis.study.method_axis,
                      "axis that is the method, or several with commas (default: the first compressor axis)");
  command->add_option("--level", arguments->analysis.study.level_axis,
                      "axis that is the level of heterogeneity (default: the first partition or data axis)");
  command->add_option("--window", arguments->analysis.window,
                      "share of a budget over which a run's value is averaged, weighted by bits (default: 0.2)");
  command->add_flag("--claims-despite-refused", arguments->analysis.study.claims_despite_refused,
                    "make claims about cells in which updates were refused because they were not finite");
  command->add_option("--target", arguments->report.target, "value of the first measure, for bits to target");
  add_contrast_options(*command, arguments->analysis.contrasts);
  command->footer("Example: fedbits report fedbits-out/quickstart -o report.html");
  command->callback([arguments, guard] { guard([&] { return report(*arguments); }); });
}

}  // namespace fl
