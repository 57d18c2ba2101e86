// Entries at positions that are already in the payloads: random-k, and supports that clients share.
//
//   c_j = wire(factor_s * p_j) for j in the support, state from c; without a state to write only the entries themselves are read
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cuda {

// out: [K] payloads whose index, counts and num_sent say which entries; values are added. factor: [S], on the host
template <class T>
FL_API void gather_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out);

// Positions that the caller has chosen, ascending: counts[s] in segment s of every client. index: [K, sum of counts] on the host.
template <class T>
FL_API void list_rows(const Exec& exec, std::span<const std::uint32_t> counts, std::span<const std::uint32_t> index,
                      std::span<Payload<T>* const> out);

// gather_rows() with a factor for every entry: factor [K, num_sent] on the host, where all clients send equally many.
template <class T>
FL_API void gather_scaled_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                               const StateWrite<T>& state, std::span<Payload<T>* const> out);

// A uniformly random set of k[s] positions in every segment of every client, ascending, into index, counts and num_sent of the payloads.
// Floyd's method takes one draw after another: a thread for each client and segment (fl_core/random/subset_draws.hpp, the CPU's sets).
template <class T>
FL_API void random_subset_rows(const Exec& exec, const Scope& scope, std::span<const std::uint32_t> k, const SubsetDraw& draw,
                               std::span<Payload<T>* const> out);

}  // namespace fl::cuda
