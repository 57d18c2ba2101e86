// A compressor's input as kernels read it: a client's rows are looked up once, and several elements are asked for at a time, so that their
// loads are on the way together.
//
//   p_j = c_0 t_0[j] + c_1 t_1[j] + ...   left to right without contraction, as Affine::at adds
//
// Quads, four neighbours from a multiple of four on, travel at once where memory is aligned for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Four neighbours in one instruction, of doubles in two.
template <class U>
struct alignas(sizeof(U) < 8 ? 4 * sizeof(U) : 16) Quad {
  U x[4];
};
template <class U>
[[nodiscard]] __device__ inline bool holds_quads(const U* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(Quad<U>) == 0;
}
template <class U>
[[nodiscard]] __device__ inline Quad<U> load_quad(const U* from) {
  return *reinterpret_cast<const Quad<U>*>(from);
}
template <class U>
__device__ inline void store_quad(U* to, const Quad<U>& quad) {
  *reinterpret_cast<Quad<U>*>(to) = quad;
}

// Client k's input. Terms beyond the second are rare and looked up each time.
template <class T>
class OpenedInput {
 public:
  __device__ OpenedInput(const Affine<T>& input, std::size_t k)
      : input_(input),
        k_(k),
        first_(input.term[0].row(k)),
        second_(input.num_terms > 1 ? input.term[1].row(k) : nullptr),
        first_coefficient_(input.coefficient[0]),
        second_coefficient_(input.coefficient[1]) {}

  [[nodiscard]] __device__ T at(std::size_t j) const {
    T p[1];
    load(j, 1, j + 1, p);
    return p[0];
  }

  // p[i] = the input at j = first + i * stride, anything where j is not below `end`.
  template <int N>
  __device__ void load(std::size_t first, std::size_t stride, std::size_t end, T (&p)[N]) const {
    evaluate<N>(
        [&](const T* row, T* x) {
          FL_UNROLL
          for (int i = 0; i < N; ++i) {
            const std::size_t j = first + static_cast<std::size_t>(i) * stride;
            x[i] = j < end ? row[j] : T(0);
          }
        },
        p);
  }

  // Whether every row is aligned for quads.
  [[nodiscard]] __device__ bool has_quads() const {
    bool aligned = holds_quads(first_) && holds_quads(second_);
    for (int a = 2; a < input_.num_terms; ++a) aligned = aligned && holds_quads(input_.term[a].row(k_));
    return aligned;
  }
  // N quads: p[i] holds elements 4 (first + i * stride) and on; 0 where they lie outside begin .. end-1. in_quads: has_quads()
  template <int N>
  __device__ void load_quads(std::size_t first, std::size_t stride, std::size_t begin, std::size_t end, bool in_quads,
                             Quad<T> (&p)[N]) const {
    T x[4 * N];
    // One branch for all of them: loads that wait for no other.
    if (in_quads && 4 * first >= begin && 4 * (first + (N - 1) * stride) + 4 <= end) {
      evaluate<4 * N>(
          [&](const T* row, T* to) {
            FL_UNROLL
            for (int i = 0; i < N; ++i) {
              const Quad<T> quad = load_quad(row + 4 * (first + static_cast<std::size_t>(i) * stride));
              FL_UNROLL
              for (int l = 0; l < 4; ++l) to[4 * i + l] = quad.x[l];
            }
          },
          x);
    } else {
      evaluate<4 * N>(
          [&](const T* row, T* to) {
            FL_UNROLL
            for (int i = 0; i < 4 * N; ++i) {
              const std::size_t j = 4 * (first + static_cast<std::size_t>(i / 4) * stride) + static_cast<std::size_t>(i % 4);
              to[i] = j >= begin && j < end ? row[j] : T(0);
            }
          },
          x);
    }
    FL_UNROLL
    for (int i = 0; i < 4 * N; ++i) p[i / 4].x[i % 4] = x[i];
  }

 private:
  // load_row(row of a term, N numbers of it)
  template <int N, class LoadRow>
  __device__ void evaluate(LoadRow load_row, T* p) const {
    T x[N], y[N] = {};
    load_row(first_, x);
    if (second_ != nullptr) load_row(second_, y);
    FL_UNROLL
    for (int i = 0; i < N; ++i) p[i] = first_coefficient_ * x[i];
    if (second_ == nullptr) return;
    FL_UNROLL
    for (int i = 0; i < N; ++i) p[i] = p[i] + second_coefficient_ * y[i];
    for (int a = 2; a < input_.num_terms; ++a) {
      load_row(input_.term[a].row(k_), y);
      FL_UNROLL
      for (int i = 0; i < N; ++i) p[i] = p[i] + input_.coefficient[a] * y[i];
    }
  }

  const Affine<T>& input_;
  std::size_t k_;
  const T *first_, *second_;  // second_: null where there is one term
  T first_coefficient_, second_coefficient_;
};

}  // namespace fl::cuda
