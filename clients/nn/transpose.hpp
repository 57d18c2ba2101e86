// Matrices between rows in memory and vectors of columns: lane i of a vector is row i.
//
// Vectors are transposed in registers by rounds of zips: with rows numbered by the high bits of an entry's place and columns by the low
// ones, a round rotates these bits by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "clients/nn/vectors.hpp"

namespace fl::nn {

// Returns the entries of the lower or the upper halves of two vectors in turn.
template <bool kUpper, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V zipped(V a, V b, std::index_sequence<kLane...>) {
  constexpr std::size_t kLength = sizeof...(kLane);
  constexpr auto at = [](std::size_t lane) { return (kUpper ? kLength / 2 : 0) + lane / 2 + lane % 2 * kLength; };
  return __builtin_shufflevector(a, b, at(kLane)...);
}

// Transposes kRows vectors, a power of two: afterwards they hold the columns one after another, each of kRows entries.
template <class T, std::size_t kRows, std::size_t kRounds = kRows>
[[gnu::always_inline]] inline void transpose_rows(Vec<T>* v) {
  if constexpr (kRounds > 1) {
    constexpr std::size_t kHalf = kRows / 2;
    Vec<T> next[kRows];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kHalf; ++i) {
      next[2 * i] = zipped<false>(v[i], v[i + kHalf], std::make_index_sequence<kLanes<T>>());
      next[2 * i + 1] = zipped<true>(v[i], v[i + kHalf], std::make_index_sequence<kLanes<T>>());
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) v[i] = next[i];
    transpose_rows<T, kRows, kRounds / 2>(v);
  }
}

// Calls put(vector) for the columns of a matrix [rows, columns] in order, at most kLanes<T> rows that begin `stride` apart. Lanes from
// `rows` on are 0.
template <class T, class Put>
[[gnu::always_inline]] inline void for_each_column(const T* from, std::size_t stride, std::size_t rows, std::size_t columns,
                                                   const Put& put) {
  constexpr std::size_t kLength = kLanes<T>;
  for (std::size_t first = 0; first < columns; first += kLength, from += kLength) {
    const std::size_t count = std::min(kLength, columns - first);
    Vec<T> v[kLength];
    if (rows == kLength && count == kLength) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLength; ++i) v[i] = load(from + i * stride);
    } else {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLength; ++i) v[i] = i < rows ? load_some(from + i * stride, count) : Vec<T>{};
    }
    transpose_rows<T, kLength>(v);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLength; ++i)
      if (i < count) put(v[i]);
  }
}

// Writes a matrix [rows, columns] whose columns are the vectors that get() returns in order; adds to what is there if `add`.
template <class T, class Get>
[[gnu::always_inline]] inline void store_columns(std::size_t rows, std::size_t columns, const Get& get, bool add, T* to,
                                                 std::size_t stride) {
  constexpr std::size_t kLength = kLanes<T>;
  for (std::size_t first = 0; first < columns; first += kLength, to += kLength) {
    const std::size_t count = std::min(kLength, columns - first);
    Vec<T> v[kLength];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLength; ++i) v[i] = i < count ? get() : Vec<T>{};
    transpose_rows<T, kLength>(v);
    if (rows == kLength && count == kLength && !add) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLength; ++i) store(to + i * stride, v[i]);
    } else {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLength; ++i)
        if (i < rows) store_some(to + i * stride, add ? load_some(to + i * stride, count) + v[i] : v[i], count);
    }
  }
}

}  // namespace fl::nn
