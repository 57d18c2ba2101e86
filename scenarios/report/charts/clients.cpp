// Data of the clients' accuracies: a set of curves for each column of kClientBand.
#include <algorithm>

#include "scenarios/report/chart_data.hpp"

namespace fl {
namespace {

std::string clients_json(const ChartRequest& chart) {
  std::string all;
  for (std::size_t column = 0; column < kClientBand.size(); ++column)
    all += (all.empty() ? "[" : ",") + curves_json(chart.study, Against::round, chart.points,
                                                   [&](const StudyCell& cell) { return chart.study.client_traces(cell, column); });
  return all + "]";
}

std::size_t client_curves(const Study& study) {
  const auto has_clients = [](const StudyRun& run) { return !run.clients.front().value.empty(); };
  return std::ranges::any_of(study.runs, has_clients) ? kClientBand.size() : 0;
}

const bool kClientsChart = add_chart_data({.name = "clients", .json = clients_json, .curves_per_cell = client_curves});

}  // namespace
}  // namespace fl
