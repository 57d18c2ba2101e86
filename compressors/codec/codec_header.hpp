// Header definitions that the writer (codec.cpp) and the reader (codec_read.cpp) of messages share.
#pragma once

#include <cstdint>

#include "compressors/codec/codec.hpp"
#include "compressors/codec/values.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

inline constexpr std::uint64_t kVersion = 3;
inline constexpr unsigned kVersionBits = 2, kValuesBits = 3;
inline constexpr std::uint64_t kFactors = 5, kSum = 6;  // codes in the field `values`

template <class T>
constexpr unsigned kNativeBits = 8 * sizeof(T);

// The properties of a channel that determine header and content, computed once per channel.
template <class T>
struct HeaderShape {
  HeaderShape(const Payload<T>& message, const Scope& scope)
      : own(has_own_shape(message, scope)),
        asks_plain(message.length == scope.P && has_gaps(scope) && message.positions == Positions::all),
        asks_extras(!own && !scope.excluded.empty()) {}
  bool own;          // the vector is plain
  bool asks_plain;   // the header contains the bit `plain`
  bool asks_extras;  // the header contains the bit `extras`
};

// Returns the bits of the scales of one segment that sends anything.
template <class T>
[[nodiscard]] std::uint64_t scale_bits(const Payload<T>& message) {
  return message.values == WireValue::levels ? scales_per_segment(message.level_format) * std::uint64_t{kNativeBits<T>} : 0;
}

}  // namespace fl::codec
