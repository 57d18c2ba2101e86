// Pairs the runs of two methods over levels and seeds, with their end points and the zeta^2 of their splits (contrasts.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "scenarios/analysis/contrasts.hpp"

namespace fl {

// Returns zeta^2 at x* of a run's split (the constant zeta_sq_at_optimum); NaN if f* was not known.
[[nodiscard]] double zeta_at_optimum(const RunRecord& record);

// Returns for each run of the study the index of the first run of its cell that is identical to it (replicates.hpp).
[[nodiscard]] std::vector<std::size_t> first_of_runs(const Study& study);

// Adds a PairedRun for each pair, group, level and seed that both methods have. Reads pairs, groups, levels, heterogeneity and
// is_log_ratio.
void pair_runs(Contrasts& contrasts, const Study& study, std::size_t measure, Against against, std::optional<double> chance);

}  // namespace fl
