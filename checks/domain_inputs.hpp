// Inputs that lie where a contract holds (Contract::domain): drawn ones are moved there, and some are stretched up to a bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "checks/compressor_cases.hpp"
#include "compressors/contract.hpp"

namespace fl::checks {

// How far inputs go.
enum class Reach { drawn, most, least };
inline const char* to_string(Reach reach) { return reach == Reach::drawn ? "" : reach == Reach::most ? " at the most" : " at the least"; }

// The domain with what remains of an input counted as one. What remains is taken to be 0 or at least a millionth of the input.
[[nodiscard]] Domain of_inputs(const Domain& domain);
// What is wrong with a domain, "" = nothing: a range that holds no number.
[[nodiscard]] std::string fault_of(const Domain& domain);
// Whether the domain has a bound on that side.
[[nodiscard]] bool has_bound(const Domain& domain, Reach reach);
// Returns a multiple of p [P], outside of the scope's segments p itself, that is in the domain or at its bound but for entries and segments
// that are still too small: they are then to be cleared.
[[nodiscard]] std::vector<double> multiple_in(const Domain& domain, const Scope& scope, std::vector<double> p, Reach reach);
// Clears entries and segments of p [P] that are outside.
void clear_outside(const Domain& domain, const Scope& scope, std::vector<double>& p);

// Moves the block's first client into the domain; the input is then e alone.
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
