// Data of the contrasts: the slopes of each family (a measure at one kind of bits), and the tests of the margin.
#include <cmath>
#include <nlohmann/json.hpp>

#include "fl_core/config/error.hpp"
#include "scenarios/report/chart_data.hpp"

namespace fl {
namespace {

using Json = nlohmann::json;

Json json_number(double value, int digits = 7) { return Json::parse(number_json(value, digits)); }

Json slope_data(const Contrasts& contrasts, const SlopeContrast& slope) {
  return {{"a", contrasts.pairs[slope.pair].a},
          {"b", contrasts.pairs[slope.pair].b},
          {"group", contrasts.groups[slope.group]},
          {"n", slope.slopes.size()},
          {"mean", json_number(slope.slope.mean)},
          {"t", Json::array({json_number(slope.slope.student.low), json_number(slope.slope.student.high)})},
          {"p", json_number(slope.p_value, 4)},
          {"holm", json_number(slope.p_holm, 4)},
          {"flip", json_number(slope.p_flip, 4)},
          {"flipHolm", json_number(slope.p_flip_holm, 4)},
          {"capped", slope.num_capped},
          {"verdict", to_string(slope.verdict)},
          {"why", slope.why}};
}

Json difference_data(const Contrasts& contrasts, const SlopeDifference& one) {
  Json data = slope_data(contrasts, one.contrast);
  data["otherGroup"] = contrasts.groups[one.other_group];
  return data;
}

Json margin_data(const Contrasts& contrasts, const MarginContrast& one) {
  const bool is_ratio = contrasts.margin->is_ratio;
  const auto in_units = [is_ratio](double difference) { return json_number(is_ratio ? std::exp(difference) : 100 * difference); };
  return {{"a", contrasts.pairs[one.pair].a},
          {"b", contrasts.pairs[one.pair].b},
          {"group", contrasts.groups[one.group]},
          {"n", one.difference.count},
          {"mean", in_units(one.difference.mean)},
          {"t", Json::array({in_units(one.difference.student.low), in_units(one.difference.student.high)})},
          {"pNonInferior", json_number(one.p_non_inferior_adjusted, 4)},
          {"pSuperior", json_number(one.p_superior_adjusted, 4)},
          {"result", to_string(one.result)},
          {"why", one.why}};
}

Json family_data(const Contrasts& contrasts) {
  Json data = {{"heterogeneity", to_string(contrasts.heterogeneity)},
               {"levels", contrasts.levels},
               {"isLogRatio", contrasts.is_log_ratio},
               {"test", contrasts.test == SlopeTest::student ? "t test" : "sign-flip test"},
               {"slopes", Json::array()},
               {"differences", Json::array()},
               {"margins", Json::array()}};
  for (const SlopeContrast& slope : contrasts.slopes) data["slopes"].push_back(slope_data(contrasts, slope));
  for (const SlopeDifference& one : contrasts.slope_differences) data["differences"].push_back(difference_data(contrasts, one));
  if (!contrasts.margin) return data;
  data["margin"] = contrasts.margin->text;
  for (const MarginContrast& one : contrasts.margins) data["margins"].push_back(margin_data(contrasts, one));
  return data;
}

Json all_families(const ChartRequest& chart) {
  const ContrastOptions& options = chart.options.contrasts;
  Json data = {{"classes", options.classes}, {"families", Json::array()}};
  for (std::size_t measure = 0; measure < chart.study.measures.size(); ++measure)
    data["families"].push_back({{"up", family_data(contrast_methods(chart.study, measure, Against::bits_up, options))},
                                {"both", family_data(contrast_methods(chart.study, measure, Against::bits_both, options))}});
  return data;
}

// Returns {classes, families: [measure] {up, both}}; null without contrasts, and for a study that lacks their methods or levels.
std::string contrasts_json(const ChartRequest& chart) {
  if (chart.options.contrasts.contrasts.empty()) return "null";
  try {
    return all_families(chart).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const ConfigError&) {
    return "null";
  }
}

const bool kContrastsChart = add_chart_data({.name = "contrasts", .json = contrasts_json});

}  // namespace
}  // namespace fl
