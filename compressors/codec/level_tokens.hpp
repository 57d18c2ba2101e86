// Tokens of levels, which the writer (level_coder.cpp) and the reader (level_coder_read.cpp) of coded levels share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "compressors/codec/level_coder.hpp"

namespace fl::codec {

inline constexpr unsigned kLeastPrecision = 8, kMostPrecision = 16, kPrecisionBits = 4;
inline constexpr unsigned kDirectExponent = 8, kKept = 5;             // for formats with more than kMostDirect levels
inline constexpr std::uint64_t kLeastState = std::uint64_t{1} << 31;  // the decoder's state lies in [2^31, 2^63)

struct Token {
  std::uint32_t token = 0;
  unsigned extra_bits = 0;
  std::uint32_t extra = 0;
};

inline bool is_direct(const LevelFormat& format) { return num_levels(format) <= kMostDirect; }

inline std::size_t num_tokens(const LevelFormat& format) {
  if (is_direct(format)) return static_cast<std::size_t>(num_levels(format));
  return (std::size_t{1} << kDirectExponent) + (32 - kDirectExponent) * (std::size_t{1} << kKept);
}

inline unsigned extra_bits_of(std::uint32_t token) {
  constexpr std::uint32_t kDirect = 1U << kDirectExponent;
  return token < kDirect ? 0 : ((token - kDirect) >> kKept) + kDirectExponent - kKept;
}

inline Token wide_token(std::int32_t level, const LevelFormat& format) {
  const auto bits = static_cast<std::uint32_t>(level);
  const std::uint32_t v = format.min_level >= 0 ? bits - static_cast<std::uint32_t>(format.min_level)
                          : level < 0           ? ~(bits << 1)
                                                : bits << 1;
  if (v < 1U << kDirectExponent) return {.token = v};
  const unsigned exponent = static_cast<unsigned>(std::bit_width(v)) - 1, extra = exponent - kKept;
  const std::uint32_t kept = (v >> extra) & ((1U << kKept) - 1);
  return {.token = (1U << kDirectExponent) + ((exponent - kDirectExponent) << kKept) + kept,
          .extra_bits = extra,
          .extra = v & ((1U << extra) - 1)};
}

// Returns the level of a wide token. A result outside of 32 bits lies outside the format and is refused by the caller.
inline std::int64_t wide_level(std::uint32_t token, std::uint32_t extra, const LevelFormat& format) {
  constexpr std::uint32_t kDirect = 1U << kDirectExponent;
  std::uint32_t v = token;
  if (token >= kDirect) {
    const unsigned extra_bits = extra_bits_of(token);
    v = ((1U << kKept | ((token - kDirect) & ((1U << kKept) - 1))) << extra_bits) | extra;
  }
  if (format.min_level >= 0) return std::int64_t{format.min_level} + v;
  return (v & 1) != 0 ? -static_cast<std::int64_t>(v >> 1) - 1 : static_cast<std::int64_t>(v >> 1);
}

// Calls visit(levels) with the payload's levels in their stored type and returns its result.
template <class Message, class Visit>
auto with_levels(Message& message, Visit visit) {
  switch (message.level_width) {
    case LevelWidth::w8: return visit(message.template levels<std::int8_t>());
    case LevelWidth::w16: return visit(message.template levels<std::int16_t>());
    case LevelWidth::w32: break;
  }
  return visit(message.template levels<std::int32_t>());
}

}  // namespace fl::codec
