// What the methods of a comparison compress: a threshold or a step size means another thing for a gradient than for a step, and Top-k of a
// whole model keeps other entries than Top-k of each tensor.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "fl_core/config/device.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// Returns the unit and the scope of what clients send, such as "unit step, scope model"; a unit that the scenario leaves open is that of
// its local update. "" for an identity, which neither of them concerns.
[[nodiscard]] FL_API std::string compressed_input(const Scenario& scenario);

// Returns "top-1% (unit step, scope model), hard (unit gradient, scope model)", one method of each kind, where the methods differ; else "".
// Each method is its label and its compressed_input().
[[nodiscard]] FL_API std::string differing_inputs(std::span<const std::pair<std::string, std::string>> methods);

}  // namespace fl
