// Products of one client's matrix-shaped segment M [n,m] with thin factors, straight from the affine input: M itself is never stored.
//
//   affine_times              out [n,r] = M Q,       Q [m,r]
//   affine_transposed_times   out [m,r] = M^T P,     P [n,r]
//   write_low_rank_state      state = M - P Q^T (residual) or 0 (zero_where_sent), at the segment's place
//   low_rank_product          out [n,m] = P Q^T, with the bits of the state's
//
// Each reads the input once, a tile of a few rows at a time that all columns of the factors share: 8 + 8 + 12 bytes per float32 element
// with two terms, for the three together. Sums run over the vectors of a tile, then over its lanes in a tree, then over the tiles in order.
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
                                    std::size_t r, T* out);

template <class T>
FL_API void write_low_rank_state(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, const T* Q,
                                 std::size_t r, const StateWrite<T>& state);

template <class T>
FL_API void low_rank_product(const Exec& exec, const Segment& segment, const T* P, const T* Q, std::size_t r, T* out);

}  // namespace fl::cpu
