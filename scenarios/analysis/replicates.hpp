// Finds identical runs in a cell. A deterministic run does not depend on its seed, so five such runs are one observation.
//
// Two finished runs are the same if the checksums of their final models, their rounds and bits, their total error and zeta^2 agree. Equal
// losses or accuracies alone are not enough, because different models may classify a test set equally well.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

[[nodiscard]] FL_API bool are_same_run(const RunRecord& a, const RunRecord& b);

// Returns for every run the index of the first identical run, which is its own index if no earlier run is identical.
[[nodiscard]] FL_API std::vector<std::size_t> first_of_same(std::span<const RunRecord* const> runs);

}  // namespace fl
