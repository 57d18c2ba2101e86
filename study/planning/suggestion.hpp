// The result of `fedbits suggest`: the numbers that convert between the k of Top-k and the threshold of the hard threshold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/equivalent_threshold.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/sweep/measured_threshold.hpp"

namespace fl {

struct SuggestArguments {
  std::optional<ScenarioText> text{};  // a scenario in the place of the file
  std::string file{}, data{};
  std::vector<std::string> settings{}, plugins{};
  std::optional<double> k{}, ratio{}, lambda{}, epsilon{}, d{}, gamma{}, zeta{};
  std::optional<std::int64_t> rounds{};  // of the short measuring runs
  NoiseAndSpread noise{};

  // Returns the number of entries that Top-k keeps; nothing if it is not asked about. A ratio needs d.
  [[nodiscard]] std::optional<double> entries() const {
    if (k) return k;
    if (ratio) return std::max(1.0, std::floor(*ratio * *d));
    return std::nullopt;
  }
};

struct Suggestion {
  SuggestArguments asked;      // with the d, gamma and zeta of the scenario's first cell where they were not given
  std::optional<Unit> unit{};  // of what the scenario's clients compress; nothing without a scenario
  std::optional<MeasuredThreshold> measured{};

  [[nodiscard]] NoiseAndSpread noise() const { return {.M = asked.noise.M, .sigma = asked.noise.sigma, .zeta = asked.zeta.value_or(0)}; }
};

// Checks the arguments, and reads and runs the scenario if they ask for it, as long as `goes_on` returns true. Throws ConfigError with all
// problems.
[[nodiscard]] FL_API Suggestion suggest(SuggestArguments arguments, const std::function<bool()>& goes_on);

}  // namespace fl
