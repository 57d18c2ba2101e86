// Data of the distribution of rows over clients: a count per client and class for each split of the study.
#include <nlohmann/json.hpp>

#include "scenarios/report/chart_data.hpp"

namespace fl {
namespace {

std::string splits_json(const ChartRequest& chart) {
  nlohmann::json all = nlohmann::json::array();
  for (const SplitPicture& picture : chart.options.splits)
    all.push_back({{"panels", picture.panels},
                   {"seed", picture.seed},
                   {"clients", picture.num_clients},
                   {"classes", picture.classes},
                   {"rows", picture.rows},
                   {"missing", picture.missing}});
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const bool kSplitsChart = add_chart_data({.name = "splits", .json = splits_json});

}  // namespace
}  // namespace fl
