// Products of one client's matrix-shaped segment M [n,m] with thin factors, as in fl_core/ops/cpu/low_rank.hpp. M is loaded into scratch.
#pragma once

#include <cstddef>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/ops/cuda/linalg.cuh"

namespace fl::cuda {
namespace detail {

template <class T>
struct LoadMatrix {
  Affine<T> input;
  std::size_t k, begin;
  T* M;
  FL_HD void operator()(std::size_t j) const { M[j] = input.at(k, begin + j); }
};

template <class T>
struct WriteRemainder {
  Affine<T> input;
  BatchView<T> state;
  std::size_t k, begin, cols, r;
  const T *P, *Q;
  FL_HD void operator()(std::size_t j) const {
    const T *p = P + j / cols * r, *q = Q + j % cols * r;
    T sent = T(0);
    for (std::size_t c = 0; c < r; ++c) sent += p[c] * q[c];
    state.row(k)[begin + j] = input.at(k, begin + j) - sent;
  }
};

template <class T>
struct ClearMatrix {
  BatchView<T> state;
  std::size_t k, begin;
  FL_HD void operator()(std::size_t j) const { state.row(k)[begin + j] = T(0); }
};

template <class T>
const T* load_matrix(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, Workspace::Frame& frame) {
  T* M = frame.take<T>(segment.size());
  for_each(exec, segment.size(), LoadMatrix<T>{input, k, segment.begin, M});
  return M;
}

}  // namespace detail

// out [n,r] = M Q
template <class T>
void affine_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* Q, std::size_t r, T* out) {
  Workspace::Frame frame(*exec.workspace);
  const T* M = detail::load_matrix(exec, input, k, segment, frame);
  gemm(exec, Transpose::no, Transpose::no, segment.rows, r, segment.cols, T(1), M, Q, T(0), out);
}

// out [m,r] = M^T P, state = M - P out^T, or 0
template <class T>
void affine_transposed_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, std::size_t r,
                             const StateWrite<T>& state, T* out) {
  Workspace::Frame frame(*exec.workspace);
  const T* M = detail::load_matrix(exec, input, k, segment, frame);
  gemm(exec, Transpose::yes, Transpose::no, segment.cols, r, segment.rows, T(1), M, P, T(0), out);
  if (state.rule == StateRule::residual)
    for_each(exec, segment.size(), detail::WriteRemainder<T>{input, state.out, k, segment.begin, segment.cols, r, P, out});
  if (state.rule == StateRule::zero_where_sent) for_each(exec, segment.size(), detail::ClearMatrix<T>{state.out, k, segment.begin});
}

}  // namespace fl::cuda
