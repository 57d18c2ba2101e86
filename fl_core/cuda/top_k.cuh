// The k entries of largest magnitude in every segment, exactly.
//
//   1. the k-th magnitude by radix selection: one block per client and segment counts 8 bits of the key at a time in shared memory (4
//      passes for float, 8 for double); the first pass leaves p in the state row
//   2. the same block marks what is above it and the first entries equal to it, in ascending order; marks.cuh makes the message of them
// Order: by |p| as a number, NaN above infinity. A block holds at the state row (or the input) and needs no memory of the vector's size
// but the marks; one client with one huge segment therefore runs at the speed of one multiprocessor.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/batch_view.hpp"
#include "fl_core/exec.hpp"
#include "fl_core/layer_table.hpp"
#include "fl_core/payload.hpp"
#include "fl_core/verb_types.hpp"

namespace fl::cuda {

// k: [S] on the host, entries to keep in each segment; out: [K] payloads, cleared.
template <class T>
FL_API void top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                       WireValue wire, const StateWrite<T>& state, std::span<Payload<T>* const> out);

// out[k,s] = the order statistic of |p| in the segment at rank ceil(q*n) from below (at least 1): q = 0 the smallest, q = 1 the largest
// magnitude. out: [K,S] on the device
template <class T>
FL_API void quantile_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, double q, T* out);

}  // namespace fl::cuda
