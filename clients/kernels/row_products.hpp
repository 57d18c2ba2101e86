// Products of a few dense rows with parameter vectors, and of numbers with rows: the loops of dense_rows.cpp and pixel_rows.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "clients/kernels/simd.hpp"

// Compiles the loops of a class template of rows, once for all models: margins for parameters of the rows' type and in double, and the
// transposed product.
#define FL_INSTANTIATE_ROWS(Rows)                                                                                              \
  template void Rows<float>::margins<true, float>(const RowBlock&, const float*, std::size_t, std::size_t, double*) const;     \
  template void Rows<float>::margins<false, float>(const RowBlock&, const float*, std::size_t, std::size_t, double*) const;    \
  template void Rows<float>::margins<true, double>(const RowBlock&, const double*, std::size_t, std::size_t, double*) const;   \
  template void Rows<float>::margins<false, double>(const RowBlock&, const double*, std::size_t, std::size_t, double*) const;  \
  template void Rows<double>::margins<true, double>(const RowBlock&, const double*, std::size_t, std::size_t, double*) const;  \
  template void Rows<double>::margins<false, double>(const RowBlock&, const double*, std::size_t, std::size_t, double*) const; \
  template void Rows<float>::add(const RowBlock&, const double*, std::size_t, std::size_t, double*) const;                     \
  template void Rows<double>::add(const RowBlock&, const double*, std::size_t, std::size_t, double*) const

namespace fl::kernels::detail {

// R rows and the rows that come after them; `next` is only prefetched, never read.
template <int R, class V>
struct Rows {
  const V* row[R];
  const V* next[R];
};

// The share of the next rows that a pass prefetches: none, its half (margins take the first, products the second), or all.
enum Ahead { kNone, kHalf, kAll };

// Prefetches next[from .. to-1] at column j, once per cache line.
template <int R, class V>
[[gnu::always_inline]] inline void prefetch(const Rows<R, V>& a, int from, int to, std::size_t j) {
  if (sizeof(V) * static_cast<std::size_t>(kLanes) < 64 && j * sizeof(V) % 64 != 0) return;
  for (int r = from; r < to; ++r) __builtin_prefetch(a.next[r] + j, 0, 3);
}

// Computes z[o*stride + r] = <row[r], x[o]> for O outputs, with enough independent sums to hide the latency of a multiply-add. A vector of
// a row is converted once for all O outputs.
template <int R, Ahead kAhead, std::size_t O = 1, class V, class X>
[[gnu::always_inline]] inline void dot_rows(const Rows<R, V>& a, const X* x, std::size_t D, double* z, std::size_t stride = 0) {
  constexpr int kUnroll = R >= 8 ? 1 : (R == 4 ? 2 : 4);
  constexpr std::size_t kStep = kUnroll * kLanes;
  VecD part[O][R][kUnroll] = {};
  std::size_t j = 0;
  const auto step = [&](int u, std::size_t at) __attribute__((always_inline)) {
    VecD xv[O];
    for (std::size_t o = 0; o < O; ++o) xv[o] = load(x + o * D + at);
    for (int r = 0; r < R; ++r) {
      const VecD row = load(a.row[r] + at);
      for (std::size_t o = 0; o < O; ++o) part[o][r][u] += row * xv[o];
    }
  };
  for (; j + kStep <= D; j += kStep) {
    for (int u = 0; u < kUnroll; ++u) {
      const std::size_t at = j + static_cast<std::size_t>(u * kLanes);
      step(u, at);
      if (kAhead != kNone) prefetch(a, 0, kAhead == kAll ? R : (R + 1) / 2, at);
    }
  }
  for (; j + kLanes <= D; j += kLanes) step(0, j);
  for (std::size_t o = 0; o < O; ++o, x += D, z += stride)
    for (int r = 0; r < R; ++r) {
      double tail = 0;
      for (std::size_t i = j; i < D; ++i) tail += static_cast<double>(a.row[r][i]) * static_cast<double>(x[i]);
      VecD total = part[o][r][0];
      for (int u = 1; u < kUnroll; ++u) total += part[o][r][u];
      z[r] = sum(total) + tail;
    }
}

// Computes the same for all outputs, as many together as the machine's registers hold.
template <int R, Ahead kAhead, class V, class X>
[[gnu::always_inline]] inline void dot_outputs(const Rows<R, V>& a, const X* x, std::size_t outputs, std::size_t D, std::size_t stride,
                                               double* z) {
  constexpr std::size_t kMost = kLanes == 8 ? 3 : 1;  // 32 registers against 16
  std::size_t o = outputs < kMost ? 1 : kMost;
  if (outputs < kMost)
    dot_rows<R, kAhead>(a, x, D, z);
  else
    dot_rows<R, kAhead, kMost>(a, x, D, z, stride);
  for (; o + kMost <= outputs; o += kMost) dot_rows<R, kNone, kMost>(a, x + o * D, D, z + o * stride, stride);
  for (; o < outputs; ++o) dot_rows<R, kNone>(a, x + o * D, D, z + o * stride);
}

// Computes acc += sum_r c[r] row[r].
template <int R, Ahead kAhead, class V>
[[gnu::always_inline]] inline void add_rows(const Rows<R, V>& a, const double* c, std::size_t D, double* acc) {
  std::size_t j = 0;
  for (; j + kLanes <= D; j += kLanes) {
    VecD g = load(acc + j);
    for (int r = 0; r < R; ++r) g += load(a.row[r] + j) * c[r];
    store(acc + j, g);
    if (kAhead == kHalf) prefetch(a, (R + 1) / 2, R, j);
  }
  for (; j < D; ++j)
    for (int r = 0; r < R; ++r) acc[j] += static_cast<double>(a.row[r][j]) * c[r];
}

// Splits `count` rows into pieces of 8 (if kMost is 8), 4, 2 and 1 rows and calls visit.operator()<R>(first row) for each.
template <int kMost, class Visit>
[[gnu::always_inline]] inline void in_pieces(int count, const Visit& visit) {
  int first = 0;
  const auto piece = [&]<int R>() {
    visit.template operator()<R>(first);
    first += R;
  };
  if constexpr (kMost == 8)
    if (count & 8) piece.template operator()<8>();
  if (count & 4) piece.template operator()<4>();
  if (count & 2) piece.template operator()<2>();
  if (count & 1) piece.template operator()<1>();
}

}  // namespace fl::kernels::detail
