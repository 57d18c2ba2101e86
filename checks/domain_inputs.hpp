// Moves inputs into the domain of a contract (Contract::domain). Some inputs are scaled up to a bound of the domain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "checks/compressor_cases.hpp"
#include "compressors/contract.hpp"

namespace fl::checks {

// The position of inputs in the domain: as drawn, or scaled to the upper or the lower bound.
enum class Reach { drawn, most, least };
inline const char* to_string(Reach reach) { return reach == Reach::drawn ? "" : reach == Reach::most ? " at the most" : " at the least"; }

// Returns the domain with the conditions on the remainder combined with those on the input. The remainder is taken to be 0 or at least a
// millionth of the input.
[[nodiscard]] Domain of_inputs(const Domain& domain);
// Returns the fault of a domain, "" = none: a range that contains no number.
[[nodiscard]] std::string fault_of(const Domain& domain);
// Returns whether the domain has a bound on that side.
[[nodiscard]] bool has_bound(const Domain& domain, Reach reach);
// Returns p [P] with the scope's segments multiplied so that it lies in the domain or at its bound. Entries and segments that are still too
// small remain; the caller clears them.
[[nodiscard]] std::vector<double> multiple_in(const Domain& domain, const Scope& scope, std::vector<double> p, Reach reach);
// Clears entries and segments of p [P] that are outside the domain.
void clear_outside(const Domain& domain, const Scope& scope, std::vector<double>& p);

// Moves the block's first client into the domain. Its input is then e alone.
template <class T>
void move_into(const Domain& limits, const Scope& scope, Reach reach, BlockInput<T>& block) {
  const Domain domain = of_inputs(limits);
  std::vector<double> p;
  for (std::size_t j = 0; j < block.P; ++j) p.push_back(static_cast<double>(block.input().at(0, j)));
  std::vector<double> moved = multiple_in(domain, scope, p, reach);
  for (double& x : moved) x = static_cast<double>(static_cast<T>(x));
  clear_outside(domain, scope, moved);
  if (moved == p) return;
  for (std::size_t j = 0; j < block.P; ++j) {
    block.e[j] = static_cast<T>(moved[j]);
    block.g[j] = T(0);
  }
}

}  // namespace fl::checks
