// Small types that operators hand to operations: how to join, when to keep, how to break ties. Shared by both devices.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "fl_core/config/device.hpp"

namespace fl {

// The order of sums, part of every result: tiles of this many elements, each added in this many lanes (fl_core/ops/cpu/reduce.hpp).
inline constexpr std::size_t kReduceTile = 2048, kReduceLanes = 16;

// How reduce_rows joins numbers.
enum class Reduce { sum, max };

// What top_k_rows does with entries that are as large as the k-th one.
enum class TieRule {
  lowest_index,  // exactly k entries; ties go to the lowest index
  all_ties,      // every entry as large as the k-th magnitude, k or more (the published logistic-regression code)
};

// Whether gemm reads an operand as it lies or transposed.
enum class Transpose { no, yes };

// A map of reduce_rows: map(p), or map(p, segment) where it asks for that.
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

// NaN as soon as one entry is not finite, else 0: for Reduce::sum.
struct ZeroIfFinite {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return static_cast<double>(p) * 0;
  }
};

// A keep rule for select_rows: |p| >= bound. NaN is not kept.
// Any functor keep(p, segment) -> bool will do; one that offers bound() is compared a vector at a time on the CPU.
template <class T>
struct AtLeast {
  T threshold;
  [[nodiscard]] FL_HD T bound(std::size_t /*segment*/) const { return threshold; }
  [[nodiscard]] FL_HD bool operator()(T p, std::size_t /*segment*/) const { return (p < 0 ? -p : p) >= threshold; }
};

// What makes a draw of random subsets unique: channel key, round and the ids of the block's clients [K].
struct SubsetDraw {
  std::uint64_t key = 0;
  std::uint32_t round = 0;
  std::span<const std::uint32_t> clients;
};

}  // namespace fl
