// The bit encoding of a message's values: raw numbers, and levels of a fixed width.
//
//   raw      the bits of fp64, fp32, fp16 or bf16 (fl_core/message/half.hpp). The receiver refuses NaN and infinities.
//   levels   level - min_level in `bits` bits. max_level = min_level + table_size - 1 in a table; other formats with negative levels are
//            symmetric or two's complement:
//              max_level = min(min_level + 2^bits - 1, -min_level)  if min_level < 0,  else min_level + 2^bits - 1
//            The receiver refuses 8-bit floats that represent NaN, like raw ones.
//   header   coded:1 (1: the levels of all segments follow, in the code of level_coder.hpp), then all that the receiver does not know from
//            its own operator (KnownLevels): nothing, gamma(top), signed(min_exponent), or the format
//   format   map:2 has_scale:1 ...
//            0 linear         (bits - 1):5 signed(min_level) unit:1             unit: 0 = 1, 1 = 1/(-min_level) (s levels on each side)
//            1 sign           nothing more, levels are 0 and 1
//            2 power_of_two   (bits - 1):5 signed(min_level) signed(min_exponent)
//            3 others         which:3 in front of has_scale, then
//              0 two_values                  nothing more, levels are 0 and 1
//              1 table                       gamma(table_size) signed(min_level); bits = max(1, ceil(log2 table_size))
//              2 dynamic_tree                nothing more, levels are -127 .. 127 in 8 bits
//              3 fp8_e4m3, 4 fp8_e5m2        nothing more, levels are -128 .. 127 in 8 bits
// Other units are configured and not transmitted. Fields that a map does not use (unit, min_exponent, table_size) are not sent and decode
// to their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "compressors/codec/bit_stream.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/message/small_float.hpp"

namespace fl::codec {

[[nodiscard]] constexpr std::int32_t max_level(const LevelFormat& format) {
  if (format.map == LevelMap::table) return format.min_level + static_cast<std::int32_t>(format.table_size) - 1;
  const std::int64_t min = format.min_level;
  const std::int64_t all = min + (std::int64_t{1} << format.bits) - 1;
  return static_cast<std::int32_t>(min < 0 && all > -min ? -min : all);
}

// Returns the narrowest storage of a format's levels, which decode() uses.
[[nodiscard]] constexpr LevelWidth narrowest_width(const LevelFormat& format) {
  const auto holds = [&](std::int32_t limit) { return format.min_level >= -limit - 1 && max_level(format) <= limit; };
  return holds(INT8_MAX) ? LevelWidth::w8 : holds(INT16_MAX) ? LevelWidth::w16 : LevelWidth::w32;
}

// Returns "" or the fault of the format, e.g. levels that leave 32 bits.
[[nodiscard]] FL_API std::string check_format(const LevelFormat& format);

enum class LevelCoding : std::uint8_t { fixed_width, coded };

// Length, writing and reading of the header of levels of `format`; the receiver already knows `known`. Length and writing throw Error if
// the two contradict each other, and for a unit that would have to be transmitted.
[[nodiscard]] FL_API std::uint64_t levels_header_bits(const LevelFormat& format, const KnownLevels& known);
FL_API void write_levels_header(BitWriter& writer, const LevelFormat& format, const KnownLevels& known, LevelCoding coding);
[[nodiscard]] FL_API std::string read_levels_header(BitReader& reader, const KnownLevels& known, LevelFormat& format, LevelCoding& coding);

// Error text for a level outside its format, for decoding and for encoding.
[[nodiscard]] FL_API std::string level_outside(const LevelFormat& format);
[[noreturn]] FL_API void throw_level_outside(const LevelFormat& format);

// Returns whether one of the levels is an 8-bit float that represents NaN.
template <class L>
[[nodiscard]] bool holds_nan(const L* level, std::size_t count, LevelMap map) {
  bool nan = false;
  if (map == LevelMap::fp8_e4m3) {
    for (std::size_t i = 0; i < count; ++i) nan |= is_small_nan<Fp8E4m3>(static_cast<std::uint8_t>(level[i]));
  }
  if (map == LevelMap::fp8_e5m2) {
    for (std::size_t i = 0; i < count; ++i) nan |= is_small_nan<Fp8E5m2>(static_cast<std::uint8_t>(level[i]));
  }
  return nan;
}

// Writes and reads raw numbers in `format`, to which they are already rounded.
template <class T>
void write_raw(BitWriter& writer, const T* value, std::size_t count, WireValue format);
template <class T>
[[nodiscard]] std::string read_raw(BitReader& reader, T* value, std::size_t count, WireValue format);

// Write and read the levels first .. first+count-1 of the payload. write_levels throws Error for a level outside the format.
template <class T>
void write_levels(BitWriter& writer, const Payload<T>& payload, std::size_t first, std::size_t count);
template <class T>
[[nodiscard]] std::string read_levels(BitReader& reader, Payload<T>& payload, std::size_t first, std::size_t count);

}  // namespace fl::codec
