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

// p[0..count-1] = input of client k at begin .. begin+count-1. `p` may be one of the terms at that place (state written over a slot).
template <class T>
inline void load_tile(const Affine<T>& input, std::size_t k, std::size_t begin, std::size_t count, T* p) {
  const T c0 = input.coefficient[0];
  const T* v0 = input.term[0].row(k) + begin;
  switch (input.num_terms) {
    case 1:
      FL_IVDEP
      for (std::size_t j = 0; j < count; ++j) p[j] = c0 * v0[j];
      return;
    case 2: {
      const T c1 = input.coefficient[1];
      const T* v1 = input.term[1].row(k) + begin;
      FL_IVDEP
      for (std::size_t j = 0; j < count; ++j) p[j] = c0 * v0[j] + c1 * v1[j];
      return;
    }
    case 3: {
      const T c1 = input.coefficient[1], c2 = input.coefficient[2];
      const T *v1 = input.term[1].row(k) + begin, *v2 = input.term[2].row(k) + begin;
      FL_IVDEP
      for (std::size_t j = 0; j < count; ++j) p[j] = c0 * v0[j] + c1 * v1[j] + c2 * v2[j];
      return;
    }
    default: {
      const T c1 = input.coefficient[1], c2 = input.coefficient[2], c3 = input.coefficient[3];
      const T *v1 = input.term[1].row(k) + begin, *v2 = input.term[2].row(k) + begin, *v3 = input.term[3].row(k) + begin;
      FL_IVDEP
      for (std::size_t j = 0; j < count; ++j) p[j] = c0 * v0[j] + c1 * v1[j] + c2 * v2[j] + c3 * v3[j];
      return;
    }
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
