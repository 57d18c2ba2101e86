#include "apps/fedbits/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/analysis/grid.hpp"
#include "scenarios/analysis/idle_axes.hpp"
#include "scenarios/analysis/missing_minima.hpp"
#include "scenarios/analysis/replicates.hpp"
#include "scenarios/analysis/statistics.hpp"
#include "scenarios/results/broken_contracts.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

constexpr const char* kNoValue = "-";

std::optional<double RunRecord::*> measure_member(const std::string& name) {
  for (const RunColumn& column : kRunColumns)
    if (column.name == name && std::holds_alternative<double RunRecord::*>(column.member))
      return std::get<double RunRecord::*>(column.member);
  return std::nullopt;
}

std::string mean_text(const GridCell& cell, double RunRecord::*member) {
  const std::vector<std::size_t> first = first_of_same(cell.runs);
  std::vector<double> values;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] == i) values.push_back(cell.runs[i]->*member);
  const MeanAndHalfWidth result = mean_and_half_width(values);
  return plus_minus(result.mean, result.half_width);
}

std::string mean_bits(const GridCell& cell, std::uint64_t RunRecord::*member) {
  double sum = 0;
  for (const RunRecord* run : cell.runs) sum += static_cast<double>(run->*member);
  return human_bits(sum / static_cast<double>(cell.runs.size()));
}

// Returns the cell that differs from `cell` in the baseline's label only.
const GridCell* baseline_of(const Grid& grid, const GridCell& cell, std::size_t axis, const std::string& baseline) {
  std::vector<std::string> labels = cell.labels;
  labels[axis] = baseline;
  const auto found = std::ranges::find(grid.cells, labels, &GridCell::labels);
  return found == grid.cells.end() ? nullptr : &*found;
}

// Returns the mean of bits(baseline) / bits(cell) over the seeds that both have, as text.
std::string fewer_bits(const GridCell& cell, const GridCell* baseline) {
  if (baseline == nullptr || !baseline->all_done()) return kNoValue;
  std::vector<double> ratios;
  for (const RunRecord* run : cell.runs)
    for (const RunRecord* other : baseline->runs)
      if (run->seed == other->seed && run->bits_up > 0)
        ratios.push_back(static_cast<double>(other->bits_up) / static_cast<double>(run->bits_up));
  const MeanAndHalfWidth ratio = mean_and_half_width(ratios);
  return std::isnan(ratio.mean) ? kNoValue : short_text(ratio.mean) + "x";
}

// Returns the simulated time at which a run ended; no value if it had no clock.
std::optional<double> simulated_s(const RunRecord& record) {
  const auto found = std::ranges::find(record.constants, "simulated_s", &ResolvedConstant::name);
  return found == record.constants.end() ? std::nullopt : std::optional(found->value);
}

std::string mean_time(const GridCell& cell) {
  double sum = 0;
  for (const RunRecord* run : cell.runs) sum += simulated_s(*run).value_or(kNotMeasured);
  const double mean = sum / static_cast<double>(cell.runs.size());
  return std::isnan(mean) ? "-" : short_text(mean) + " s";
}

// Adds the labels of a row. Leading labels that equal those of the row above are left out, except for the last label.
void add_labels(std::vector<std::string>& row, const GridCell& cell, const GridCell* above) {
  bool same = above != nullptr;
  for (std::size_t axis = 0; axis < cell.labels.size(); ++axis) {
    same = same && axis + 1 < cell.labels.size() && above->labels[axis] == cell.labels[axis];
    row.push_back(same ? "" : shown_label(cell.labels[axis]));
  }
}

}  // namespace

std::string comparison_note(const std::string& folder) {
  return "\nmeans over the distinct runs of the values measured last, with 95% intervals over the seeds; -v prints every run with its "
         "hash\n"
         "the results lie in " +
         folder + "; `fedbits report " + folder + " -o report.html` compares methods at equal bits\n";
}

std::string contracts_note(const std::vector<RunRecord>& records) {
  std::string text;
  const Grid grid = group_by_axes(records);
  for (const GridCell& cell : grid.cells) {
    const std::string broken = broken_text(cell.runs);
    if (broken.empty()) continue;
    for (std::size_t axis = 0; axis < grid.keys.size(); ++axis)
      text += one_line(grid.keys[axis]) + "=" + shown_label(cell.labels[axis]) + "  ";
    text += broken + "\n";
  }
  return text;
}

std::string idle_axes_note(const std::vector<RunRecord>& records) {
  std::string text;
  for (const std::string& sentence : idle_axes(group_by_axes(records))) text += one_line(sentence) + "\n";
  return text;
}

std::string missing_minima_note(const std::vector<RunRecord>& records) {
  const std::string sentence = missing_minima(records);
  return sentence.empty() ? "" : sentence + "\n";
}

Table comparison_table(const std::vector<RunRecord>& records, const ComparisonOptions& options) {
  Table table;
  const Grid grid = group_by_axes(records);
  const std::optional<std::size_t> axis = axis_with_label(grid, options.baseline);
  std::vector<double RunRecord::*> members;

  for (const std::string& key : grid.keys) table.columns.push_back({one_line(key), Align::left});
  table.columns.push_back({"runs", Align::right});
  for (const std::string& name : options.measures) {
    const std::optional<double RunRecord::*> member = measure_member(name);
    const auto has_it = [&](const RunRecord& run) { return !std::isnan(run.**member); };
    if (!member || !std::ranges::any_of(records, has_it)) continue;
    members.push_back(*member);
    table.columns.push_back({name, Align::right});
  }
  const bool is_timed = std::ranges::any_of(records, [](const RunRecord& run) { return simulated_s(run).has_value(); });
  table.columns.push_back({"bits up", Align::right});
  table.columns.push_back({"bits down", Align::right});
  if (axis) table.columns.push_back({"fewer up", Align::right});
  if (is_timed) table.columns.push_back({"simulated", Align::right});

  const GridCell* above = nullptr;
  for (const GridCell& cell : grid.cells) {
    // Adds a blank line if the first of several labels changes.
    if (above != nullptr && grid.keys.size() > 1 && above->labels[0] != cell.labels[0]) table.rows.emplace_back();
    std::vector<std::string>& row = table.rows.emplace_back();
    add_labels(row, cell, above);
    above = &cell;
    row.push_back(runs_text(cell));
    if (!cell.all_done()) continue;
    for (double RunRecord::*member : members) row.push_back(mean_text(cell, member));
    row.push_back(mean_bits(cell, &RunRecord::bits_up));
    row.push_back(mean_bits(cell, &RunRecord::bits_down));
    if (axis) row.push_back(fewer_bits(cell, baseline_of(grid, cell, *axis, options.baseline)));
    if (is_timed) row.push_back(mean_time(cell));
  }
  return table;
}

}  // namespace fl
