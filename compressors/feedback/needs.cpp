#include "compressors/feedback/needs.hpp"

#include <algorithm>

#include "compressors/feedback/feedback.hpp"

namespace fl {
namespace {

// Returns the units as text, such as "gradient" or "update".
std::string units_text(const std::vector<Unit>& units) {
  std::string text;
  for (const Unit unit : units) text += (text.empty() ? "" : " or ") + ("\"" + std::string(to_string(unit)) + "\"");
  return text;
}

bool has_unit(const FeedbackNeeds& needs, Unit unit) {
  return needs.units.empty() || std::ranges::find(needs.units, unit) != needs.units.end();
}

void check_local_work(const FeedbackNeeds& needs, const FeedbackCombination& combination, Problems& problems) {
  const std::string& name = needs.name;
  const std::string is = ", is \"" + combination.local_update + "\"";
  if (!needs.local_kind.empty() && combination.local_update != needs.local_kind)
    problems.push_back({"local.kind", "feedback '" + name + "' needs local kind \"" + needs.local_kind + "\"" + is});
  else if (needs.subtracts_optimum && !combination.subtracts_optimum)
    problems.push_back({"local.subtract", "feedback '" + name + "' needs subtract = \"optimum\""});
  if (needs.one_vector && combination.channels.size() != 1)
    problems.push_back({"feedback.up.kind", name + " keeps one vector; local kind '" + combination.local_update + "' sends several"});
  if (needs.own_models && !combination.computes_anywhere)
    problems.push_back({"feedback.up.kind", name + "'s clients compute at models of their own, which local kind '" +
                                                combination.local_update + "' does not: use \"sgd\" or \"gradient\""});
  if (!has_unit(needs, combination.unit))
    problems.push_back({"compressor.up.unit", name + " " + needs.units_why + ": unit must be " + units_text(needs.units) + ", is \"" +
                                                  std::string(to_string(combination.unit)) + "\""});
}

// Returns the error text for an operator that does not satisfy the need.
std::string unmet_promise(const FeedbackNeeds& needs, const OperatorNeed& need, const std::string& kind) {
  const std::string of_channel = need.channel.empty() ? "" : " for its channel \"" + need.channel + "\"";
  if (!need.kind.empty())
    return needs.name + " sends messages of '" + need.kind + "'" + of_channel + " alone, not of '" + kind + "': " + need.instead;
  if (need.is == OperatorClass::unbiased)
    return needs.name + " needs an unbiased operator" + of_channel + " (random_k with scaled = true, qsgd, natural), '" + kind +
           "' is not" + (need.instead.empty() ? "" : ": use " + need.instead);
  return needs.name + " around the unscaled unbiased operator '" + kind + "'" + of_channel +
         " diverges: scale it by 1/(1+omega) (scaled = true where it has that, scaled = false for random_k), or use " +
         (need.instead.empty() ? "feedback 'diana'" : need.instead);
}

void check_operators(const FeedbackNeeds& needs, const FeedbackPlan& plan, const FeedbackCombination& combination, Problems& problems) {
  const std::vector<ChannelSpec> channels = channels_of(plan, combination.channels);
  for (std::size_t c = 0; c < std::min(channels.size(), combination.operators.size()); ++c) {
    const OperatorNeed need = need_of_channel(needs, channels[c].name);
    if (!is_met(need, combination.operators[c], combination.contracts[c]))
      problems.push_back({"compressor.up." + (need.channel.empty() ? "" : need.channel + ".") + "kind",
                          unmet_promise(needs, need, combination.operators[c])});
  }
  if (needs.own_messages && combination.num_phases > 1)
    problems.push_back(
        {"compressor.up.kind", needs.name + " needs each client's own message; an operator of several phases only gives their mean"});
  for (const OptionBound& bound : needs.bounds)
    for (const Contract& contract : combination.contracts) {
      if (!contract.omega) continue;
      const double most = 1 / (1 + bound.omegas * *contract.omega);
      if (bound.value <= most * (1 + 1e-12)) continue;
      const std::string formula = "1/(1+" + (bound.omegas == 1 ? "" : std::to_string(bound.omegas) + " ") + "omega)";
      problems.push_back({"feedback.up." + bound.option, "must be at most " + formula + " = " + std::to_string(most) +
                                                             " for this operator, is " + std::to_string(bound.value)});
    }
}

void check_rest(const FeedbackNeeds& needs, const FeedbackCombination& combination, Problems& problems) {
  const std::string& name = needs.name;
  if (needs.every_client && !combination.full_participation)
    problems.push_back({"participation.kind", name + "'s estimate needs every client in every round: use kind = \"full\""});
  if (!needs.all_at_first.empty() && !combination.full_participation)
    problems.push_back(
        {"feedback.up.init", "\"dense\" needs every client in the first round: use full participation, or init = " + needs.all_at_first});
  if (needs.plain_server && !combination.has_plain_server)
    problems.push_back({"server.kind", name +
                                           " needs to know the length of the server's step along its estimate: use kind = \"sgd\" with " +
                                           "momentum = 0, weight_decay = 0 and nesterov not \"code\", is \"" + combination.server + "\""});
  const bool contracts =
      combination.downlink != "identity" && is_met({.is = OperatorClass::contraction}, combination.downlink, combination.downlink_contract);
  if (needs.contracting_downlink && !contracts)
    problems.push_back({"compressor.down.kind", name +
                                                    " sends compressed differences of models down: set [compressor.down] to a "
                                                    "contraction such as top_k, is \"" +
                                                    combination.downlink + "\""});
}

}  // namespace

OperatorNeed need_of_channel(const FeedbackNeeds& needs, const std::string& channel) {
  OperatorNeed found;
  for (const OperatorNeed& need : needs.operators)
    if (need.channel == channel || (need.channel.empty() && found.channel.empty())) found = need;
  return found;
}

bool is_met(const OperatorNeed& need, const std::string& kind, const Contract& contract) {
  if (!need.kind.empty() && kind != need.kind) return false;
  const bool is_bounded = contract.delta || contract.kappa;
  switch (need.is) {
    case OperatorClass::any: return true;
    case OperatorClass::bounded: return is_bounded || !contract.omega || *contract.omega == 0;
    case OperatorClass::contraction: return is_bounded || !contract.omega || *contract.omega < 1;
    case OperatorClass::unbiased: return contract.omega.has_value();
  }
  return true;
}

bool suits_local_work(const FeedbackNeeds& needs, const FeedbackCombination& combination) {
  Problems problems;
  check_local_work(needs, combination, problems);
  return problems.empty();
}

void check_needs(const FeedbackNeeds& needs, const FeedbackPlan& plan, const FeedbackCombination& combination, Problems& problems) {
  check_local_work(needs, combination, problems);
  check_operators(needs, plan, combination, problems);
  check_rest(needs, combination, problems);
}

}  // namespace fl
