// The k-th largest of n magnitudes, by narrowing the range of its key a digit at a time. Work is linear in n, whatever the data.
//
// Histograms may count numbers that another thread changes from pass to pass (an array of the caller). The result then means nothing, but
// the search ends. kth_largest_key() needs numbers that stay as they are, because what it counts in one pass it copies in the next one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cpu/mask.hpp"

namespace fl::cpu {

// A range of keys low .. low + 2^bits - 1 that holds the k-th largest, which is the rank-th largest inside it (1-based).
template <class T>
struct KeyRange {
  Key<T> low = 0;
  int bits = kKeyBits<T>;
  std::size_t rank = 0;    // of the wanted key among those in the range
  std::size_t inside = 0;  // keys in the range, once counted
};

// Counts of the leading `DigitBits` bits of keys inside a range. Several tables, so that equal neighbours do not wait for each other's
// store.
template <int DigitBits, std::size_t Tables>
class DigitHistogram {
 public:
  DigitHistogram() { std::memset(count_, 0, sizeof count_); }

  template <class T>
  void add(const T* p, std::size_t n, const KeyRange<T>& range) {
    const int shift = shift_of(range);
    const auto width = Key<T>{1} << range.bits;
    std::uint16_t digit[kChunk];
    for (std::size_t begin = 0; begin < n; begin += kChunk) {
      const std::size_t count = std::min(kChunk, n - begin);
      for (std::size_t j = 0; j < count; ++j) {
        const Key<T> offset = magnitude_key(p[begin + j]) - range.low;
        digit[j] = static_cast<std::uint16_t>(offset < width ? offset >> shift : kOutside);
      }
      std::size_t j = 0;
      for (; j + Tables <= count; j += Tables)
        for (std::size_t t = 0; t < Tables; ++t) ++count_[t][digit[j + t]];
      for (; j < count; ++j) ++count_[0][digit[j]];
    }
  }

  // The digit that holds the wanted key. If fewer keys than its rank lie in the range, because the numbers have changed since an earlier
  // pass, returns the range's smallest key with bits = 0, as if it were found.
  template <class T>
  [[nodiscard]] KeyRange<T> narrow(KeyRange<T> range) const {
    for (std::size_t d = kOutside; d-- > 0;) {
      std::size_t here = 0;
      for (std::size_t t = 0; t < Tables; ++t) here += count_[t][d];
      if (here >= range.rank) return {range.low + (static_cast<Key<T>>(d) << shift_of(range)), shift_of(range), range.rank, here};
      range.rank -= here;
    }
    return {.low = range.low, .bits = 0, .rank = 1, .inside = 0};
  }

 private:
  template <class T>
  static int shift_of(const KeyRange<T>& range) {
    return range.bits > DigitBits ? range.bits - DigitBits : 0;
  }
  static constexpr std::size_t kOutside = std::size_t{1} << DigitBits, kChunk = 512;
  std::uint32_t count_[Tables][kOutside + 8];
};
using LargeHistogram = DigitHistogram<11, 4>;  // 33 KB, for long vectors
using SmallHistogram = DigitHistogram<8, 2>;   // 2 KB: clearing it costs less than filling it

// The rank-th largest of a few keys, which are reordered.
template <class U>
[[nodiscard]] inline U nth_largest(U* keys, std::size_t count, std::size_t rank) {
  std::nth_element(keys, keys + (rank - 1), keys + count, std::greater<U>());
  return keys[rank - 1];
}

template <class Histogram, class T>
[[nodiscard]] inline KeyRange<T> narrowed(const T* p, std::size_t n, const KeyRange<T>& range) {
  Histogram histogram;
  histogram.add(p, n, range);
  return histogram.narrow(range);
}

// The k-th largest key among p[0..n-1], 1 <= k <= n, which nobody changes meanwhile. Takes workspace where n is above kFewKeys.
inline constexpr std::size_t kFewKeys = 64, kSmallHistogram = 8192;
template <class T>
[[nodiscard]] inline Key<T> kth_largest_key(const T* p, std::size_t n, std::size_t k, Workspace* workspace) {
  Key<T> few[kFewKeys] = {};
  if (n <= kFewKeys) {
    for (std::size_t i = 0; i < n; ++i) few[i] = magnitude_key(p[i]);
    return nth_largest(few, n, k);
  }
  Key<T> low = ~Key<T>{0}, high = 0;
  for (std::size_t i = 0; i < n; ++i) low = std::min(low, magnitude_key(p[i]));
  for (std::size_t i = 0; i < n; ++i) high = std::max(high, magnitude_key(p[i]));
  KeyRange<T> range{low, static_cast<int>(std::bit_width(static_cast<Key<T>>(high - low))), k, n};

  Workspace::Frame frame(*workspace);
  T* kept = nullptr;
  while (range.bits > 0 && range.inside > kFewKeys) {
    range = n > kSmallHistogram ? narrowed<LargeHistogram>(p, n, range) : narrowed<SmallHistogram>(p, n, range);
    if (range.bits == 0) break;
    // Only what lies in the range goes on.
    if (kept == nullptr) kept = frame.take<T>(range.inside + 1);
    const Key<T> width = Key<T>{1} << range.bits;
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const T x = p[i];
      kept[count] = x;
      count += magnitude_key(x) - range.low < width;
    }
    p = kept;
    n = count;
  }
  if (range.bits == 0) return range.low;
  for (std::size_t i = 0; i < n; ++i) few[i] = magnitude_key(p[i]);
  return nth_largest(few, n, range.rank);
}

}  // namespace fl::cpu
