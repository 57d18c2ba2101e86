// Tests whether a message holds only finite numbers. A message that holds NaN or an infinity is never sent and never accepted:
//   raw values, scales, excluded values      are finite as transmitted, after rounding to the wire's format
//   levels                                   every level that occurs times its scale and unit is finite in T
//   factors, sums of two                     every product and every sum that a receiver computes is finite in T
// Sender and receiver apply the same rule, so a client's message is refused in the same way whether it is encoded or only counted.
//
// The largest magnitudes of values and scales nearly always decide without reading the entries: no level represents more than the largest
// level of its format (else: the largest level that occurs) at the largest scale. If this product is infinite, each entry is computed.
#pragma once

#include <cstddef>
#include <optional>

#include "compressors/codec/codec.hpp"

namespace fl::codec {

// Returns the largest magnitude of v [n]: 0 for n = 0, infinity if one is NaN or infinite.
template <class T>
[[nodiscard]] FL_API T largest_magnitude(const T* v, std::size_t n);

// Returns the first index of v [n] whose entry is NaN or infinite.
template <class T>
[[nodiscard]] std::optional<std::size_t> first_not_finite(const T* v, std::size_t n);

// Returns whether every number that the message represents is finite. `tally`: magnitudes and levels counted where the message lies. Null
// messages and silent ones are finite. Requires a message that agrees with its scope.
template <class T>
[[nodiscard]] FL_API bool is_finite(const Payload<T>& message, const Scope& scope, const Tally& tally = {});

// Returns whether is_finite(), encoded_bits() or entropy_bits() must read the message's content, beyond its sizes, its counts and the
// tally.
template <class T>
[[nodiscard]] FL_API bool needs_content(const Payload<T>& message, const Tally& tally);

extern template bool needs_content<float>(const Payload<float>&, const Tally&);
extern template bool needs_content<double>(const Payload<double>&, const Tally&);
extern template float largest_magnitude<float>(const float*, std::size_t);
extern template double largest_magnitude<double>(const double*, std::size_t);
extern template bool is_finite<float>(const Payload<float>&, const Scope&, const Tally&);
extern template bool is_finite<double>(const Payload<double>&, const Scope&, const Tally&);

}  // namespace fl::codec
