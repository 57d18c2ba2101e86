// Cache-sized pieces of one client's input: the CPU's unit of fused work.
//
// A fused operation walks a segment in tiles of kTile elements: the affine input is evaluated into an L1-resident tile, the operator
// decides on it, and the new state is written from it, so that every vector is read and written once. Norms and sums use kLanes partial
// sums per tile in double, joined in a fixed order: the same number on every device and for every block size.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/ops/op_types.hpp"

// The next loop may be vectorised although its output can be one of its inputs: iteration j touches element j only.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // below -O2, where nothing is vectorised, clang would warn of every such loop
#define FL_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FL_IVDEP _Pragma("GCC ivdep")
#else
#define FL_IVDEP
#endif

// g++ prefers 256-bit vectors even where it targets AVX-512; in these loops, which stay in L1, the wide ones are
// 1.4 times as fast. (Inlined, they would take the width of their caller.)
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define FL_WIDE_VECTORS __attribute__((noinline, target("prefer-vector-width=512")))
#else
#define FL_WIDE_VECTORS
#endif

namespace fl::cpu {

inline constexpr std::size_t kTile = kReduceTile;
inline constexpr std::size_t kLanes = kReduceLanes;

// The prefetch distance while a tile is evaluated, in elements: the tile that follows is then on its way while the operator is busy with
// this one. A larger distance takes longer again.
inline constexpr std::size_t kPrefetched = 512;

// p[j] = c[0] v[0][j] + c[1] v[1][j] + .., a cache line at a time. `p` may be one of the terms.
template <int kTerms, class T>
inline void load_terms(const T* const* v, const T* c, std::size_t count, T* p) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  const auto at = [&](std::size_t j) {
    T sum = c[0] * v[0][j];
    for (int a = 1; a < kTerms; ++a) sum = sum + c[a] * v[a][j];
    return sum;
  };
  std::size_t j = 0;
  for (; j + kLine <= count; j += kLine) {
    T line[kLine];
    for (int a = 0; a < kTerms; ++a) __builtin_prefetch(v[a] + j + kPrefetched, 0, 2);
    for (std::size_t l = 0; l < kLine; ++l) line[l] = at(j + l);
    for (std::size_t l = 0; l < kLine; ++l) p[j + l] = line[l];
  }
  for (; j < count; ++j) p[j] = at(j);
}

// p[0..count-1] = input of client k at begin .. begin+count-1. `p` may be one of the terms at that place (state written over a slot).
template <class T>
inline void load_tile(const Affine<T>& input, std::size_t k, std::size_t begin, std::size_t count, T* p) {
  const T* v[4];
  for (int a = 0; a < input.num_terms; ++a) v[a] = input.term[a].row(k) + begin;
  switch (input.num_terms) {
    case 1: return load_terms<1>(v, input.coefficient, count, p);
    case 2: return load_terms<2>(v, input.coefficient, count, p);
    case 3: return load_terms<3>(v, input.coefficient, count, p);
    default: return load_terms<4>(v, input.coefficient, count, p);
  }
}

// The same tile as a pointer: the vector itself where the input is one vector times 1, else evaluated into `buffer` [kTile].
template <class T>
[[nodiscard]] inline const T* view_tile(const Affine<T>& input, std::size_t k, std::size_t begin, std::size_t count, T* buffer) {
  if (input.num_terms == 1 && input.coefficient[0] == T(1)) return input.term[0].row(k) + begin;
  load_tile(input, k, begin, count, buffer);
  return buffer;
}

}  // namespace fl::cpu
