// What the writer (codec.cpp) and the reader (codec_read.cpp) of messages share about headers.
#pragma once

#include <cstdint>

#include "compressors/codec/codec.hpp"
#include "compressors/codec/values.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

inline constexpr std::uint64_t kVersion = 3;
inline constexpr unsigned kVersionBits = 2, kValuesBits = 3;
inline constexpr std::uint64_t kFactors = 5, kSum = 6;  // among the codes of values

template <class T>
constexpr unsigned kNativeBits = 8 * sizeof(T);

// What header and content depend on, worked out once per channel.
template <class T>
struct HeaderShape {
  HeaderShape(const Payload<T>& message, const Scope& scope)
      : own(has_own_shape(message, scope)),
        asks_plain(message.length == scope.P && has_gaps(scope) && message.positions == Positions::all),
        asks_extras(!own && !scope.excluded.empty()) {}
  bool own;          // a plain vector
  bool asks_plain;   // the header must say so
  bool asks_extras;  // the header must say whether excluded values follow
};

// Returns the bits of the scales of one segment that sends anything.
template <class T>
[[nodiscard]] std::uint64_t scale_bits(const Payload<T>& message) {
  return message.values == WireValue::levels ? scales_per_segment(message.level_format) * std::uint64_t{kNativeBits<T>} : 0;
}

}  // namespace fl::codec
