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

namespace fl::cpu {

// out: [K] payloads whose index, counts and num_sent say which entries; values are added. factor: [S]
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
//
// Floyd's method: for j = n-k .. n-1 draw t in 0 .. j and take t, or j where t is taken. Draw i of segment s is word pair i of the stream
// (key, client, round, s), t = floor(pair * (j+1) / 2^64), so that every device draws the same set. More than n/2 entries are the
// complement of a drawn set. O(k + n/64). Bentley, Floyd, "A sample of brilliance", Communications of the ACM 30, 1987.
template <class T>
FL_API void random_subset_rows(const Exec& exec, const Scope& scope, std::span<const std::uint32_t> k, const SubsetDraw& draw,
                               std::span<Payload<T>* const> out);

extern template void gather_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const float>, WireValue,
                                        const StateWrite<float>&, std::span<Payload<float>* const>);
extern template void gather_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const double>, WireValue,
                                         const StateWrite<double>&, std::span<Payload<double>* const>);
extern template void list_rows<float>(const Exec&, std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                                      std::span<Payload<float>* const>);
extern template void list_rows<double>(const Exec&, std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                                       std::span<Payload<double>* const>);
extern template void gather_scaled_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const float>, WireValue,
                                               const StateWrite<float>&, std::span<Payload<float>* const>);
extern template void gather_scaled_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const double>, WireValue,
                                                const StateWrite<double>&, std::span<Payload<double>* const>);
extern template void random_subset_rows<float>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,
                                               std::span<Payload<float>* const>);
extern template void random_subset_rows<double>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,
                                                std::span<Payload<double>* const>);

}  // namespace fl::cpu
