// Runs of one cell that are one and the same run: seeds enter a deterministic run nowhere, so five of them are one observation.
//
// Two finished runs are the same if the checksums of their final models, their rounds and bits, their total error and zeta^2 agree.
// Equal losses or accuracies alone do not make them so: different models may classify a test set equally well.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

[[nodiscard]] FL_API bool are_same_run(const RunRecord& a, const RunRecord& b);

// Returns for every run the index of the first one that is the same run: its own index if there is none before it.
[[nodiscard]] FL_API std::vector<std::size_t> first_of_same(std::span<const RunRecord* const> runs);

}  // namespace fl
