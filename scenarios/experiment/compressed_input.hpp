// Describes the input that each method of a comparison compresses. A threshold or a step size has another meaning for a gradient than for a
// step, and Top-k of a whole model keeps other entries than Top-k of each tensor.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "fl_core/config/device.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// Returns the unit and the scope of clients' messages, such as "unit step, scope model". If the scenario does not set a unit, the local
// update's unit counts. Returns "" for an identity, because neither unit nor scope affects it.
[[nodiscard]] FL_API std::string compressed_input(const Scenario& scenario);

// Returns "top-1% (unit step, scope model), hard (unit gradient, scope model)", one method of each kind, if the methods differ; else "".
// Each method is given as its label and its compressed_input().
[[nodiscard]] FL_API std::string differing_inputs(std::span<const std::pair<std::string, std::string>> methods);

}  // namespace fl
