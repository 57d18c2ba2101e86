// The cost of what operators are made of, per entry of a scope, for Contract::cost. An operator adds the parts of its compress():
//
//   contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random);        a norm, then a level of 8 bits for each entry
//
// The input is read once by the feedback's count. Entries whose number depends on the data (those above a threshold) are not counted here:
// the code of a message costs what its bits say (compressors/codec/codec_cost.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl::costs {

// One more reading of every entry, for a norm, a largest entry or a count, with these operations.
[[nodiscard]] inline EntryCost reading(double operations) { return {1, operations}; }

// The input written to a vector of its own and read from there.
[[nodiscard]] inline EntryCost copy() { return {2, 0}; }

enum class Rounding { nearest, random };
// A level for every entry: scaled, rounded, bounded below and above, and written in 8, 16 or 32 bits. `map` are further operations of the
// map from numbers to levels.
[[nodiscard]] inline EntryCost levels(double bits, Rounding rounding, double map = 0) {
  const double width = bits <= 8 ? 8 : bits <= 16 ? 16 : 32;
  return {width / 32, 4 + map + (rounding == Rounding::random ? kRandomOperations + 1 : 0)};
}

// Positions and values of a fraction of the entries, after a comparison of each of them.
[[nodiscard]] inline EntryCost kept(double fraction) { return {2 * fraction, 1}; }

// The k-th largest magnitude: two readings that count entries in ranges.
[[nodiscard]] inline EntryCost selection(double fraction) { return EntryCost{2, 4} + kept(fraction); }

// Sorting n entries: log2(n) comparisons and moves of each.
[[nodiscard]] inline EntryCost sorting(double n) {
  const double levels = std::ceil(std::log2(std::max(n, 2.0)));
  return {2 * levels, levels};
}

// A vector rotated by signs and the Walsh-Hadamard transform of n entries: a sum or a difference in each of log2(n) levels. A random number
// gives 32 signs.
[[nodiscard]] inline EntryCost rotation(double n) {
  const double levels = std::ceil(std::log2(std::max(n, 2.0)));
  return {2 + 2 * levels, 1 + kRandomOperations / 32 + levels};
}

// The mean over the entries of matrices of cost(rows, columns), which is that of one entry.
template <class Cost>
[[nodiscard]] EntryCost of_matrices(const Scope& scope, const Cost& cost) {
  EntryCost sum;
  double entries = 0;
  for (const Segment& m : scope.segments) {
    const auto size = static_cast<double>(m.size());
    sum += size * cost(static_cast<double>(m.rows), static_cast<double>(m.cols));
    entries += size;
  }
  return entries > 0 ? 1 / entries * sum : EntryCost{};
}

// Singular values and vectors of each matrix [m,n], m >= n: 14 m n^2 + 8 n^3 operations, and n reflections that read and write it. G. H.
// Golub, C. F. Van Loan, "Matrix computations", 4th edition, 2013, figure 8.6.1 (R-SVD).
[[nodiscard]] inline EntryCost singular_values(const Scope& scope) {
  return of_matrices(scope, [](double rows, double cols) {
    const double m = std::max(rows, cols), n = std::min(rows, cols);
    return EntryCost{2 * n, 14 * n + 8 * n * n / m};
  });
}

// A product of each matrix with a thin one of `rank` columns.
[[nodiscard]] inline EntryCost thin_product(double rank) { return {1, 2 * rank}; }

// An operator around others: the vector is written for them, and the state is computed from the joined message.
[[nodiscard]] inline EntryCost wrapping() { return {4, 1}; }

}  // namespace fl::costs
