#include "scenarios/analysis/missing_minima.hpp"

#include <algorithm>

namespace fl {

std::string missing_minima(const std::vector<RunRecord>& records) {
  const auto has_none = [](const RunRecord& run) {
    return std::ranges::find(run.constants, "f_star_unknown", &ResolvedConstant::name) != run.constants.end();
  };
  const auto runs = std::ranges::count_if(records, has_none);
  if (runs == 0) return "";
  return "f_gap is empty in " + std::to_string(runs) + " of " + std::to_string(records.size()) +
         " runs: f is convex but not strongly (model.l2 = 0), and no minimum of it was found; where classes can be separated there is none";
}

}  // namespace fl
