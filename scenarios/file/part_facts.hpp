// Facts about parts, such as the promise of a compressor and the needs of a feedback, found by asking the parts themselves.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the compressor's promise for 1,000 parameters, 40 x 25, with the default options: "contraction, delta = 0.01; ..." or "none".
// Returns "" if the options have no usable defaults.
[[nodiscard]] FL_API std::string promise_of_compressor(const std::string& name);

// Returns its message for 1,000 normal float32 numbers in round 1: "positions and raw values, 435 bits"; several phases with "then".
[[nodiscard]] FL_API std::string message_of_compressor(const std::string& name);

// Returns the lines under a feedback's name: operators, units, local updates, and its other requirements.
[[nodiscard]] FL_API std::vector<std::string> needs_of_feedback(const std::string& name);

// Returns the lines under a measure's name: when it is due, what it costs, and its columns with unit and definition.
[[nodiscard]] FL_API std::vector<std::string> facts_of_measure(const std::string& name);

// Returns what a run with --device cuda does with the part and its default options: "stays on the GPU", or what the host does. Empty for a
// role that is not asked: only compressors, feedbacks, layers and local updates are (tells_of_gpu).
[[nodiscard]] FL_API std::string on_gpu(const std::string& role, const std::string& name);
[[nodiscard]] FL_API bool tells_of_gpu(const std::string& role);

// Returns a line that names the part in a scenario, with a few of its options and all that it requires:
// `compressor.up = { kind = "top_k", ratio = 0.01 }`, and of a layer `model = { kind = "neural_network", layers = ["relu"] }`.
[[nodiscard]] FL_API std::string example_of_part(const std::string& role, const std::string& name);

// Returns the keys that stand in a part's table beside its own options: `bucket, exclude, scope, unit in [compressor.up] (...)`. Empty for
// a role without such keys.
[[nodiscard]] FL_API std::string keys_beside_options(const std::string& role);

}  // namespace fl
