// Data of the page that are one chart's own. A chart is two files: scenarios/report/charts/NAME.cpp makes its data as JSON, and
// scenarios/report/page/sections/NAME.js draws them. A chart of data that the page has already is the second file alone.
//
//   std::string fairness(const ChartRequest& chart) { return curves_json(chart.study, Against::round, chart.points, ...); }
//   const bool kFairness = add_chart_data({.name = "fairness", .json = fairness});
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/report/report.hpp"

namespace fl {

struct ChartRequest {
  const Study& study;
  const ReportOptions& options;
  std::size_t points;  // of a curve, at most
};

struct ChartData {
  std::string name;                            // DATA[name] on the page
  std::string (*json)(const ChartRequest&){};  // the data; "null" where the study has none
  // How many curves it draws of a cell, by which the points of all curves are bounded; null: none.
  std::size_t (*curves_per_cell)(const Study&) = nullptr;
};

// Registers the data of a chart. Called before main by the chart's file. Throws Error for a name that is taken.
FL_API bool add_chart_data(const ChartData& chart);
// Returns all of them, by name.
[[nodiscard]] FL_API const std::vector<ChartData>& all_chart_data();

// Returns a number with as many significant digits as a chart can show; null when unknown; "inf" for a time that was never reached.
[[nodiscard]] FL_API std::string number_json(double value, int digits = 7);

using TracesOf = std::function<std::vector<const RunTrace*>(const StudyCell&)>;
// Returns for each panel {"x": its grid, "lines": [a mean curve for each cell that has traces]}, as curveFigures() in charts.js draws them.
[[nodiscard]] FL_API std::string curves_json(const Study& study, Against against, std::size_t points, const TracesOf& traces_of);

}  // namespace fl
