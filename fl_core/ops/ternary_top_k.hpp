// The operation of sparse ternary compression: keeps the k largest entries of every segment and replaces each by its sign and the
// segment's mean magnitude.
//
//   top_k_rows(exec, input, scope, k, TieRule::lowest_index, ...), then ternarise_rows(exec, scope, state, out)
// The GPU writes the state of sent entries once, when the magnitudes are known.
#pragma once

#include "fl_core/ops/ops.hpp"

namespace fl {

#if defined(FL_DEVICE_IS_CUDA)
namespace cuda {
template <class T>
FL_API void ternary_top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k,
                               const StateWrite<T>& state, std::span<Payload<T>* const> out);
}  // namespace cuda
#else
namespace cpu {
template <class T>
void ternary_top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  top_k_rows(exec, input, scope, k, TieRule::lowest_index, kNativeWire<T>, state, out);
  ternarise_rows(exec, scope, state, out);
}
}  // namespace cpu
#endif

}  // namespace fl
