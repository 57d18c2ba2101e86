// The k entries of largest magnitude in every segment, exactly.
//
//   1. a bound that the k-th magnitude is not below: the k-th of 64 lane maxima (small segments), an order statistic of a sample (large
//      ones, likely but not certain), or a histogram of the exponents (certain)
//   2. one fused pass: evaluate the input into the state row, collect the candidates that reach the bound
//   3. among the candidates, usually 1.1 k of them: the k-th magnitude by radix selection, ties by index; the others' state is restored
// The bound decides only how much work is done, never what is selected. Order: by |p| as a number, NaN above infinity.
// If another thread changes the numbers meanwhile, other entries of the segment may be selected, and more or fewer than k.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cpu {

// k: [S], entries to keep in each segment; out: [K] payloads, cleared.
template <class T>
FL_API void top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                       WireValue wire, const StateWrite<T>& state, std::span<Payload<T>* const> out);

// out[k,s] = the order statistic of |p| in the segment at rank ceil(q*n) from below (at least 1): q = 0 the smallest, q = 1 the largest
// magnitude. out: [K,S]
template <class T>
FL_API void quantile_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, double q, T* out);

extern template void top_k_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue,
                                       const StateWrite<float>&, std::span<Payload<float>* const>);
extern template void top_k_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const std::uint32_t>, TieRule,
                                        WireValue, const StateWrite<double>&, std::span<Payload<double>* const>);
extern template void quantile_rows<float>(const Exec&, const Affine<float>&, const Scope&, double, float*);
extern template void quantile_rows<double>(const Exec&, const Affine<double>&, const Scope&, double, double*);

}  // namespace fl::cpu
