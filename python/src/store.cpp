#include "python/src/store.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "python/src/calls.hpp"
#include "python/src/study_options.hpp"
#include "scenarios/analysis/comparable.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/report/report.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/results/export.hpp"
#include "study/results/planned_options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fl::python {
namespace {

std::vector<std::string> texts_of(const std::vector<DamagedRun>& damaged) {
  std::vector<std::string> texts;
  for (const DamagedRun& run : damaged) texts.push_back(to_string(run));
  return texts;
}

// Returns a table of `fedbits export` as JSON, and a sentence for each damaged run that it leaves out.
template <class Write>
nb::tuple table_of(const std::string& folder, bool reproducible, bool all_results, const Write& write) {
  std::ostringstream out;
  std::vector<DamagedRun> damaged;
  {
    const WithoutLock released;
    const RunStore store = RunStore::open(folder, RunStore::Mode::read);
    write(store, reproducible, TableFormat::json, out, all_results ? OtherResults::written : OtherResults::left_out, damaged);
  }
  return nb::make_tuple(out.str(), texts_of(damaged));
}

// Writes the tables of `fedbits export`, with its bytes. An empty path omits a table.
std::vector<std::string> export_tables(const std::string& folder, const std::string& runs, const std::string& rounds, bool reproducible,
                                       bool all_results) {
  const WithoutLock released;
  std::vector<DamagedRun> damaged;
  const OtherResults others = all_results ? OtherResults::written : OtherResults::left_out;
  (void)export_results(RunStore::open(folder, RunStore::Mode::read),
                       {.rounds = rounds, .runs = runs, .reproducible = reproducible, .others = others}, damaged);
  return texts_of(damaged);
}

// ---- studies of a store

using NamedRuns = std::pair<std::string, std::vector<std::string>>;

// Returns the name of each study and the hashes of its runs, in the order of `fedbits report`: the largest study first.
std::vector<NamedRuns> studies_of(const std::string& folder) {
  const WithoutLock released;
  std::vector<DamagedRun> damaged;
  std::vector<RunRecord> records = RunStore::open(folder, RunStore::Mode::read).list(damaged);
  (void)remove_other_results(records);
  std::vector<NamedRuns> studies;
  for (const ComparableRuns& study : comparable_runs(std::move(records))) {
    studies.emplace_back(study.name, std::vector<std::string>());
    for (const RunRecord& record : study.records) studies.back().second.push_back(record.run);
  }
  return studies;
}

// Throws StoreError for a folder or a file that is no store. Reads no run.
void require_store(const std::string& folder) {
  const WithoutLock released;
  (void)RunStore::open(folder, RunStore::Mode::read);
}

AnalysisArguments analysis_of(const nb::dict& options) {
  AnalysisArguments arguments;
  take(options, "measures", arguments.study.measures);
  take(options, "study", arguments.study.study);
  take(options, "baseline", arguments.study.baseline);
  take(options, "method", arguments.study.method_axis);
  take(options, "level", arguments.study.level_axis);
  take(options, "claims_despite_refused", arguments.study.claims_despite_refused);
  take(options, "window", arguments.window);
  take(options, "contrasts", arguments.contrasts.contrasts);
  take(options, "classes", arguments.contrasts.classes);
  take(options, "heterogeneity", arguments.contrasts.heterogeneity);
  take(options, "margins", arguments.contrasts.margins);
  return arguments;
}

// The studies that options select, as `fedbits report` reads them: an analysis plan that the runs keep is followed.
struct Selected {
  std::vector<Study> studies;  // the first one, or all
  ContrastOptions contrasts{};
};

enum class Which { first, all };

Selected select(const std::string& folder, const AnalysisArguments& arguments, Which which) {
  const RunStore store = RunStore::open(folder, RunStore::Mode::read);
  Problems problems;
  const PlannedOptions planned = planned_options(store, arguments, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  Selected selected{.studies = {}, .contrasts = planned.contrasts};
  if (which == Which::all)
    selected.studies = read_studies(store, planned.study);
  else
    selected.studies.push_back(read_study(store, planned.study));
  if (!planned.contrasts.contrasts.empty()) (void)contrast_methods(selected.studies.front(), 0, Against::bits_up, planned.contrasts);
  for (Study& study : selected.studies) study.notes.insert(study.notes.begin(), planned.notes.begin(), planned.notes.end());
  return selected;
}

// Throws ConfigError for a name that is none of the kinds of bits.
Against against_of(const std::string& name) {
  const std::vector<std::pair<std::string, Against>> kinds = {{"up", Against::bits_up},
                                                              {"both", Against::bits_both},
                                                              {"published", Against::bits_up_published},
                                                              {"entropy", Against::bits_up_entropy},
                                                              {"seconds", Against::seconds}};
  std::vector<std::string> names;
  for (const auto& [one, against] : kinds) {
    if (one == name) return against;
    names.push_back(one);
  }
  const std::string near = nearest_name(name, names);
  throw ConfigError("bits: there is no '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                    " (known: up, both, published, entropy, seconds)");
}

void put_estimate(nb::dict& row, const std::string& name, const Estimate& estimate) {
  const auto key = [&](const char* suffix) { return nb::str((name + suffix).c_str()); };
  row[key("")] = estimate.mean;
  row[key("_low")] = estimate.student.low;
  row[key("_high")] = estimate.student.high;
  row[key("_bootstrap_low")] = estimate.bootstrap.low;
  row[key("_bootstrap_high")] = estimate.bootstrap.high;
}

nb::dict row_of(const Study& study, std::size_t measure, const EqualBitsComparison& one) {
  const Panel& panel = study.panels[one.panel];
  nb::dict row;
  row["measure"] = study.measures[measure];
  row["level"] = panel.level;
  row["group"] = panel.rest;
  row["method"] = study.methods[one.method];
  row["baseline"] = study.methods[study.references.baseline];
  put_estimate(row, "difference", one.paired.difference);
  row["p"] = one.paired.p_value;
  row["p_holm"] = one.paired.p_holm;
  row["verdict"] = to_string(one.verdict);
  row["why"] = one.why;
  row["remarks"] = one.remarks;
  put_estimate(row, "value", one.value.value);
  put_estimate(row, "baseline_value", one.baseline_value.value);
  row["budget_bits"] = one.budget_bits.mean;
  row["pairs"] = one.paired.difference.count;
  row["seeds"] = one.num_seeds;
  row["evaluations"] = std::min(one.value.num_evaluations, one.baseline_value.num_evaluations);
  row["share"] = one.share;
  return row;
}

// Compares methods at equal bits, or at shares of the baseline's bits. Returns the rows of a table, and the notes of the study.
nb::tuple compare(const std::string& folder, const nb::dict& options, const std::string& bits, bool at_shares) {
  const AnalysisArguments arguments = analysis_of(options);
  const Against against = against_of(bits);
  std::vector<std::vector<EqualBitsComparison>> compared;
  const Study study = [&] {
    const WithoutLock released;
    Study read = std::move(select(folder, arguments, Which::first).studies.front());
    if (!read.knows(against)) throw ConfigError("bits: not all runs of this study know " + std::string(to_string(against)));
    for (std::size_t measure = 0; measure < read.measures.size(); ++measure)
      compared.push_back(at_shares ? compare_at_shares(read, measure, against) : compare_at_equal_bits(read, measure, against));
    return read;
  }();
  nb::list rows;
  for (std::size_t measure = 0; measure < compared.size(); ++measure)
    for (const EqualBitsComparison& one : compared[measure]) rows.append(row_of(study, measure, one));
  return nb::make_tuple(rows, study.notes, texts_of(study.damaged));
}

// ---- the report

ReportOptions report_options(const nb::dict& options) {
  ReportOptions report;
  take(options, "target", report.target);
  return report;
}

// Returns the page of `fedbits report`. Data of the splits are drawn again, from the data sets in `data_folder`, unless it is None.
std::string report_page(const std::string& folder, const nb::dict& options, const std::optional<std::string>& data_folder) {
  const AnalysisArguments arguments = analysis_of(options);
  ReportOptions report = report_options(options);
  const WithoutLock released;
  require_report_assets();
  const Selected selected = select(folder, arguments, Which::all);
  report.contrasts = selected.contrasts;
  std::vector<ReportedStudy> reported;
  for (const Study& study : selected.studies) {
    reported.push_back({study, report});
    if (data_folder) reported.back().options.splits = split_pictures(study, DataCatalog(*data_folder));
  }
  std::ostringstream page;
  write_report(reported, page);
  return page.str();
}

// Returns the data of the report's charts for one study, as JSON.
std::string chart_data(const std::string& folder, const nb::dict& options, const std::optional<std::string>& data_folder) {
  const AnalysisArguments arguments = analysis_of(options);
  ReportOptions report = report_options(options);
  const WithoutLock released;
  const Selected selected = select(folder, arguments, Which::first);
  report.contrasts = selected.contrasts;
  if (data_folder) report.splits = split_pictures(selected.studies.front(), DataCatalog(*data_folder));
  return report_data(selected.studies.front(), report);
}

}  // namespace

void bind_store(nb::module_& module) {
  module.def(
      "runs_of",
      [](const std::string& folder, bool reproducible, bool all_results) {
        return table_of(folder, reproducible, all_results, write_runs);
      },
      "folder"_a, "reproducible"_a = false, "all_results"_a = false);
  module.def(
      "rounds_of",
      [](const std::string& folder, bool reproducible, bool all_results) {
        return table_of(folder, reproducible, all_results, write_rounds);
      },
      "folder"_a, "reproducible"_a = false, "all_results"_a = false);
  module.def("export_tables", &export_tables, "folder"_a, "runs"_a, "rounds"_a, "reproducible"_a, "all_results"_a);
  module.def("require_store", &require_store, "folder"_a);
  module.def("studies_of", &studies_of, "folder"_a);
  module.def("compare", &compare, "folder"_a, "options"_a, "bits"_a, "at_shares"_a);
  module.def("report_page", &report_page, "folder"_a, "options"_a, "data_folder"_a.none());
  module.def("chart_data", &chart_data, "folder"_a, "options"_a, "data_folder"_a.none());
  module.def("hint", [](nb::handle name, const std::vector<std::string>& known) {
    std::string text;
    if (!nb::try_cast(name, text)) return std::string();  // it is no text, and near to none
    const std::string near = nearest_name(text, known);
    return near.empty() ? std::string() : "; did you mean '" + near + "'?";
  });
}

}  // namespace fl::python
