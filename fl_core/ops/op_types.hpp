// Small types that operators pass to operations: how to join, which entries to keep, how to break ties. Both devices use them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "fl_core/config/device.hpp"

namespace fl {

// The order of sums, which is part of every result: tiles of this many elements, each added in this many lanes
// (fl_core/ops/cpu/reduce.hpp).
inline constexpr std::size_t kReduceTile = 2048, kReduceLanes = 16;

// The operation with which reduce_rows joins numbers.
enum class Reduce { sum, max };

// The treatment of entries as large as the k-th one in top_k_rows.
enum class TieRule {
  lowest_index,  // exactly k entries; ties go to the lowest index
  all_ties,      // every entry as large as the k-th magnitude, k or more (as in the published logistic-regression code)
};

// Whether gemm reads an operand transposed.
enum class Transpose { no, yes };

// A map of reduce_rows: map(p), or map(p, segment) if it takes a segment.
template <class Map, class T>
inline constexpr bool kMapTakesSegment = std::is_invocable_v<const Map&, T, std::size_t>;
template <class Map, class T>
[[nodiscard]] FL_HD inline double mapped(const Map& map, T p, std::size_t segment) {
  if constexpr (kMapTakesSegment<Map, T>)
    return map(p, segment);
  else
    return map(p);
}

// Maps for reduce_rows.
struct SquareOf {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return static_cast<double>(p) * static_cast<double>(p);
  }
};
struct MagnitudeOf {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return fabs(static_cast<double>(p));
  }
};

// Returns NaN if the entry is not finite, else 0. With Reduce::sum, the result is NaN as soon as one entry is not finite.
struct ZeroIfFinite {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return static_cast<double>(p) * 0;
  }
};

// A keep rule for select_rows: |p| >= bound. NaN is not kept.
// Any functor keep(p, segment) -> bool is valid; the CPU compares a vector at a time if the functor has bound().
template <class T>
struct AtLeast {
  T threshold;
  [[nodiscard]] FL_HD T bound(std::size_t /*segment*/) const { return threshold; }
  [[nodiscard]] FL_HD bool operator()(T p, std::size_t /*segment*/) const { return (p < 0 ? -p : p) >= threshold; }
};

// The identity of a draw of random subsets: channel key, round and the ids of the block's clients [K].
struct SubsetDraw {
  std::uint64_t key = 0;
  std::uint32_t round = 0;
  std::span<const std::uint32_t> clients;
};

}  // namespace fl
