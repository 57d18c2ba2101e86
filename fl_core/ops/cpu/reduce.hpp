// Sums and maxima over the segments of every client: out[k,s] = sum_j map(p_kj)  or  max_j map(p_kj), in double.
//
// The order is fixed and belongs to the result: a segment is cut into tiles of kTile elements from its first one; inside a tile lane l
// adds elements l, l+kLanes, l+2*kLanes, ... in ascending order; the lanes are joined as a binary tree (l with l+8, +4, +2, +1); the
// tiles are added in ascending order. CUDA follows the same order, so that a norm has the same bits on every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/ops/cpu/tile.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cpu {

template <Reduce R>
inline double join(double a, double b) {
  if constexpr (R == Reduce::sum)
    return a + b;
  else
    return a < b ? b : a;  // NaN never wins
}

// Whether a reduction of two vectors asks for them ahead. With AVX-512 g++ 12 would no longer vectorise it, and it would take longer.
#if defined(__AVX512F__)
inline constexpr bool kReducesAhead = false;
#else
inline constexpr bool kReducesAhead = true;
#endif

// The lanes of one tile, filled in pieces: each of them but the last is a multiple of kLanes elements.
template <Reduce R>
class LaneReduction {
 public:
  LaneReduction() { std::fill_n(lane_, kLanes, R == Reduce::sum ? 0.0 : -HUGE_VAL); }
  template <class T, class Map>
  FL_WIDE_VECTORS void add(const T* p, std::size_t count, Map map) {
    double lane[kLanes];
    std::copy_n(lane_, kLanes, lane);
    std::size_t j = 0;
    for (; j + kLanes <= count; j += kLanes)
      for (std::size_t l = 0; l < kLanes; ++l) lane[l] = join<R>(lane[l], map(p[j + l]));
    for (std::size_t l = 0; j + l < count; ++l) lane[l] = join<R>(lane[l], map(p[j + l]));
    std::copy_n(lane, kLanes, lane_);
  }
  // The same for p = c0 v0 + c1 v1, which is written to `p` on the way; `p` may be one of the two.
  template <class T, class Map>
  FL_WIDE_VECTORS void add_pair(T c0, const T* v0, T c1, const T* v1, std::size_t count, Map map, T* p) {
    double lane[kLanes];
    std::copy_n(lane_, kLanes, lane);
    std::size_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      T value[kLanes];
      for (std::size_t l = 0; kReducesAhead && l < kLanes; l += 64 / sizeof(T)) {
        __builtin_prefetch(v0 + j + l + kPrefetched, 0, 2);
        __builtin_prefetch(v1 + j + l + kPrefetched, 0, 2);
      }
      for (std::size_t l = 0; l < kLanes; ++l) value[l] = c0 * v0[j + l] + c1 * v1[j + l];
      for (std::size_t l = 0; l < kLanes; ++l) p[j + l] = value[l];
      for (std::size_t l = 0; l < kLanes; ++l) lane[l] = join<R>(lane[l], map(value[l]));
    }
    for (std::size_t l = 0; j + l < count; ++l) {
      p[j + l] = c0 * v0[j + l] + c1 * v1[j + l];
      lane[l] = join<R>(lane[l], map(p[j + l]));
    }
    std::copy_n(lane, kLanes, lane_);
  }
  [[nodiscard]] double result() {
    for (std::size_t width = kLanes / 2; width > 0; width /= 2)
      for (std::size_t l = 0; l < width; ++l) lane_[l] = join<R>(lane_[l], lane_[l + width]);
    return lane_[0];
  }

 private:
  double lane_[kLanes];
};

// One tile, in the lane order above. p: [count], count <= kTile
template <Reduce R, class T, class Map>
inline double reduce_tile(const T* p, std::size_t count, Map map) {
  LaneReduction<R> lanes;
  lanes.add(p, count, map);
  return lanes.result();
}

template <Reduce R, class T, class Map>
inline double reduce_segment(const Affine<T>& input, std::size_t k, const Segment& segment, Map map) {
  double result = R == Reduce::sum ? 0.0 : -HUGE_VAL;
  alignas(64) T buffer[kTile];
  for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
    const std::size_t count = std::min(kTile, segment.end - begin);
    result = join<R>(result, reduce_tile<R>(view_tile(input, k, begin, count, buffer), count, map));
  }
  return result;
}

// out: [K,S] row-major, S = number of segments; map: T -> double or (T, segment) -> double, an FL_HD functor.
template <class T, class Map>
void reduce_rows(const Exec&, const Affine<T>& input, const Scope& scope, Map map, Reduce reduce, double* out) {
  const auto reduced = [&](std::size_t k, const Segment& segment, auto own_map) {
    return reduce == Reduce::sum ? reduce_segment<Reduce::sum>(input, k, segment, own_map)
                                 : reduce_segment<Reduce::max>(input, k, segment, own_map);
  };
  for (std::size_t k = 0; k < input.clients(); ++k)
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      if constexpr (kMapTakesSegment<Map, T>)
        *out++ = reduced(k, scope.segments[s], [map, s](T p) { return map(p, s); });
      else
        *out++ = reduced(k, scope.segments[s], map);
    }
}

}  // namespace fl::cpu
