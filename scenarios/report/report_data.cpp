#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/analysis/break_even.hpp"
#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/analysis/level_sentences.hpp"
#include "scenarios/analysis/study_setup.hpp"
#include "scenarios/report/chart_data.hpp"
#include "scenarios/results/number_text.hpp"

namespace fl {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPoints = 96, kFewestPoints = 12;  // per curve
constexpr std::array kCosts = {Against::bits_up, Against::bits_both, Against::bits_up_published, Against::bits_up_entropy,
                               Against::seconds};
constexpr std::array kKeys = {"round", "up", "both", "published", "entropy", "seconds"};  // one per entry of kAgainst

const char* key_of(Against against) { return kKeys[static_cast<std::size_t>(against)]; }

Json rounded(double value, int digits = 7) { return Json::parse(number_json(value, digits)); }

Json interval(const Interval& interval) { return Json::array({rounded(interval.low), rounded(interval.high)}); }

Json estimate(const Estimate& estimate) {
  return {{"n", estimate.count}, {"mean", rounded(estimate.mean)}, {"t", interval(estimate.student)}, {"b", interval(estimate.bootstrap)}};
}

// Returns the maximum number of points per curve. Each curve has three numbers per point.
std::size_t points_per_curve(const Study& study, std::size_t most_numbers) {
  const std::size_t num_axes = kAgainst.size() - (study.knows(Against::seconds) ? 0 : 1);  // a page without a clock stays as it was
  std::size_t per_cell = study.measures.size() * num_axes;
  for (const ChartData& chart : all_chart_data()) per_cell += chart.curves_per_cell == nullptr ? 0 : chart.curves_per_cell(study);
  return std::clamp(most_numbers / (3 * std::max<std::size_t>(study.cells.size() * per_cell, 1)), kFewestPoints, kMostPoints);
}

// ---- comparisons ---------------------------------------------------------------------------------------------------------------

Json comparisons(const std::vector<EqualBitsComparison>& compared) {
  Json all = Json::array();
  for (const EqualBitsComparison& c : compared) {
    Json differences = Json::array();
    for (std::size_t i = 0; i < c.seeds.size(); ++i) differences.push_back(Json::array({c.seeds[i], rounded(c.differences[i])}));
    all.push_back({{"panel", c.panel},
                   {"method", c.method},
                   {"difference", estimate(c.paired.difference)},
                   {"p", rounded(c.paired.p_value, 4)},
                   {"holm", rounded(c.paired.p_holm, 4)},
                   {"value", estimate(c.value.value)},
                   {"base", estimate(c.baseline_value.value)},
                   {"budget", rounded(c.budget_bits.mean)},
                   {"evaluations", std::min(c.value.num_evaluations, c.baseline_value.num_evaluations)},
                   {"ratio", rounded(c.paired.variance_ratio, 3)},
                   {"seeds", c.num_seeds},
                   {"remarks", c.remarks},
                   {"pairs", std::move(differences)},
                   {"verdict", to_string(c.verdict)},
                   {"why", c.why}});
    if (!std::isnan(c.share)) all.back()["share"] = c.share;
    if (c.value.num_at_start > 0) all.back()["atStart"] = true;
  }
  return all;
}

Json common(const Study& study, std::size_t measure, Against against, Budget budget) {
  Json all = Json::array();
  for (const AtCommonBits& at : values_at_common_bits(study, measure, against, budget))
    all.push_back({{"panel", at.panel},
                   {"method", at.method},
                   {"value", estimate(at.ends.value)},
                   {"budget", rounded(at.budget_bits.mean)},
                   {"evaluations", at.ends.num_evaluations},
                   {"remarks", at.remarks}});
  return all;
}

Json reach(const Study& study, std::size_t measure, Against against, double target) {
  Json all = Json::array();
  for (const BitsToTarget& to : bits_to_target(study, measure, against, target))
    all.push_back({{"panel", to.panel},
                   {"method", to.method},
                   {"count", to.bits.count},
                   {"reached", to.bits.reached},
                   {"median", rounded(to.bits.median)},
                   {"interval", interval(to.bits.interval)}});
  return all;
}

// Returns the bits and the end points at which the runs of each cell end.
Json finals(const Study& study, std::size_t measure, Against against) {
  Json all = Json::array();
  for (const AtCommonBits& at : values_at_own_end(study, measure, against))
    if (at.ends.num_runs > 0)
      all.push_back(
          {{"panel", at.panel}, {"method", at.method}, {"value", estimate(at.ends.value)}, {"bits", rounded(at.budget_bits.mean)}});
  return all;
}

Json measure_data(const Study& study, std::size_t measure, const ReportOptions& options, std::size_t points) {
  const bool is_given = measure == 0 && options.target.has_value();
  const double target = is_given ? *options.target : default_target(study, measure);
  const MeasureColumn& column = study.columns[measure];
  Json data = {{"name", column.name},
               {"title", column.title.empty() ? column.name : column.title},
               {"share", column.shown == MeasureColumn::Shown::share},
               {"gap", column.shown == MeasureColumn::Shown::gap},
               {"lower", direction_of(study.columns[measure]) == Direction::lower_is_better},
               {"target", rounded(target, 4)},
               {"targetGiven", is_given},
               {"bothWays", both_ways_sentence(study, measure)}};
  data["curves"] = Json::object();
  for (const Against against : kAgainst)
    if (study.knows(against))
      data["curves"][key_of(against)] =
          Json::parse(curves_json(study, against, points, [&](const StudyCell& cell) { return study.traces(cell, measure); }));
  for (const Against against : kCosts)
    if (study.knows(against))
      data["bits"][key_of(against)] = {{"comparisons", comparisons(compare_at_equal_bits(study, measure, against))},
                                       {"shares", comparisons(compare_at_shares(study, measure, against))},
                                       {"finals", finals(study, measure, against)},
                                       {"common", common(study, measure, against, Budget::of_panel)},
                                       {"overLevels", common(study, measure, against, Budget::over_levels)},
                                       {"reach", reach(study, measure, against, target)},
                                       {"sentences", level_sentences(study, measure, against)}};
  return data;
}

// ---- cells and runs ------------------------------------------------------------------------------------------------------------

// Returns the operator's claim from the resolved constants of a run; null if it claims nothing or an old run did not record it.
Json promised(const RunRecord& record, const std::string& name) {
  const auto found = std::ranges::find(record.constants, "promised_" + name, &ResolvedConstant::name);
  return found == record.constants.end() ? Json(nullptr) : rounded(found->value);
}

Json cell_data(const Study& study, const StudyCell& cell) {
  Json data = {{"panel", cell.panel},
               {"method", cell.method},
               {"runs", study.runs_text(cell)},
               {"done", study.all_done(cell)},
               {"zeta", estimate(study.estimate(cell, [](const StudyRun& run) { return run.record.zeta_sq; }))},
               {"totalError", estimate(study.estimate(cell, [](const StudyRun& run) { return run.record.total_error; }))},
               {"density", estimate(study.estimate(cell, [](const StudyRun& run) { return run.mean_density; }))},
               {"kappa", estimate(study.estimate(cell, [](const StudyRun& run) { return run.kappa; }))},
               {"delta", estimate(study.estimate(cell, [](const StudyRun& run) { return run.delta; }))},
               {"omega", estimate(study.estimate(cell, [](const StudyRun& run) { return run.omega; }))}};
  for (const Theories theory : {kMeanGradient, kAverageModel, kTightRate}) {
    const bool has_theorem = !study.theory_traces(cell, theory, false).empty();
    data["theorem"].push_back(has_theorem ? Json(study.runs[cell.runs.front()].theory[theory].theorem) : Json(nullptr));
    data["inExpectation"].push_back(has_theorem && study.runs[cell.runs.front()].theory[theory].in_expectation);
  }
  if (const std::string broken = study.broken(cell); !broken.empty()) data["broken"] = broken;
  if (const std::optional<double> rate = break_even_rate(study, cell)) data["paysBelow"] = rounded(*rate);
  for (const char* name : {"kappa", "delta", "omega"}) data["promised"][name] = promised(study.runs[cell.runs.front()].record, name);
  return data;
}

// Returns a constant of the record; nothing if the record lacks it.
std::optional<double> constant(const RunRecord& record, const std::string& name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? std::nullopt : std::optional(found->value);
}

// Constants of a run's record that show how bits are distributed, listed after its measures: title and name.
constexpr std::array<std::pair<const char*, const char*>, 8> kPayments = {
    {{"catch-up", "bits_down_catch_up"},
     {"bits up of a client, least", "client_bits_up_min"},
     {"bits up of a client, median", "client_bits_up_median"},
     {"bits up of a client, most", "client_bits_up_max"},
     {"bits down of a client, least", "client_bits_down_min"},
     {"bits down of a client, median", "client_bits_down_median"},
     {"bits down of a client, most", "client_bits_down_max"},
     {"share of the bits down, busiest tenth of the clients", "client_bits_down_share_of_busiest_tenth"}}};

// The setup of the runs: lines of name and text, the methods behind the labels, values that tuning found, and the scenario to copy.
Json setup_data(const Study& study) {
  const StudySetup setup = setup_of(study);
  Json data = {{"lines", Json::array()}, {"methods", Json::array()}, {"found", Json::array()}};
  for (const StudySetup::Line& line : setup.lines) data["lines"].push_back({line.name, line.text});
  for (const StudySetup::Line& method : setup.methods) data["methods"].push_back({method.name, method.text});
  for (const StudySetup::Found& one : setup.found) data["found"].push_back({one.panel, one.method, one.key, one.value, one.remark});
  data["scenario"] = common_scenario(study);
  data["citation"] = setup.citation;
  return data;
}

// Returns the mean of the bits that the clients of a method receive in a run.
double mean_bits_down(const Study& study, std::size_t method) {
  double sum = 0;
  std::size_t count = 0;
  for (const StudyCell& cell : study.cells)
    for (const std::size_t run : cell.runs)
      if (cell.method == method) {
        sum += static_cast<double>(study.runs[run].record.bits_down);
        ++count;
      }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

// Adds a note that names the methods that receive the whole model in every round, for which a shorter uplink does not shorten the downlink.
Json notes_data(const Study& study) {
  Json notes = study.notes;
  std::string dense;
  for (std::size_t m = 0; m < study.methods.size(); ++m) {
    bool has_model = false, has_less = false;
    for (const StudyCell& cell : study.cells)
      for (const std::size_t run : cell.runs) {
        if (cell.method != m) continue;
        has_model = has_model || constant(study.runs[run].record, "bits_down_model").has_value();
        has_less = has_less || constant(study.runs[run].record, "bits_down_changes").has_value();
      }
    if (has_model && !has_less) dense += (dense.empty() ? "" : ", ") + study.methods[m] + " (" + human_bits(mean_bits_down(study, m)) + ")";
  }
  const std::size_t baseline = study.references.baseline;
  if (!dense.empty())
    notes.push_back("The server sends the whole model in every round where a step changes every parameter. Bits down, mean of a run: " +
                    dense + "; baseline " + study.methods[baseline] + ": " + human_bits(mean_bits_down(study, baseline)) + ".");
  return notes;
}

// Returns one array per run, in the order of `runColumns`. The place is {panel, method}, or null for a run that a later one replaced.
Json runs_data(const Study& study) {
  std::vector<const StudyCell*> cell_of(study.runs.size(), nullptr);
  for (const StudyCell& cell : study.cells)
    for (const std::size_t run : cell.runs) cell_of[run] = &cell;
  Json all = Json::array();
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const RunRecord& record = study.runs[i].record;
    Json row = {record.run,
                nullptr,
                nullptr,
                record.seed,
                to_string(record.status),
                record.rounds,
                record.bits_up,
                record.bits_down,
                rounded(record.zeta_sq),
                study.runs[i].refused};
    if (cell_of[i] != nullptr) {
      row[1] = cell_of[i]->panel;
      row[2] = cell_of[i]->method;
    }
    for (const RunTrace& trace : study.runs[i].traces) row.push_back(trace.value.empty() ? Json(nullptr) : rounded(trace.value.back()));
    for (const auto& [title, name] : kPayments) {
      const std::optional<double> value = constant(record, name);
      row.push_back(value ? rounded(*value) : Json(nullptr));
    }
    all.push_back(std::move(row));
  }
  return all;
}

Json panels_data(const Study& study) {
  Json all = Json::array();
  for (const Panel& panel : study.panels)
    all.push_back({{"title", panel.title(study.axes.level)}, {"level", panel.level}, {"rest", panel.rest}});
  return all;
}

}  // namespace

std::string report_data(const Study& study, const ReportOptions& options) {
  const std::size_t points = points_per_curve(study, options.most_numbers);
  Json data = {{"names", study.names},
               {"source", study.store.file},
               {"version", FL_VERSION},
               {"methodKey", study.axes.method},
               {"levelKey", study.axes.level},
               {"methods", study.methods},
               {"baseline", study.references.baseline},
               {"notes", notes_data(study)},
               {"setup", setup_data(study)},
               {"panels", panels_data(study)},
               {"resamples", kResamples},
               {"runs", runs_data(study)},
               {"measures", Json::array()},
               {"cells", Json::array()},
               {"window", study.rules.window},
               {"leastEvaluations", kLeastEvaluations},
               {"name", study.name},
               {"isReference", study.references.is_reference},
               {"shares", kShares}};
  for (const StoredStudy& entry : study.store.studies) data["inStore"].push_back({entry.name, entry.num_runs});
  for (std::size_t measure = 0; measure < study.measures.size(); ++measure)
    data["measures"].push_back(measure_data(study, measure, options, points));
  for (const StudyCell& cell : study.cells) data["cells"].push_back(cell_data(study, cell));
  for (const auto& [title, name] : kPayments) data["payments"].push_back(title);
  for (const ChartData& chart : all_chart_data()) {
    if (data.contains(chart.name)) throw Error("the page has data \"" + chart.name + "\" already; a chart's data need another name");
    data[chart.name] = Json::parse(chart.json({study, options, points}));
  }
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fl
