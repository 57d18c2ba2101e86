#include "scenarios/analysis/study.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "scenarios/analysis/baseline.hpp"
#include "scenarios/analysis/comparable.hpp"
#include "scenarios/analysis/grid.hpp"
#include "scenarios/analysis/idle_axes.hpp"
#include "scenarios/analysis/missing_minima.hpp"
#include "scenarios/analysis/replicates.hpp"
#include "scenarios/analysis/study_axes.hpp"
#include "scenarios/analysis/tuning_notes.hpp"
#include "scenarios/experiment/bounds.hpp"
#include "scenarios/experiment/compressed_input.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/broken_contracts.hpp"
#include "scenarios/results/step_theorems.hpp"

namespace fl {
namespace {

// ---- cells and panels ----------------------------------------------------------------------------------------------------------

std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

// The place of a grid cell in the study: its method, and the panel of its other labels.
struct GridPlace {
  std::string method, level, rest;
};

GridPlace place_of(const Grid& grid, const GridCell& cell, const Study& study) {
  GridPlace place;
  for (std::size_t axis = 0; axis < grid.keys.size(); ++axis) {
    const std::string &key = grid.keys[axis], &label = cell.labels[axis];
    if (key == study.axes.method)
      place.method = label;
    else if (key == study.axes.level)
      place.level = label;
    else
      place.rest += (place.rest.empty() ? "" : ", ") + key + "=" + label;
  }
  return place;
}

// Adds one run per seed, the one stored last. `first` is the record with index 0.
void add_runs(StudyCell& cell, const GridCell& from, const RunRecord* first) {
  std::map<std::uint64_t, std::size_t> by_seed;
  for (const RunRecord* run : from.runs) by_seed.insert_or_assign(run->seed, static_cast<std::size_t>(run - first));
  for (const auto& [seed, index] : by_seed) cell.runs.push_back(index);
  cell.num_repeated = from.runs.size() - by_seed.size();
  std::vector<const RunRecord*> records;
  for (const std::size_t index : cell.runs) records.push_back(first + index);
  cell.first = first_of_same(records);
}

void arrange(Study& study, const Grid& grid, const RunRecord* first) {
  std::map<std::pair<std::string, std::string>, std::size_t> panels;
  for (const GridCell& from : grid.cells) {
    const GridPlace place = place_of(grid, from, study);
    const auto [at, is_new] = panels.try_emplace({place.rest, place.level}, study.panels.size());
    if (is_new) study.panels.push_back({.level = place.level, .rest = place.rest, .cells = {}});
    StudyCell cell{.method = index_of(study.methods, place.method), .panel = at->second, .runs = {}, .num_repeated = 0};
    add_runs(cell, from, first);
    study.panels[at->second].cells.push_back(study.cells.size());
    study.cells.push_back(std::move(cell));
  }
  for (Panel& panel : study.panels) std::ranges::stable_sort(panel.cells, {}, [&](std::size_t cell) { return study.cells[cell].method; });
}

// Adds a note for each scenario whose runs are not all in the study.
void note_missing_runs(Study& study, const std::vector<RunRecord>& records) {
  std::map<std::string, std::pair<std::size_t, std::set<std::string>>> runs;  // by name: the number of runs of its file, and those stored
  for (const RunRecord& record : records) {
    auto& [all, stored] = runs[record.name];
    const auto planned = std::ranges::find(record.constants, kRunsOfStudy, &ResolvedConstant::name);
    if (planned != record.constants.end()) all = std::max(all, static_cast<std::size_t>(planned->value));
    stored.insert(record.run);
  }
  for (const auto& [name, counts] : runs)
    if (const auto& [all, stored] = counts; stored.size() < all)
      study.notes.push_back("the study is not complete: " + std::to_string(stored.size()) + " of the " + std::to_string(all) +
                            " runs of '" + name +
                            "' are stored, and what is said here may change with the others; `fedbits sweep FILE --out FOLDER "
                            "--resume` runs them");
}

void note_repeated(Study& study) {
  const std::size_t repeated = std::accumulate(study.cells.begin(), study.cells.end(), std::size_t{0},
                                               [](std::size_t sum, const StudyCell& cell) { return sum + cell.num_repeated; });
  if (repeated > 0)
    study.notes.push_back(std::to_string(repeated) +
                          " runs were left out: a later run has the same labels and the same seed but another scenario "
                          "(give scenarios names of their own, or stores of their own)");
}

// Adds a note that names the cells in which several seeds gave the same run, which counts as one observation.
void note_replicates(Study& study) {
  constexpr std::size_t kMostNamed = 6;
  std::string text;
  std::size_t count = 0;
  for (const StudyCell& cell : study.cells) {
    const std::size_t distinct = cell.distinct().size();
    if (distinct == cell.runs.size() || ++count > kMostNamed) continue;
    text += (text.empty() ? "" : "; ") + study.panels[cell.panel].title(study.axes.level) + ", " + study.methods[cell.method] + ": " +
            std::to_string(cell.runs.size()) + " seeds, " + std::to_string(distinct) + (distinct == 1 ? " distinct run" : " distinct runs");
  }
  if (count > kMostNamed) text += "; and " + std::to_string(count - kMostNamed) + " more cells";
  if (count > 0)
    study.notes.push_back("seeds that gave one and the same run count once, since they are no independent observations (" + text + ")");
}

// Adds a note for methods of one panel that differ in unit or scope. The first run of a cell represents it.
void note_differing_inputs(Study& study) {
  for (const Panel& panel : study.panels) {
    std::vector<std::pair<std::string, std::string>> methods;
    for (const std::size_t index : panel.cells) {
      const StudyCell& cell = study.cells[index];
      const RunRecord& record = study.runs[cell.runs.front()].record;
      try {
        if (!record.scenario.empty())
          methods.emplace_back(study.methods[cell.method], compressed_input(parse_scenario(record.scenario, "stored scenario")));
      } catch (const ConfigError&) {  // a part of a plug-in that is not loaded
      }
    }
    if (const std::string text = differing_inputs(methods); !text.empty()) {
      study.notes.push_back(
          "methods that are compared differ in what they compress, so that their thresholds and errors are in different units: " + text +
          " (" + panel.title(study.axes.level) + ")");
      return;
    }
  }
}

// Adds a note for each cell whose operator broke its contract.
void note_broken_contracts(Study& study) {
  for (const StudyCell& cell : study.cells) {
    const std::string broken = study.broken(cell);
    if (broken.empty()) continue;
    const std::string place = study.panels.size() < 2 ? "" : " (" + study.panels[cell.panel].title(study.axes.level) + ")";
    study.notes.push_back(study.methods[cell.method] + place + ": " + broken);
  }
}

void note_refused(Study& study) {
  std::uint64_t refused = 0;
  std::size_t cells = 0;
  for (const StudyCell& cell : study.cells) {
    refused += study.refused(cell);
    cells += study.refused(cell) > 0 ? 1 : 0;
  }
  if (refused == 0) return;
  study.notes.push_back(std::to_string(refused) + " updates of clients in " + std::to_string(cells) + (cells == 1 ? " cell" : " cells") +
                        " were refused because they were not finite" +
                        (study.rules.claims_despite_refused ? "; claims about these cells were asked for (--claims-despite-refused)"
                                                            : "; nothing is claimed about these cells (--claims-despite-refused does)"));
}

// ---- runs ----------------------------------------------------------------------------------------------------------------------

template <class Choose>
double extreme(const std::vector<RoundRow>& rows, double RoundRow::*member, Choose choose) {
  double result = kNotMeasured;
  for (const RoundRow& row : rows)
    if (!std::isnan(row.*member)) result = std::isnan(result) ? row.*member : choose(result, row.*member);
  return result;
}

double mean_of_rounds(const RunTrace& trace) {
  double sum = 0;
  for (const double value : trace.value) sum += value;
  return trace.value.empty() ? kNotMeasured : sum / static_cast<double>(trace.value.size());
}

// Returns the values at some rows as a trace.
RunTrace trace_of(std::vector<RoundRow> rows, std::span<const std::size_t> where, const std::vector<double>& values) {
  for (RoundRow& row : rows) row.average_f_gap = kNotMeasured;
  for (std::size_t i = 0; i < where.size(); ++i) rows[where[i]].average_f_gap = values[i];
  return make_trace(rows, "average_f_gap");
}

// Reads the quantities that theorems bound for a run, with their bounds.
void read_theory(StudyRun& run, const std::vector<RoundRow>& rows) {
  if (const BoundedMean mean = bounded_mean(run.record, rows); mean.theorem > 0) {
    std::vector<std::size_t> all(mean.measured.size());
    std::iota(all.begin(), all.end(), std::size_t{1});
    run.theory[kMeanGradient] = {mean.theorem, mean.in_expectation, trace_of(rows, all, mean.measured), trace_of(rows, all, mean.bound)};
  }
  if (const BoundedAverage average = bounded_average(run.record, rows); average.theorem > 0)
    run.theory[kAverageModel] = {average.theorem, average.in_expectation, trace_of(rows, average.row, average.measured),
                                 trace_of(rows, average.row, average.bound)};
  if (const PredictedRate rate = predicted_rate(run.record, rows); !rate.row.empty())
    run.theory[kTightRate] = {kTightStep, false, trace_of(rows, rate.row, rate.measured), trace_of(rows, rate.row, rate.predicted)};
}

double constant_of(const RunRecord& record, const char* name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? kNotMeasured : found->value;
}

StudyRun read_run(const RunStore& store, RunRecord record, const std::vector<std::string>& measures) {
  const std::vector<RoundRow> rows = store.rows(record.run);
  const auto largest = [](double a, double b) { return std::max(a, b); };
  const auto smallest = [](double a, double b) { return std::min(a, b); };
  StudyRun run{.record = std::move(record), .traces = {}, .density = make_trace(rows, "density")};
  const double set_factor = constant_of(run.record, "divergence_factor");
  for (const std::string& measure : measures)
    run.traces.push_back(make_trace(rows, measure, std::isnan(set_factor) ? kDivergenceFactor : set_factor, run.record.columns, true));
  for (const char* column : kClientBand) run.clients.push_back(make_trace(rows, column));
  run.mean_density = mean_of_rounds(run.density);
  run.message_s = mean_of_rounds(make_trace(rows, "message_s", kDivergenceFactor, run.record.columns, true));
  run.message_bits = mean_of_rounds(make_trace(rows, "message_bits", kDivergenceFactor, run.record.columns, true));
  run.kappa = extreme(rows, &RoundRow::measured_kappa, largest);
  run.delta = extreme(rows, &RoundRow::measured_delta, smallest);
  run.omega = extreme(rows, &RoundRow::measured_omega, largest);
  for (const RoundRow& row : rows) run.refused += row.refused;
  read_theory(run, rows);
  return run;
}

// Returns every column that the study can show: the columns of all runs, then those of measures that its runs asked for. Adds a note for a
// column that runs describe differently, because its measure was changed.
std::vector<MeasureColumn> all_columns(const std::vector<RunRecord>& records, std::vector<std::string>& notes) {
  std::vector<MeasureColumn> all = standard_columns();
  std::set<std::string> told;
  for (const RunRecord& record : records)
    for (const MeasureColumn& column : record.columns) {
      const std::size_t place = place_of(all, column.name);
      if (place == all.size())
        all.push_back(column);
      else if ((all[place].unit != column.unit || all[place].definition != column.definition) && told.insert(column.name).second)
        notes.push_back("runs of this study describe " + column.name + " differently (\"" + all[place].definition + "\" and \"" +
                        column.definition + "\"): their values are not the same quantity");
    }
  return all;
}

// Returns "; did you mean 'test_accuracy'? (known: ...)" with the names of the measures that a report may show.
std::string near_measure(const std::string& measure, const std::vector<MeasureColumn>& all) {
  std::vector<std::string> names;
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i >= standard_columns().size() || is_measure(all[i].name)) {
      names.push_back(all[i].name);
      list += (list.empty() ? "" : ", ") + all[i].name;
    }
  const auto inside = std::ranges::find_if(names, [&](const std::string& name) { return name.find(measure) != std::string::npos; });
  const std::string near = !measure.empty() && inside != names.end() ? *inside : nearest_name(measure, names);
  return (near.empty() ? "" : "; did you mean '" + near + "'?") + " (known: " + list + ")";
}

void choose_measures(Study& study, const std::vector<RunRecord>& records, const std::vector<std::string>& asked, Problems& problems) {
  const std::vector<MeasureColumn> all = all_columns(records, study.notes);
  for (const std::string& measure : asked) {
    const std::size_t place = place_of(all, measure);
    if (place == all.size() || (place < standard_columns().size() && !is_measure(measure)))
      problems.push_back({"--measure", "'" + measure + "' is not a measured column of rounds.csv" + near_measure(measure, all)});
    else
      study.columns.push_back(all[place]);
  }
  if (asked.empty()) std::ranges::copy_if(all, std::back_inserter(study.columns), &MeasureColumn::is_compared);
  for (const MeasureColumn& column : study.columns) study.measures.push_back(column.name);
}

// Removes the measures that no run has from the study. A requested measure that no run has is an error.
void drop_unmeasured(Study& study, const StudyOptions& options) {
  for (std::size_t m = study.measures.size(); m-- > 0;) {
    if (std::ranges::any_of(study.runs, [m](const StudyRun& run) { return !run.traces[m].value.empty(); })) continue;
    if (!options.measures.empty())
      throw ConfigError("--measure: no run in " + study.store.file + " has measured '" + study.measures[m] + "'");
    study.measures.erase(study.measures.begin() + static_cast<std::ptrdiff_t>(m));
    study.columns.erase(study.columns.begin() + static_cast<std::ptrdiff_t>(m));
    for (StudyRun& run : study.runs) run.traces.erase(run.traces.begin() + static_cast<std::ptrdiff_t>(m));
  }
  if (study.measures.empty())
    throw ConfigError("no run in " + study.store.file +
                      " has measured f_gap, test_accuracy, train_loss or another measure; name a column with --measure");
}

bool takes_names_as_axis(const StudyOptions& options) {
  const std::vector<std::string> methods = split_at_commas(options.method_axis);
  return options.level_axis == "name" || std::ranges::find(methods, "name") != methods.end();
}

// The runs of a store by study, with notes about runs that were left out.
struct StoredStudies {
  std::vector<ComparableRuns> studies;
  std::string others;  // runs of another version of fedbits
};

StoredStudies sort_store(const RunStore& store, std::vector<RunRecord> records, const StudyOptions& options) {
  const std::string file = store.file().string();
  if (records.empty()) throw ConfigError("there are no runs in " + file + "; `fedbits run FILE --out FOLDER` makes some");
  const std::string others = note_of_other_results(remove_other_results(records));
  if (records.empty()) throw ConfigError("no run in " + file + " can be reported: " + others);
  return {comparable_runs(std::move(records), takes_names_as_axis(options)), others};
}

// Returns the index of the requested study.
std::size_t asked_study(const std::vector<ComparableRuns>& studies, const std::string& asked) {
  if (asked.empty()) return 0;
  std::vector<std::string> names;
  for (const ComparableRuns& study : studies) names.push_back(study.name);
  const auto found = std::ranges::find(names, asked);
  if (found == names.end()) throw ConfigError("--study: the store has no study '" + asked + "'; there are " + quoted_list(names));
  return static_cast<std::size_t>(found - names.begin());
}

Study make_study(const RunStore& store, const StoredStudies& stored, std::size_t place, const StudyOptions& options) {
  const ComparableRuns& runs = stored.studies[place];
  const std::vector<RunRecord>& records = runs.records;
  Study study{.store = {.file = store.file().string(), .studies = {}}, .name = runs.name};
  for (const ComparableRuns& one : stored.studies) study.store.studies.push_back({one.name, one.records.size()});
  if (!stored.others.empty()) study.notes.push_back(stored.others);
  study.notes.insert(study.notes.end(), runs.notes.begin(), runs.notes.end());
  Grid grid = group_by_axes(records);
  for (std::string& note : idle_axes(grid)) study.notes.push_back(std::move(note));
  for (std::string& sentence : step_theorems_of(records).sentences()) study.notes.push_back(std::move(sentence));
  if (std::string note = missing_minima(records); !note.empty()) study.notes.push_back(std::move(note));
  Problems problems;
  choose_axes(study, grid, options, problems);
  choose_measures(study, records, options.measures, problems);
  if (!(options.window > 0 && options.window <= 1)) problems.push_back({"--window", "must be above 0 and at most 1"});
  study.rules.window = options.window;
  study.rules.claims_despite_refused = options.claims_despite_refused;
  if (!problems.empty()) throw ConfigError(std::move(problems));

  arrange(study, grid, records.data());
  for (std::string& note : tuning_notes(records)) study.notes.push_back(std::move(note));
  choose_baseline(study, records, options.baseline, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  note_repeated(study);
  note_missing_runs(study, records);
  for (const RunRecord& record : records) {
    index_of(study.names, record.name);
    study.runs.push_back(read_run(store, record, study.measures));
  }
  drop_unmeasured(study, options);
  note_replicates(study);
  note_refused(study);
  note_broken_contracts(study);
  note_differing_inputs(study);
  return study;
}

// Reads the requested study first and then the others, up to the limit and if the options fit them.
std::vector<Study> all_studies(const RunStore& store, std::vector<RunRecord> records, const StudyOptions& options) {
  const StoredStudies stored = sort_store(store, std::move(records), options);
  std::vector<Study> studies;
  studies.push_back(make_study(store, stored, asked_study(stored.studies, options.study), options));
  std::vector<std::string> missing;
  for (std::size_t s = 1; s < stored.studies.size() && options.study.empty(); ++s) {
    try {
      if (studies.size() == kMostStudies) throw ConfigError("too many");
      studies.push_back(make_study(store, stored, s, options));
    } catch (const ConfigError&) {
      missing.push_back(stored.studies[s].name);
    }
  }
  if (!missing.empty())
    studies.front().notes.push_back(
        "studies of this store that are not shown here, because there are many or the options do not fit them: " + quoted_list(missing) +
        "; --study shows one");
  return studies;
}

// Reads the studies of all whole runs; each study names the damaged runs. Throws DamagedRunError if no run is whole.
std::vector<Study> read_whole(const RunStore& store, const std::function<std::vector<Study>(std::vector<RunRecord>)>& read) {
  std::vector<DamagedRun> damaged;
  std::vector<RunRecord> records = store.list(damaged);
  const auto require_whole_runs = [&] {
    if (records.empty() && !damaged.empty()) throw DamagedRunError(damaged.front());
  };
  require_whole_runs();
  const auto told = [&damaged](std::vector<Study> studies) {
    for (Study& study : studies) {
      for (const DamagedRun& run : damaged) study.notes.push_back(to_string(run) + "; it is left out");
      study.damaged = damaged;
    }
    return studies;
  };
  try {
    return told(read(records));
  } catch (const DamagedRunError&) {
    // If the rounds of one run are damaged, those of others may be too, so all runs are read once before the studies.
  }
  std::erase_if(records, [&](const RunRecord& record) {
    std::optional<DamagedRun> found = store.damage_of(record.run);
    if (!found) return false;
    damaged.push_back(*std::move(found));
    return true;
  });
  require_whole_runs();
  return told(read(std::move(records)));
}

}  // namespace

Study read_study(const RunStore& store, const StudyOptions& options) {
  return read_whole(store,
                    [&](std::vector<RunRecord> records) {
                      const StoredStudies stored = sort_store(store, std::move(records), options);
                      std::vector<Study> one;
                      one.push_back(make_study(store, stored, asked_study(stored.studies, options.study), options));
                      return one;
                    })
      .front();
}

std::vector<Study> read_studies(const RunStore& store, const StudyOptions& options) {
  return read_whole(store, [&](std::vector<RunRecord> records) { return all_studies(store, std::move(records), options); });
}

}  // namespace fl
