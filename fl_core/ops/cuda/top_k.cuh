// The k entries of largest magnitude in every segment, exactly.
//
//   1. large segments that keep a small part (candidates.cuh): a sample gives a bound, one pass over memory evaluates the input,
//      leaves p in the state row and lists what reaches the bound, and the k largest of the list are marked
//   2. all others, and those whose bound was wrong: a block per client and segment finds the k-th magnitude by radix selection,
//      8 bits of the key at a time (4 passes for float, 8 for double). The first pass writes p to the state row if it is not there yet.
//      The block then marks the entries above that magnitude and the first ones equal to it, in ascending order
//   3. marks.cuh makes the message of the marks
// Order: by |p| as a number, NaN above infinity. A large segment is read and written about once, by a block for every 8192 elements. Its
// list takes a tenth of the memory of the segment where 1% is kept, less than all of it where an eighth is. One whose bound was wrong
// costs the speed of one multiprocessor: magnitudes that are spread do not do that, a vector of equal ones always does.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/op_types.hpp"

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
