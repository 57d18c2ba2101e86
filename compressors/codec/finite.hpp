// Whether a message holds finite numbers alone. A message that holds NaN or an infinity is never sent and never accepted:
//   raw values, scales, excluded values      finite as they travel, rounding to the wire's format included
//   levels                                   every level that occurs times its scale and unit is finite in T
//   factors, sums of two                     every product and every sum that a receiver computes is finite in T
// Sender and receiver apply the same rule, so that a client is refused alike whether its message is encoded or only counted.
//
// The largest magnitudes of values and scales decide nearly always, without a look at the entries: no level stands for more than the
// largest level of its format (else: the largest that occurs) at the largest scale. Where that is infinite each entry is computed.
#pragma once

#include <cstddef>
#include <optional>

#include "compressors/codec/codec.hpp"

namespace fl::codec {

// |x| of the largest of v [n], 0 for n = 0, infinity where one is NaN or infinite.
template <class T>
[[nodiscard]] FL_API T largest_magnitude(const T* v, std::size_t n);

// The first of v [n] that is NaN or infinite.
template <class T>
[[nodiscard]] std::optional<std::size_t> first_not_finite(const T* v, std::size_t n);

// Whether every number that the message stands for is finite. `tally`: magnitudes and levels that were counted where the message lies. Null
// messages and silent ones are. The message agrees with its scope.
template <class T>
[[nodiscard]] FL_API bool is_finite(const Payload<T>& message, const Scope& scope, const Tally& tally = {});

// Whether this file, encoded_bits() or entropy_bits() would read more of the message than its sizes and counts, beside what the tally has.
template <class T>
[[nodiscard]] FL_API bool needs_content(const Payload<T>& message, const Tally& tally);

extern template bool needs_content<float>(const Payload<float>&, const Tally&);
extern template bool needs_content<double>(const Payload<double>&, const Tally&);
extern template float largest_magnitude<float>(const float*, std::size_t);
extern template double largest_magnitude<double>(const double*, std::size_t);
extern template bool is_finite<float>(const Payload<float>&, const Scope&, const Tally&);
extern template bool is_finite<double>(const Payload<double>&, const Scope&, const Tally&);

}  // namespace fl::codec
