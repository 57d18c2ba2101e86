// Scenarios that each violate one need of a feedback. They are generated from the needs, so a new need of a feedback is tested
// automatically.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/properties/broken_scenarios.hpp"

namespace fl::test {

// A feedback with an option that adds a need.
struct FeedbackCase {
  std::string name, option = "", value = "";
};

inline std::vector<FeedbackCase> feedback_cases() {
  std::vector<FeedbackCase> cases;
  for (const std::string& name : Registry::instance().names("feedback")) cases.push_back({name});
  cases.push_back({"three_pc", "variant", "v2"});
  cases.push_back({"three_pc", "variant", "lag"});
  cases.push_back({"ef21", "init", "dense"});
  cases.push_back({"econtrol", "init", "dense"});
  return cases;
}

inline FeedbackNeeds needs_of(const FeedbackCase& one) {
  Options options = Registry::instance().default_options("feedback", one.name);
  if (!one.option.empty() && options.schema().find(one.option)->assign(Value{one.value})) throw Error("no value " + one.value);
  return make_part<Feedback<double>>("feedback", one.name, options, Device::cpu, Precision::float64)->needs();
}

// A violation of a need: a setting, and the beginning of the error about it, with its key.
struct BrokenNeed {
  std::string setting, error;
};

inline std::string operator_that_breaks(const OperatorNeed& need) {
  const bool is_broken_by_bias = need.is == OperatorClass::unbiased || !need.kind.empty();
  return is_broken_by_bias ? "{kind='top_k', k=5}" : "{kind='random_k', k=5, scaled=true}";
}

inline void break_local_work(const FeedbackNeeds& needs, std::vector<BrokenNeed>& all) {
  const std::string& name = needs.name;
  const std::string other = needs.local_kind == "gradient" ? "lsvrg" : "gradient";
  if (!needs.local_kind.empty()) all.push_back({"local.kind='" + other + "'", "local.kind: feedback '" + name + "' needs local kind"});
  if (needs.subtracts_optimum) all.push_back({"local.kind='gradient'", "local.subtract: feedback '" + name + "' needs"});
  if (needs.one_vector)
    all.push_back({"local={kind='scaffold', batch=4, learning_rate=0.1}", "feedback.up.kind: " + name + " keeps one vector"});
  if (needs.own_models) all.push_back({"local.kind='lsvrg'", "feedback.up.kind: " + name + "'s clients compute at models of their own"});
  for (const Unit unit : {Unit::gradient, Unit::step, Unit::update})
    if (!needs.units.empty() && std::ranges::find(needs.units, unit) == needs.units.end())
      all.push_back({"compressor.up={kind='top_k', k=5, unit='" + std::string(to_string(unit)) + "'}",
                     "compressor.up.unit: " + name + " " + needs.units_why + ": unit must be "});
}

inline std::vector<BrokenNeed> broken_needs(const FeedbackNeeds& needs) {
  const std::string &name = needs.name, part = "participation={kind='uniform', clients=2}";
  std::vector<BrokenNeed> all;
  break_local_work(needs, all);
  if (needs.own_messages)
    all.push_back(
        {"compressor.up={kind='sketched_sgd', k=3, rows=3, columns=20}", "compressor.up.kind: " + name + " needs each client's own"});
  for (const OperatorNeed& need : needs.operators) {
    const std::string table = "compressor.up" + (need.channel.empty() ? "" : "." + need.channel);
    all.push_back({table + "=" + operator_that_breaks(need), table + ".kind: " + name + " "});
  }
  for (const OptionBound& bound : needs.bounds)
    all.push_back({"feedback.up." + bound.option + "=1.0", "feedback.up." + bound.option + ": must be at most 1/(1+"});
  if (needs.every_client) all.push_back({part, "participation.kind: " + name + "'s estimate needs every client"});
  if (!needs.all_at_first.empty()) all.push_back({part, "feedback.up.init: \"dense\" needs every client"});
  if (needs.plain_server) all.push_back({"server={kind='sgd', momentum=0.5}", "server.kind: " + name + " needs to know"});
  if (needs.contracting_downlink) all.push_back({"compressor.down={kind='identity'}", "compressor.down.kind: " + name + " sends"});
  if (needs.keeps_error) all.push_back({"compressor.up={kind='variance_based'}", "feedback.up.kind: 'variance_based' under feedback"});
  return all;
}

// Returns settings with which a feedback runs: local work and operators that it can be combined with.
inline std::vector<std::string> settings_of(const FeedbackCase& one, const FeedbackNeeds& needs) {
  std::vector<std::string> settings = {"feedback.up.kind='" + one.name + "'"};
  if (!one.option.empty()) settings.push_back("feedback.up." + one.option + "='" + one.value + "'");
  if (!needs.local_kind.empty()) settings.push_back("local.kind='" + needs.local_kind + "'");
  const bool is_update = !needs.units.empty() && needs.units.front() == Unit::update;
  if (is_update) settings.push_back("local={kind='sgd', batch=4, learning_rate=0.1}");
  const bool is_unbiased = need_of_channel(needs, "").is == OperatorClass::unbiased;
  settings.push_back(is_unbiased ? "compressor.up={kind='random_k', k=20, scaled=true}" : "compressor.up={kind='identity'}");
  if (!needs.units.empty()) settings.push_back("compressor.up.unit='" + std::string(to_string(needs.units.front())) + "'");
  return settings;
}

inline std::vector<BrokenCase> feedback_contradictions(const Tables& base) {
  std::vector<BrokenCase> cases;
  for (const FeedbackCase& one : feedback_cases()) {
    const FeedbackNeeds needs = needs_of(one);
    for (const BrokenNeed& broken : broken_needs(needs)) {
      std::vector<std::string> settings = settings_of(one, needs);
      settings.push_back(broken.setting);
      const std::string name = one.name + (one.option.empty() ? "" : " with " + one.option + " = " + one.value);
      cases.push_back({"feedback " + name + " and " + broken.setting, text_of(base), {broken.error}, "", settings});
    }
  }
  return cases;
}

}  // namespace fl::test
