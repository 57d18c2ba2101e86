// Registers chart-specific data of the report's page. A chart has two files: scenarios/report/charts/NAME.cpp makes its data as JSON, and
// scenarios/report/page/sections/NAME.js draws them. A chart that uses only data already on the page needs only the second file.
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
  std::size_t points;  // maximum number per curve
};

struct ChartData {
  std::string name;                            // DATA[name] on the page
  std::string (*json)(const ChartRequest&){};  // the data; "null" if the study has none
  // Returns the number of curves that the chart draws per cell; it limits the points of all curves. null: no curves.
  std::size_t (*curves_per_cell)(const Study&) = nullptr;
};

// Registers the data of a chart. The chart's file calls it before main. Throws Error if the name is taken.
FL_API bool add_chart_data(const ChartData& chart);
// Returns the data of all charts, sorted by name.
[[nodiscard]] FL_API const std::vector<ChartData>& all_chart_data();

// Returns a number with as many significant digits as a chart can show; null if unknown; "inf" for a time that was never reached.
[[nodiscard]] FL_API std::string number_json(double value, int digits = 7);

using TracesOf = std::function<std::vector<const RunTrace*>(const StudyCell&)>;
// Returns for each panel {"x": its grid, "lines": [a mean curve for each cell that has traces]}, the format of curveFigures() in charts.js.
[[nodiscard]] FL_API std::string curves_json(const Study& study, Against against, std::size_t points, const TracesOf& traces_of);

}  // namespace fl
