// Maxima of |p| over 64 interleaved lanes: one cheap pass whose k-th largest lane is a lower bound of the k-th largest magnitude, since
// k lanes with such a maximum are k elements.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fl_core/ops/cpu/radix_select.hpp"

namespace fl::cpu {

template <class T>
class LaneMaxima {
 public:
  LaneMaxima() { std::fill_n(lane_, kWidth, Key<T>{0}); }

  // Elements of a tile; a lane that is short has 0.
  void add(const T* p, std::size_t count) {
    std::size_t j = 0;
#if defined(FL_CPU_AVX512)
    using L = Lanes512<T>;
    __m512i lane[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) lane[v] = _mm512_load_si512(lane_ + v * L::kWidth);
    for (; j + kWidth <= count; j += kWidth)
      for (std::size_t v = 0; v < kVectors; ++v) lane[v] = L::larger(lane[v], L::keys(L::load(p + j + v * L::kWidth)));
    for (std::size_t v = 0; j < count; j += L::kWidth, ++v)
      lane[v] = L::larger(lane[v], L::keys(L::load(first_lanes<T>(count - j), p + j)));
    for (std::size_t v = 0; v < kVectors; ++v) _mm512_store_si512(lane_ + v * L::kWidth, lane[v]);
#else
    for (; j + kWidth <= count; j += kWidth)
      for (std::size_t l = 0; l < kWidth; ++l) lane_[l] = std::max(lane_[l], magnitude_key(p[j + l]));
    for (std::size_t l = 0; j + l < count; ++l) lane_[l] = std::max(lane_[l], magnitude_key(p[j + l]));
#endif
  }

  // The k-th largest lane, 1 <= k <= 64, by taking the largest away until k are gone. The lanes are spent.
  [[nodiscard]] Key<T> kth(std::size_t k) {
    for (std::size_t taken = 0;;) {
      Key<T> largest = 0;
      for (std::size_t l = 0; l < kWidth; ++l) largest = std::max(largest, lane_[l]);
      if (largest == 0) return 0;
      std::size_t equal = 0;
      for (std::size_t l = 0; l < kWidth; ++l) {
        equal += lane_[l] == largest;
        lane_[l] = lane_[l] == largest ? 0 : lane_[l];
      }
      taken += equal;
      if (taken >= k) return largest;
    }
  }

 private:
  static constexpr std::size_t kWidth = 64;
#if defined(FL_CPU_AVX512)
  static constexpr std::size_t kVectors = kWidth / Lanes512<T>::kWidth;
#endif
  alignas(64) Key<T> lane_[kWidth];
};

}  // namespace fl::cpu
