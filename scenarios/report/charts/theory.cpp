// Data of convergence theorems: [measured, bound] for the mean squared gradient, for the average model and for f - f* under a tight step.
#include "scenarios/report/chart_data.hpp"

namespace fl {
namespace {

std::string theory_json(const ChartRequest& chart) {
  const auto curves = [&](Theories theory, bool bound) {
    return curves_json(chart.study, Against::round, chart.points,
                       [&](const StudyCell& cell) { return chart.study.theory_traces(cell, theory, bound); });
  };
  const auto pair = [&](Theories theory) { return "[" + curves(theory, false) + "," + curves(theory, true) + "]"; };
  return "[" + pair(kMeanGradient) + "," + pair(kAverageModel) + "," + pair(kTightRate) + "]";
}

const bool kTheoryChart = add_chart_data({.name = "theory", .json = theory_json});

}  // namespace
}  // namespace fl
