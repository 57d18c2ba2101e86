// Slopes of a contrast by seed, their tests, and the reasons for no claim (contrasts.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/analysis/contrasts.hpp"

namespace fl {

// The slope of one seed.
struct SeedSlope {
  double value = kNotMeasured;
  std::string why{};                      // reason why the seed has no slope; "" for a seed that has one
  std::size_t num_capped = 0;             // values that count as the initial model's
  std::vector<std::size_t> identity{};    // indices of the distinct runs; seeds with equal lists gave the same runs
  std::vector<const PairedRun*> pairs{};  // one per level
};

// Returns the slopes of a pair of methods in a group by seed. Seeds without a slope say why.
[[nodiscard]] std::map<std::uint64_t, SeedSlope> slopes_by_seed(const Study& study, const Contrasts& contrasts, std::size_t pair,
                                                                std::size_t group);

// Returns the indices of the runs of some pairs, where identical runs of a cell have the index of the first one.
[[nodiscard]] std::vector<std::size_t> identity_of(const std::vector<std::size_t>& first, std::span<const PairedRun* const> pairs);

// Adds the slope of a seed, or counts the seed as left out.
void add_seed(SlopeContrast& contrast, std::uint64_t seed, const SeedSlope& slope);

// Tests the slopes against zero. Sets the reason for no claim where one is known before the correction; `all` are the pairs of runs.
void test_slopes(SlopeContrast& contrast, const Study& study, const std::vector<const PairedRun*>& all);

// Returns the reason why nothing is claimed from runs with refused updates or few evaluations; "" if nothing speaks against a claim.
[[nodiscard]] std::string why_of_runs(const Study& study, const std::vector<const PairedRun*>& all);

// Adjusts the p-values of a family by Holm's rule and sets the verdicts. Contrasts with fewer than two slopes have no test and do not
// count.
void correct_slopes(std::span<SlopeContrast* const> contrasts, SlopeTest test, Direction direction);

}  // namespace fl
