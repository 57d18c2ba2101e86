#include "scenarios/analysis/replicates.hpp"

#include <algorithm>
#include <cmath>

namespace fl {
namespace {

bool agree(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double simulated_s(const RunRecord& record) {
  const auto found = std::ranges::find(record.constants, "simulated_s", &ResolvedConstant::name);
  return found == record.constants.end() ? kNotMeasured : found->value;
}

}  // namespace

bool are_same_run(const RunRecord& a, const RunRecord& b) {
  return !a.checksum.empty() && a.checksum == b.checksum && is_finished(a.status) && a.status == b.status && a.rounds == b.rounds &&
         a.bits_up == b.bits_up && a.bits_down == b.bits_down && agree(a.total_error, b.total_error) && agree(a.zeta_sq, b.zeta_sq) &&
         agree(simulated_s(a), simulated_s(b));
}

std::vector<std::size_t> first_of_same(std::span<const RunRecord* const> runs) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::size_t same = 0;
    while (same < i && !are_same_run(*runs[same], *runs[i])) ++same;
    first.push_back(same);
  }
  return first;
}

}  // namespace fl
