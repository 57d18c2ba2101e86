// Data of the operators' section: the fraction of entries that were sent in each round.
#include "scenarios/report/chart_data.hpp"

namespace fl {
namespace {

std::string density_json(const ChartRequest& chart) {
  return curves_json(chart.study, Against::round, chart.points, [&](const StudyCell& cell) { return chart.study.density_traces(cell); });
}

const bool kDensityChart =
    add_chart_data({.name = "density", .json = density_json, .curves_per_cell = [](const Study&) { return std::size_t{1}; }});

}  // namespace
}  // namespace fl
