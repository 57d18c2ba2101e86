// Constants that the runs of a study record about their tuning: a reader needs them in order to judge the values that were found.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/results/run_record.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl {

// Adds how the value was found: the number of candidates and the values that were tried, or by how much matched bits differ.
void record_tuned(const TunedOption& tuned, std::vector<ResolvedConstant>& found);
// Adds by what candidates were compared, and on which seeds.
void record_tuning(const TuneSettings& settings, std::uint64_t first_seed, std::vector<ResolvedConstant>& found);

}  // namespace fl
