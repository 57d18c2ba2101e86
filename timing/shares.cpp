#include "timing/shares.hpp"

#include <algorithm>
#include <cmath>

namespace fl {

void check_tiers(const std::vector<std::string>& names, const std::vector<double>& shares, Problems& problems) {
  constexpr double kRounding = 1e-6;  // thirds may be written as 0.333333
  if (shares.empty()) {
    problems.push_back({"tiers", "must name at least one tier, such as tiers = [{ name = \"all\", share = 1.0, ... }]"});
    return;
  }
  double sum = 0;
  for (const double share : shares) sum += share;
  if (!(std::fabs(sum - 1) <= kRounding))
    problems.push_back({"tiers", "have shares that sum to " + to_string(Value{sum}) + "; they must sum to 1"});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      problems.push_back({"tiers", "has two tiers with the name \"" + names[i] + "\"; give each its own"});
}

std::size_t kind_at(double u, const std::vector<double>& shares) {
  double passed = 0;
  for (std::size_t k = 0; k + 1 < shares.size(); ++k) {
    passed += shares[k];
    if (passed > u) return k;
  }
  return shares.size() - 1;
}

}  // namespace fl
