#include "scenarios/experiment/compressed_input.hpp"

#include <algorithm>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

std::string unit_text(const Scenario& scenario, const CompressorSpec& spec) {
  if (spec.unit) return to_string(*spec.unit);
  try {
    const auto local =
        make_part<LocalUpdate<double>>("local_update", scenario.local.kind, scenario.local.options, Device::cpu, Precision::float64);
    return to_string(local->units().front());
  } catch (const Error&) {  // the part belongs to a plug-in that is not loaded
    return "of " + scenario.local.kind;
  }
}

std::string scope_text(const CompressorSpec& spec) {
  if (spec.scope == ScopeKind::bucket) return "bucket of " + std::to_string(spec.bucket);
  return spec.scope == ScopeKind::tensor ? "tensor" : "model";
}

}  // namespace

std::string compressed_input(const Scenario& scenario) {
  const CompressorSpec& spec = scenario.compressor_up("");
  return spec.part.kind == "identity" ? "" : "unit " + unit_text(scenario, spec) + ", scope " + scope_text(spec);
}

std::string differing_inputs(std::span<const std::pair<std::string, std::string>> methods) {
  std::vector<std::string> inputs;
  std::string text;
  for (const auto& [label, input] : methods) {
    if (input.empty() || std::ranges::find(inputs, input) != inputs.end()) continue;
    inputs.push_back(input);
    text += (text.empty() ? "" : ", ") + label + " (" + input + ")";
  }
  return inputs.size() < 2 ? "" : text;
}

}  // namespace fl
