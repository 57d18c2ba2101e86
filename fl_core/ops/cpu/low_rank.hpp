// Products of one client's matrix-shaped segment M [n,m] with thin factors, straight from the affine input: M itself is never stored.
//
//   affine_times              out [n,r] = M Q,       Q [m,r]
//   affine_transposed_times   out [m,r] = M^T P,     P [n,r];    state = M - P out^T (residual) or 0 (zero_where_sent)
//   low_rank_product          out [n,m] = P Q^T, with the bits of the state's
//
// r >= 1. The input is read a tile of a few rows at a time that all columns of the factors share. With the residual rule M is kept in the
// state between its two uses: the three passes move 8, 12 and 8 bytes per float32 element of two terms. Sums run over the vectors of a
// tile, then over its lanes in a tree, then over the tiles in order; those of M^T P run over the rows in order.
#pragma once

#include <cstddef>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"

namespace fl::cpu {

template <class T>
FL_API void affine_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* Q, std::size_t r,
                         T* out);

template <class T>
FL_API void affine_transposed_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P,
                                    std::size_t r, const StateWrite<T>& state, T* out);

template <class T>
FL_API void low_rank_product(const Exec& exec, const Segment& segment, const T* P, const T* Q, std::size_t r, T* out);

}  // namespace fl::cpu
