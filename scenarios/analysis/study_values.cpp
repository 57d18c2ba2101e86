// Queries on a study that has been read: its cells, its traces and the curves of its panels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "scenarios/analysis/grid.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/analysis/tuning_notes.hpp"
#include "scenarios/results/broken_contracts.hpp"

namespace fl {
namespace {

// Returns one trace per distinct run; empty for a cell with unfinished runs or with a run that was never measured.
template <class Get>
std::vector<const RunTrace*> traces_of(const Study& study, const StudyCell& cell, Get get) {
  std::vector<const RunTrace*> traces;
  for (const std::size_t run : cell.distinct()) traces.push_back(get(study.runs[run]));
  const bool measured = std::ranges::none_of(traces, [](const RunTrace* trace) { return trace->value.empty(); });
  return measured && study.all_done(cell) ? traces : std::vector<const RunTrace*>{};
}

}  // namespace

std::string Panel::title(const std::string& level_key) const {
  std::string text = level.empty() ? "" : level_key + " = " + level;
  if (!rest.empty()) text += (text.empty() ? "" : ", ") + rest;
  return text.empty() ? "all runs" : text;
}

std::vector<std::size_t> StudyCell::distinct() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (first[i] == i) indices.push_back(runs[i]);
  return indices;
}

bool Study::knows(Against against) const {
  return std::ranges::all_of(runs, [&](const StudyRun& run) {
    return std::ranges::all_of(run.traces, [&](const RunTrace& trace) { return trace.knows(against); });
  });
}

bool Study::all_done(const StudyCell& cell) const {
  return std::ranges::all_of(cell.runs, [this](std::size_t run) { return runs[run].is_done(); });
}

std::string Study::runs_text(const StudyCell& cell) const {
  GridCell counted;
  for (const std::size_t run : cell.runs) counted.runs.push_back(&runs[run].record);
  std::string text = fl::runs_text(counted);
  if (const std::uint64_t count = refused(cell); count > 0) text += ", " + std::to_string(count) + " updates refused";
  if (const std::string unmatched = cell.runs.empty() ? "" : unmatched_text(runs[cell.runs.front()].record); !unmatched.empty())
    text += ", " + unmatched;
  return text;
}

std::string Study::broken(const StudyCell& cell) const {
  std::vector<const RunRecord*> records;
  for (const std::size_t run : cell.runs) records.push_back(&runs[run].record);
  return broken_text(records);
}

std::uint64_t Study::refused(const StudyCell& cell) const {
  std::uint64_t count = 0;
  for (const std::size_t run : cell.runs) count += runs[run].refused;
  return count;
}

const StudyCell* Study::find(const Panel& panel, std::size_t method) const {
  const auto found = std::ranges::find(panel.cells, method, [this](std::size_t cell) { return cells[cell].method; });
  return found == panel.cells.end() ? nullptr : &cells[*found];
}

Estimate Study::estimate(const StudyCell& cell, double (*number)(const StudyRun&)) const {
  std::vector<double> values;
  for (const std::size_t run : cell.distinct()) values.push_back(runs[run].is_done() ? number(runs[run]) : kNotMeasured);
  return estimate_mean(values);
}

std::vector<const RunTrace*> Study::traces(const StudyCell& cell, std::size_t measure) const {
  return traces_of(*this, cell, [measure](const StudyRun& run) { return &run.traces[measure]; });
}

std::vector<const RunTrace*> Study::density_traces(const StudyCell& cell) const {
  return traces_of(*this, cell, [](const StudyRun& run) { return &run.density; });
}

std::vector<const RunTrace*> Study::client_traces(const StudyCell& cell, std::size_t column) const {
  return traces_of(*this, cell, [column](const StudyRun& run) { return &run.clients[column]; });
}

std::vector<const RunTrace*> Study::theory_traces(const StudyCell& cell, Theories theory, bool bound) const {
  const int theorem = runs[cell.runs.front()].theory[theory].theorem;
  const bool alike = std::ranges::all_of(cell.runs, [&](std::size_t run) { return runs[run].theory[theory].theorem == theorem; });
  if (theorem == 0 || !alike) return {};
  return traces_of(*this, cell, [=](const StudyRun& run) { return bound ? &run.theory[theory].bound : &run.theory[theory].measured; });
}

std::vector<CurvePoint> mean_curve(std::span<const RunTrace* const> traces, Against against, const std::vector<double>& grid) {
  std::vector<CurvePoint> curve;
  if (traces.empty()) return curve;
  const double end = std::ranges::min(traces, {}, [&](const RunTrace* trace) { return trace->end_of(against); })->end_of(against);
  std::vector<double> values(traces.size());
  const auto add = [&](double x) {
    for (std::size_t i = 0; i < traces.size(); ++i) values[i] = traces[i]->value_at(against, x);
    if (std::ranges::none_of(values, [](double value) { return std::isnan(value); })) curve.push_back({x, mean_and_half_width(values)});
  };
  for (const double x : grid)
    if (x < end) add(x);
  add(end);
  return curve;
}

std::vector<double> curve_grid(const Study& study, const Panel& panel, Against against, std::size_t points) {
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (const std::size_t cell : panel.cells)
    for (const std::size_t run : study.cells[cell].runs)
      for (const RunTrace& trace : study.runs[run].traces) {
        last = std::max(last, trace.end_of(against));
        for (const double x : trace.places(against))
          if (x > 0) {
            first = std::min(first, x);
            break;
          }
      }
  std::vector<double> grid;
  if (!(last > 0)) return grid;
  first = std::min(first, last);
  for (std::size_t i = 0; i < points; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(points - 1, 1));
    grid.push_back(against == Against::round ? std::floor(share * last) : first * std::pow(last / first, share));
  }
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

}  // namespace fl
