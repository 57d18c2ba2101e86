// Formats that map integer levels to numbers. Quantisers share them with their receivers.
//
//   map                 number of a level                                        scales per segment
//   linear              level * (scale * unit)                                   1           qsgd (unit = 1/s), scaled integers (1/alpha)
//   sign                level 0: -scale, 1: +scale                               1           ef_sign, stc
//   power_of_two        0, or sign(level) * 2^(|level| - 1 + min_exponent) * scale   1       natural compression (no scale), dithering
//   two_values          level 0: scale[0], 1: scale[1]                           2           one-bit SGD, Dryden
//   table               scale[level - min_level]                                 table_size  SketchML, codebooks that are learned
//   dynamic_tree        tree(level) * scale, -127 <= level <= 127                1           8-bit approximations of Dettmers
//   fp8_e4m3, fp8_e5m2  number(level as a byte) * scale, -128 <= level <= 127    1           8-bit floats (small_float.hpp)
// A format without scales (has_scale = false) has scale 1; two_values and table always have scales.
//
// Both sides know the dynamic tree; it is not sent. Its code has a sign and seven bits: n zeros stand for 10^-n, a one ends them, and the
// remaining bits divide 0.1 .. 1 into equal parts and select the middle of one. With m = |level|, i = floor(log2 m) = 6 - n:
//   tree(0) = 0,   tree(level) = sign(level) 10^(i - 6) (0.1 + 0.9 (m - 2^i + 1/2) / 2^i),   5.5e-7 .. 0.993
// T. Dettmers, 8-bit approximations for parallelism in deep learning, ICLR 2016.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/message/small_float.hpp"

namespace fl {

enum class LevelMap : std::uint8_t { linear, sign, power_of_two, two_values, table, dynamic_tree, fp8_e4m3, fp8_e5m2 };

// The information that a receiver needs in addition to the bits of the levels. Most of it follows from the operator's configuration and
// does not travel (KnownLevels).
struct LevelFormat {
  LevelMap map = LevelMap::linear;
  std::int32_t min_level = 0;     // smallest level; the wire carries level - min_level in `bits` bits
  std::uint8_t bits = 0;          // 1 .. 32
  std::int32_t min_exponent = 0;  // power_of_two
  double unit = 1;                // linear
  bool has_scale = true;          // false: scale is 1 and is not sent
  std::uint32_t table_size = 0;   // table: entries per segment, 1 .. kLargestTable
  friend bool operator==(const LevelFormat&, const LevelFormat&) = default;
};
inline constexpr std::uint32_t kLargestTable = 65536;

// The part of a level format that both sides know from the scenario and the round, and the part that is sent. The sender's format equals
// the known one except for the part that travels.
struct KnownLevels {
  enum class Travels : std::uint8_t {
    format,        // nothing is known: map, range and exponent are sent; a unit cannot be sent
    top,           // the largest level: min_level = -top, and `bits` is the number of bits for 2 top + 1 levels
    min_exponent,  // of a power_of_two
    nothing,
  };
  Travels travels = Travels::format;
  LevelFormat format = {};
};
// The positions that both sides derive from a common seed: how many entries each segment has. Compressor::reconstruct() draws which.
struct KnownPositions {
  std::vector<std::uint32_t> counts;  // [S]
};
struct MessageLevels {
  KnownLevels first, rest;                    // of a message, and of the second message attached to it (Payload::rest)
  const KnownPositions* positions = nullptr;  // of lists whose positions do not travel; belongs to the operator. Null: they travel
};
[[nodiscard]] constexpr MessageLevels all_known(const LevelFormat& format) {
  return {.first = {KnownLevels::Travels::nothing, format}, .rest = {}, .positions = nullptr};
}
[[nodiscard]] constexpr MessageLevels all_known_but(KnownLevels::Travels travels, const LevelFormat& format) {
  return {.first = {travels, format}, .rest = {}, .positions = nullptr};
}
// Returns `format` with levels -top .. top in the fewest bits.
[[nodiscard]] constexpr LevelFormat symmetric_levels(LevelFormat format, std::int32_t top) {
  format.min_level = -top;
  format.bits = 1;
  while ((std::uint64_t{1} << format.bits) < 2 * static_cast<std::uint64_t>(top) + 1) ++format.bits;
  return format;
}

// Formats whose only choice is whether a scale is sent.
[[nodiscard]] constexpr LevelFormat sign_format(bool has_scale = true) {
  return {.map = LevelMap::sign, .bits = 1, .has_scale = has_scale};
}
[[nodiscard]] constexpr LevelFormat two_value_format() { return {.map = LevelMap::two_values, .min_level = 0, .bits = 1}; }
[[nodiscard]] constexpr LevelFormat dynamic_tree_format(bool has_scale = true) {
  return {.map = LevelMap::dynamic_tree, .min_level = -127, .bits = 8, .has_scale = has_scale};
}
// map: fp8_e4m3 or fp8_e5m2
[[nodiscard]] constexpr LevelFormat fp8_format(LevelMap map, bool has_scale = true) {
  return {.map = map, .min_level = -128, .bits = 8, .has_scale = has_scale};
}
// Returns a table format with levels min_level .. min_level + table_size - 1.
[[nodiscard]] constexpr LevelFormat table_format(std::uint32_t table_size, std::int32_t min_level = 0) {
  std::uint8_t bits = 1;
  while (bits < 32 && (std::uint64_t{1} << bits) < table_size) ++bits;
  return {.map = LevelMap::table, .min_level = min_level, .bits = bits, .table_size = table_size};
}

// Returns the number of scales per segment. Payload::scale holds them segment after segment.
[[nodiscard]] FL_HD constexpr std::size_t scales_per_segment(const LevelFormat& format) {
  if (!format.has_scale) return 0;
  return format.map == LevelMap::two_values ? 2 : format.map == LevelMap::table ? format.table_size : 1;
}

// Returns tree(level) of the comment above; -127 <= level <= 127.
[[nodiscard]] FL_HD constexpr double dynamic_tree(std::int32_t level) {
  if (level == 0) return 0;
  const std::int32_t m = level < 0 ? -level : level;
  std::int32_t i = 0;
  while (m >> (i + 1) != 0) ++i;
  const double parts = static_cast<double>(std::int32_t{1} << i);
  double magnitude = 0.1 + 0.9 * ((static_cast<double>(m) + 0.5 - parts) / parts);
  double power = 1;
  for (; i < 6; ++i) power *= 10;
  magnitude /= power;
  return level < 0 ? -magnitude : magnitude;
}

// Returns the value of an 8-bit float that travels as a level.
template <class T>
[[nodiscard]] FL_HD inline T fp8_value(LevelMap map, std::int32_t level) {
  const auto code = static_cast<std::uint8_t>(level);
  return map == LevelMap::fp8_e4m3 ? small_float_value<Fp8E4m3, T>(code) : small_float_value<Fp8E5m2, T>(code);
}
// Returns the nearest 8-bit float as a level. Values that are too large become the largest one.
template <class T>
[[nodiscard]] FL_HD inline std::int32_t fp8_level(LevelMap map, T x) {
  return static_cast<std::int8_t>(map == LevelMap::fp8_e4m3 ? small_float_bits<Fp8E4m3>(x) : small_float_bits<Fp8E5m2>(x));
}

// Returns the number of a level. Sender, receiver and aggregator use this same expression. scale: [scales_per_segment] of its segment
template <class T>
[[nodiscard]] FL_HD inline T level_value(const LevelFormat& format, std::int32_t level, const T* scale) {
  const T factor = format.has_scale ? scale[0] : T(1);
  switch (format.map) {
    case LevelMap::linear: return static_cast<T>(level) * (factor * static_cast<T>(format.unit));
    case LevelMap::sign: return level != 0 ? factor : -factor;
    case LevelMap::power_of_two: {
      if (level == 0) return T(0) * factor;
      const int exponent = (level < 0 ? -level : level) - 1 + format.min_exponent;
      const T magnitude = static_cast<T>(ldexp(1.0, exponent)) * factor;
      return level < 0 ? -magnitude : magnitude;
    }
    case LevelMap::two_values: return scale[level != 0 ? 1 : 0];
    case LevelMap::table: return scale[level - format.min_level];
    case LevelMap::dynamic_tree: return static_cast<T>(dynamic_tree(level)) * factor;
    case LevelMap::fp8_e4m3:
    case LevelMap::fp8_e5m2: return fp8_value<T>(format.map, level) * factor;
  }
  return T(0);
}
// Does the same for a format with one scale, or without scales (scale 1).
template <class T>
requires std::is_floating_point_v<T>
[[nodiscard]] FL_HD inline T level_value(const LevelFormat& format, std::int32_t level, T scale) {
  return level_value(format, level, static_cast<const T*>(&scale));
}

// The argument that a quantiser receives for its segment: a pointer to all scales if it accepts one, otherwise the scale.
template <class Quantizer, class T>
inline constexpr bool kTakesNumbers = std::is_invocable_v<const Quantizer&, T, const T*, std::uint32_t, std::size_t>;
template <class Quantizer, class T>
[[nodiscard]] FL_HD inline auto numbers_for(const LevelFormat& format, const T* scale) {
  if constexpr (kTakesNumbers<Quantizer, T>)
    return scale;
  else
    return format.has_scale ? scale[0] : T(1);
}

// Storage type of levels: the narrowest of int8, int16, int32 that holds the format's range.
enum class LevelWidth : std::uint8_t { w8 = 1, w16 = 2, w32 = 4 };

}  // namespace fl
