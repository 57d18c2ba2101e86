#include "scenarios/report/chart_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "fl_core/config/error.hpp"
#include "scenarios/analysis/equal_bits.hpp"

namespace fl {
namespace {

using Json = nlohmann::json;

std::vector<ChartData>& registered_charts() {
  static std::vector<ChartData> charts;
  return charts;
}

Json rounded_number(double value, int digits) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strtod(text, nullptr);
}

// Returns {method, first place on the panel's grid, means and interval ends}. The last point lies at `end`, where the first run ended.
Json line(std::size_t method, const std::vector<CurvePoint>& curve, const std::vector<double>& grid) {
  const auto from = std::ranges::find(grid, curve.front().x) - grid.begin();
  Json y = Json::array(), low = Json::array(), high = Json::array();
  for (const CurvePoint& point : curve) {
    y.push_back(rounded_number(point.y.mean, 4));
    low.push_back(rounded_number(point.y.mean - point.y.half_width, 4));
    high.push_back(rounded_number(point.y.mean + point.y.half_width, 4));
  }
  Json result = {{"m", method}, {"from", from}, {"end", rounded_number(curve.back().x, 6)}, {"y", std::move(y)}};
  if (std::isnan(curve.front().y.half_width)) return result;
  result["lo"] = std::move(low);
  result["hi"] = std::move(high);
  return result;
}

}  // namespace

bool add_chart_data(const ChartData& chart) {
  std::vector<ChartData>& charts = registered_charts();
  const auto place = std::ranges::lower_bound(charts, chart.name, {}, &ChartData::name);
  if (place != charts.end() && place->name == chart.name) throw Error("two charts of the report have data \"" + chart.name + "\"");
  charts.insert(place, chart);
  return true;
}

const std::vector<ChartData>& all_chart_data() { return registered_charts(); }

// Returns a rounded number. The page rounds it again to four digits; with fewer digits here its last digit could differ from the
// terminal's.
std::string number_json(double value, int digits) { return rounded_number(value, digits).dump(); }

std::string curves_json(const Study& study, Against against, std::size_t points, const TracesOf& traces_of) {
  Json panels = Json::array();
  for (const Panel& panel : study.panels) {
    const std::vector<double> grid = curve_grid(study, panel, against, points);
    Json lines = Json::array(), xs = Json::array();
    for (const double x : grid) xs.push_back(rounded_number(x, 6));
    for (const std::size_t index : panel.cells) {
      const std::vector<CurvePoint> curve = mean_curve(traces_of(study.cells[index]), against, grid);
      if (!curve.empty()) lines.push_back(line(study.cells[index].method, curve, grid));
    }
    panels.push_back({{"x", std::move(xs)}, {"lines", std::move(lines)}});
  }
  return panels.dump();
}

}  // namespace fl
