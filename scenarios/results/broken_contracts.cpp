#include "scenarios/results/broken_contracts.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace fl {
namespace {

std::optional<double> constant_named(const RunRecord& record, const std::string& name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? std::nullopt : std::optional(found->value);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

const char* to_string(Claim claim) {
  switch (claim) {
    case Claim::kappa: return "kappa";
    case Claim::delta: return "delta";
    case Claim::omega: return "omega";
  }
  return "kappa";
}

void record_broken(const BrokenContract& broken, std::vector<ResolvedConstant>& constants) {
  const std::string name = std::string("broken_") + to_string(broken.claim);
  constants.push_back({name + "_round", static_cast<double>(broken.round)});
  if (broken.since > 0) constants.push_back({name + "_since", static_cast<double>(broken.since)});
  constants.push_back({name + "_measured", broken.measured});
  constants.push_back({name + "_stated", broken.stated});
  if (broken.has_domain) constants.push_back({name + "_has_domain", 1.0});
}

std::vector<BrokenContract> broken_contracts(const RunRecord& record) {
  std::vector<BrokenContract> all;
  for (std::uint32_t c = 0; c < kNumClaims; ++c) {
    const auto claim = static_cast<Claim>(c);
    const std::string name = std::string("broken_") + to_string(claim);
    const std::optional<double> round = constant_named(record, name + "_round");
    if (!round) continue;
    all.push_back({.claim = claim,
                   .round = static_cast<std::uint64_t>(*round),
                   .since = static_cast<std::uint64_t>(constant_named(record, name + "_since").value_or(0)),
                   .measured = constant_named(record, name + "_measured").value_or(kNotMeasured),
                   .stated = constant_named(record, name + "_stated").value_or(kNotMeasured),
                   .has_domain = constant_named(record, name + "_has_domain").has_value()});
  }
  return all;
}

std::string to_string(const BrokenContract& broken) {
  std::string text = std::string(to_string(broken.claim)) + " " + number(broken.measured);
  const std::string round = std::to_string(broken.round);
  if (broken.since == 0 || broken.since == broken.round)
    text += (broken.since == 0 ? " in round " : " as the mean of round ") + round;
  else
    text += " as the mean of rounds " + std::to_string(broken.since) + " to " + round;
  text += ", stated " + number(broken.stated);
  if (broken.has_domain) text += " for inputs of a domain (the operator's contract names it)";
  return text;
}

std::string broken_text(std::span<const RunRecord* const> runs) {
  std::size_t num_broken = 0;
  std::string first;
  for (const RunRecord* run : runs) {
    const std::vector<BrokenContract> broken = broken_contracts(*run);
    if (broken.empty()) continue;
    if (num_broken++ > 0) continue;
    if (runs.size() > 1) first = "seed " + std::to_string(run->seed) + ": ";
    for (std::size_t i = 0; i < broken.size(); ++i) first += (i == 0 ? "" : "; ") + to_string(broken[i]);
  }
  if (num_broken == 0) return "";
  if (runs.size() == 1) return "contract broken: " + first;
  return "contract broken in " + std::to_string(num_broken) + " of " + std::to_string(runs.size()) + " runs; " + first;
}

}  // namespace fl
