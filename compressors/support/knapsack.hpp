// Minimises the total cost under an error budget, by dynamic programming over the budget spent.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace fl {

// Returns one option per segment such that the total cost is minimal and the sum of errors is at most `budget`. Ties go to the first
// option. Returns all 0 if no choice fits. Errors are rounded up to multiples of budget / steps, so that the bound holds and the cost is
// minimal up to this rounding. cost, error: [S][options]
[[nodiscard]] inline std::vector<std::size_t> cheapest_within(const std::vector<std::vector<double>>& cost,
                                                              const std::vector<std::vector<double>>& error, double budget,
                                                              std::size_t steps) {
  const std::size_t S = cost.size();
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> best(steps + 1, 0.0);  // minimal cost of the segments so far with at most w steps of the budget
  std::vector<std::vector<std::size_t>> choice(S, std::vector<std::size_t>(steps + 1, 0)), spent = choice;
  for (std::size_t s = 0; s < S; ++s) {
    std::vector<double> next(steps + 1, kNever);
    for (std::size_t c = 0; c < cost[s].size(); ++c) {
      const double share = error[s][c] > 0 ? std::ceil(error[s][c] / budget * static_cast<double>(steps)) : 0.0;
      if (!(share <= static_cast<double>(steps))) continue;
      const auto step = static_cast<std::size_t>(share);
      for (std::size_t w = step; w <= steps; ++w) {
        if (!(best[w - step] + cost[s][c] < next[w])) continue;
        next[w] = best[w - step] + cost[s][c];
        choice[s][w] = c;
        spent[s][w] = step;
      }
    }
    best = std::move(next);
  }
  std::vector<std::size_t> chosen(S, 0);
  if (best[steps] == kNever) return chosen;
  std::size_t w = steps;
  for (std::size_t s = S; s-- > 0;) {
    chosen[s] = choice[s][w];
    w -= spent[s][w];
  }
  return chosen;
}

}  // namespace fl
