#include "compressors/codec/values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "compressors/codec/finite.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/message/half.hpp"

namespace fl::codec {

// ---- the format of levels ----

namespace {

constexpr unsigned kMapBits = 2, kOtherBits = 3, kWidthBits = 5;
constexpr std::uint64_t kOthers = 3;  // the map code that announces another map
enum UnitCode : std::uint64_t { kUnitOne = 0, kUnitReciprocal = 1 };

bool get_signed(BitReader& reader, std::int32_t& v) {
  const std::uint64_t code = reader.get_gamma();
  const std::int64_t wide = unfolded(code);
  if (code == 0 || wide < INT32_MIN || wide > INT32_MAX) return false;
  v = static_cast<std::int32_t>(wide);
  return true;
}

UnitCode unit_code(const LevelFormat& format) {
  if (format.unit == 1) return kUnitOne;
  if (format.min_level < 0 && format.unit == 1 / -static_cast<double>(format.min_level)) return kUnitReciprocal;
  throw Error("a compressor's levels have the unit " + std::to_string(format.unit) +
              ", which no message carries; a constant of the scenario is named by Compressor::known_levels");
}

bool is_other(LevelMap map) { return map > LevelMap::power_of_two; }
std::uint64_t other_code(LevelMap map) { return static_cast<std::uint64_t>(map) - static_cast<std::uint64_t>(LevelMap::two_values); }

// Returns whether a map leaves only the scale open.
bool is_fixed(LevelMap map) { return map != LevelMap::linear && map != LevelMap::power_of_two && map != LevelMap::table; }
LevelFormat fixed_format(LevelMap map, bool has_scale) {
  switch (map) {
    case LevelMap::dynamic_tree: return dynamic_tree_format(has_scale);
    case LevelMap::fp8_e4m3:
    case LevelMap::fp8_e5m2: return fp8_format(map, has_scale);
    default: return {.map = map, .min_level = 0, .bits = 1, .has_scale = has_scale};
  }
}

std::string read_unit(BitReader& reader, LevelFormat& format) {
  if (reader.get(1) == kUnitOne) {
    format.unit = 1;
    return "";
  }
  if (format.min_level >= 0) return "a level format takes its unit from negative levels, which it does not have";
  format.unit = 1 / -static_cast<double>(format.min_level);
  return "";
}

std::string read_table(BitReader& reader, LevelFormat& format) {
  const std::uint64_t size = reader.get_gamma();
  if (size == 0 || size > kLargestTable)
    return "a table of " + std::to_string(size) + " numbers; 1 .. " + std::to_string(kLargestTable) + " are possible";
  const bool has_scale = format.has_scale;
  std::int32_t min_level = 0;
  if (!get_signed(reader, min_level)) return "a level format without its smallest level";
  format = table_format(static_cast<std::uint32_t>(size), min_level);
  format.has_scale = has_scale;
  return "";
}

// Reads the fields after map and has_scale. Fields that the map does not use keep their defaults, so that equal messages have equal bytes.
std::string read_map(BitReader& reader, LevelFormat& format) {
  if (is_fixed(format.map)) {
    format = fixed_format(format.map, format.has_scale);
    return "";
  }
  if (format.map == LevelMap::table) return read_table(reader, format);
  format.bits = static_cast<std::uint8_t>(reader.get(kWidthBits) + 1);
  if (!get_signed(reader, format.min_level)) return "a level format without its smallest level";
  if (format.map == LevelMap::linear) return read_unit(reader, format);
  return get_signed(reader, format.min_exponent) ? "" : "a level format without its exponent";
}

std::string check_table(const LevelFormat& format) {
  if (format.table_size < 1 || format.table_size > kLargestTable) {
    return "a table of " + std::to_string(format.table_size) + " numbers; 1 .. " + std::to_string(kLargestTable) + " are possible";
  }
  if (format.bits != table_format(format.table_size).bits) return "a table's levels have as many bits as its size asks for";
  return format.has_scale ? "" : "a table without its numbers";
}

}  // namespace

std::string check_format(const LevelFormat& format) {
  if (format.bits < 1 || format.bits > 32) return "levels of " + std::to_string(format.bits) + " bits; 1 .. 32 are possible";
  if (is_fixed(format.map)) {
    const LevelFormat fixed = fixed_format(format.map, format.has_scale);
    if (format.bits != fixed.bits || format.min_level != fixed.min_level) {
      return "levels of this map start at " + std::to_string(fixed.min_level) + " and have " + std::to_string(fixed.bits) + " bits";
    }
  }
  if (format.map == LevelMap::two_values && !format.has_scale) return "two values without their numbers";
  if (format.map == LevelMap::table) {
    if (std::string wrong = check_table(format); !wrong.empty()) return wrong;
  }
  if (format.min_level + (std::int64_t{1} << format.bits) - 1 > INT32_MAX) {
    return "levels from " + std::to_string(format.min_level) + " in " + std::to_string(format.bits) + " bits leave 32-bit integers";
  }
  // |level| - 1 + min_exponent is computed in 32 bits.
  constexpr std::int32_t kExponents = 1 << 20;
  if (format.map == LevelMap::power_of_two && (format.bits > 20 || std::abs(std::int64_t{format.min_level}) > kExponents ||
                                               std::abs(std::int64_t{format.min_exponent}) > kExponents)) {
    return "exponents of levels beyond " + std::to_string(kExponents);
  }
  if (!std::isfinite(format.unit)) return "the unit of levels is not finite";
  return "";
}

namespace {

std::uint64_t format_bits(const LevelFormat& format) {
  const std::uint64_t fixed = kMapBits + 1 + (is_other(format.map) ? kOtherBits : 0);
  if (is_fixed(format.map)) return fixed;
  const std::uint64_t min = gamma_bits(folded(format.min_level));
  if (format.map == LevelMap::table) return fixed + gamma_bits(format.table_size) + min;
  if (format.map == LevelMap::power_of_two) return fixed + kWidthBits + min + gamma_bits(folded(format.min_exponent));
  (void)unit_code(format);
  return fixed + kWidthBits + min + 1;
}

void write_format(BitWriter& writer, const LevelFormat& format) {
  if (is_other(format.map)) {
    writer.put(kOthers | other_code(format.map) << kMapBits, kMapBits + kOtherBits);
  } else {
    writer.put(static_cast<std::uint64_t>(format.map), kMapBits);
  }
  writer.put(format.has_scale ? 1 : 0, 1);
  if (is_fixed(format.map)) return;
  if (format.map == LevelMap::table) {
    writer.put_gamma(format.table_size);
    return writer.put_gamma(folded(format.min_level));
  }
  writer.put(format.bits - 1U, kWidthBits);
  writer.put_gamma(folded(format.min_level));
  if (format.map == LevelMap::power_of_two) return writer.put_gamma(folded(format.min_exponent));
  writer.put(unit_code(format), 1);
}

std::string read_format(BitReader& reader, LevelFormat& format) {
  format = LevelFormat{};
  std::uint64_t map = reader.get(kMapBits);
  if (map == kOthers) map += reader.get(kOtherBits);
  if (map > static_cast<std::uint64_t>(LevelMap::fp8_e5m2)) return "unknown map of levels";
  format.map = static_cast<LevelMap>(map);
  format.has_scale = reader.get(1) != 0;
  return read_map(reader, format);
}

// Returns the known format completed by the fields that the sender adds.
LevelFormat completed(const KnownLevels& known, const LevelFormat& format) {
  LevelFormat whole = known.format;
  if (known.travels == KnownLevels::Travels::min_exponent) whole.min_exponent = format.min_exponent;
  if (known.travels == KnownLevels::Travels::top && format.min_level < 0 && format.min_level > INT32_MIN)
    whole = symmetric_levels(whole, -format.min_level);
  return whole;
}

void expect_known(const LevelFormat& format, const KnownLevels& known) {
  if (known.travels == KnownLevels::Travels::format || format == completed(known, format)) return;
  throw Error("a compressor's message has levels from " + std::to_string(format.min_level) + " in " + std::to_string(format.bits) +
              " bits with the unit " + std::to_string(format.unit) + " where its known_levels() names another format");
}

}  // namespace

std::uint64_t levels_header_bits(const LevelFormat& format, const KnownLevels& known) {
  expect_known(format, known);
  switch (known.travels) {
    case KnownLevels::Travels::format: return 1 + format_bits(format);
    case KnownLevels::Travels::top: return 1 + gamma_bits(static_cast<std::uint64_t>(-std::int64_t{format.min_level}));
    case KnownLevels::Travels::min_exponent: return 1 + gamma_bits(folded(format.min_exponent));
    case KnownLevels::Travels::nothing: break;
  }
  return 1;
}

void write_levels_header(BitWriter& writer, const LevelFormat& format, const KnownLevels& known, LevelCoding coding) {
  if (const std::string wrong = check_format(format); !wrong.empty()) throw Error("a compressor's level format cannot be sent: " + wrong);
  expect_known(format, known);
  writer.put(coding == LevelCoding::coded ? 1 : 0, 1);
  switch (known.travels) {
    case KnownLevels::Travels::format: return write_format(writer, format);
    case KnownLevels::Travels::top: return writer.put_gamma(static_cast<std::uint64_t>(-std::int64_t{format.min_level}));
    case KnownLevels::Travels::min_exponent: return writer.put_gamma(folded(format.min_exponent));
    case KnownLevels::Travels::nothing: break;
  }
}

std::string level_outside(const LevelFormat& format) {
  return "a level lies outside " + std::to_string(format.min_level) + " .. " + std::to_string(max_level(format));
}

void throw_level_outside(const LevelFormat& format) {
  throw Error("a compressor produced a level outside " + std::to_string(format.min_level) + " .. " + std::to_string(max_level(format)) +
              ", the range of its format");
}

std::string read_levels_header(BitReader& reader, const KnownLevels& known, LevelFormat& format, LevelCoding& coding) {
  coding = reader.get(1) != 0 ? LevelCoding::coded : LevelCoding::fixed_width;
  format = known.format;
  if (known.travels == KnownLevels::Travels::format) {
    if (std::string wrong = read_format(reader, format); !wrong.empty()) return wrong;
  } else if (known.travels == KnownLevels::Travels::top) {
    const std::uint64_t top = reader.get_gamma();
    if (top == 0 || top > INT32_MAX / 2) return "levels without a largest one";
    format = symmetric_levels(format, static_cast<std::int32_t>(top));
  } else if (known.travels == KnownLevels::Travels::min_exponent) {
    if (!get_signed(reader, format.min_exponent)) return "a level format without its exponent";
  }
  return reader.past_end() ? "the message ends inside a level format" : check_format(format);
}

// ---- raw values ----

namespace {

constexpr const char* kValuesTooShort = "the message ends inside the values";

template <class T>
[[nodiscard]] std::uint64_t wire_bits(T value, WireValue format) {
  if (format == WireValue::fp64) return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if (format == WireValue::fp32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return format == WireValue::bf16 ? small_float_bits<Bfloat16>(value) : half_bits(value);
}

template <class T, WireValue kFormat>
BitCursor put_values(BitCursor cursor, const T* value, std::size_t count) {
  constexpr unsigned kBits = static_cast<unsigned>(bits_of(kFormat));
  for (std::size_t i = 0; i < count; ++i) cursor.put_wide(wire_bits(value[i], kFormat), kBits);
  return cursor;
}

template <class T, WireValue kFormat>
void get_values(BitReader& shared, T* value, std::size_t count) {
  constexpr unsigned kBits = static_cast<unsigned>(bits_of(kFormat));
  BitReader reader = shared;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = reader.get(kBits);
    if constexpr (kFormat == WireValue::fp64) {
      value[i] = static_cast<T>(std::bit_cast<double>(bits));
    } else if constexpr (kFormat == WireValue::fp32) {
      value[i] = static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    } else if constexpr (kFormat == WireValue::bf16) {
      value[i] = small_float_value<Bfloat16, T>(static_cast<std::uint16_t>(bits));
    } else {
      value[i] = half_value<T>(static_cast<std::uint16_t>(bits));
    }
  }
  shared = reader;
}

// The unsigned integer of a native value's size.
template <class T>
using Word = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

// Writes native values behind 1 to 7 bits of the last byte. Every word of the output holds the upper bits of one value and the lower bits
// of the next one, so words do not wait for each other and the loop runs in vectors.
template <class T>
BitCursor put_shifted(BitCursor cursor, const T* value, std::size_t count) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned fill = cursor.fill;
  Word<T> before = 0, last = 0;
  std::memcpy(&before, value, sizeof(before));
  before = before << fill | static_cast<Word<T>>(cursor.pending);
  std::memcpy(cursor.at, &before, sizeof(before));
  for (std::size_t i = 1; i < count; ++i) {
    Word<T> low = 0, high = 0;
    std::memcpy(&low, value + i - 1, sizeof(low));
    std::memcpy(&high, value + i, sizeof(high));
    const Word<T> word = low >> (kBits - fill) | high << fill;
    std::memcpy(cursor.at + i * sizeof(T), &word, sizeof(word));
  }
  std::memcpy(&last, value + count - 1, sizeof(last));
  cursor.pending = last >> (kBits - fill);
  cursor.at += count * sizeof(T);
  std::memcpy(cursor.at, &cursor.pending, sizeof(cursor.pending));
  return cursor;
}

// Reads native values that put_shifted() has written.
template <class T>
void get_shifted(BitReader& reader, T* value, std::size_t count) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned fill = static_cast<unsigned>(reader.position() % 8);
  const std::byte* from = reader.bytes();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    Word<T> low = 0, high = 0;
    std::memcpy(&low, from + i * sizeof(T), sizeof(low));
    std::memcpy(&high, from + (i + 1) * sizeof(T), sizeof(high));
    const Word<T> word = low >> fill | high << (kBits - fill);
    std::memcpy(value + i, &word, sizeof(word));
  }
  reader.skip((count - 1) * std::uint64_t{kBits});
  const auto last = static_cast<Word<T>>(reader.get(kBits));  // no whole word follows it
  std::memcpy(value + count - 1, &last, sizeof(last));
}

// Returns an error if a number read from `start` on is not finite; the reader then goes back to the first such number.
template <class T>
std::string refuse_not_finite(BitReader& reader, const BitReader& start, const T* value, std::size_t count, WireValue format) {
  const std::optional<std::size_t> first = first_not_finite(value, count);
  if (!first) return "";
  reader = start;
  reader.skip(*first * static_cast<std::uint64_t>(bits_of(format)));
  return "number " + std::to_string(*first) + " is " + (value[*first] != value[*first] ? "not a number" : "infinite");
}

}  // namespace

template <class T>
void write_raw(BitWriter& writer, const T* value, std::size_t count, WireValue format) {
  const std::uint64_t bits = static_cast<std::uint64_t>(count) * static_cast<unsigned>(bits_of(format));
  BitCursor cursor = writer.reserve(bits);
  if (format == kNativeWire<T> && cursor.fill == 0 && count > 0) {
    std::memcpy(cursor.at, value, count * sizeof(T));
    cursor.at += count * sizeof(T);
  } else if (format == kNativeWire<T> && count > 0) {
    cursor = put_shifted(cursor, value, count);
  } else {
    switch (format) {
      case WireValue::fp64: cursor = put_values<T, WireValue::fp64>(cursor, value, count); break;
      case WireValue::fp32: cursor = put_values<T, WireValue::fp32>(cursor, value, count); break;
      case WireValue::fp16: cursor = put_values<T, WireValue::fp16>(cursor, value, count); break;
      case WireValue::bf16: cursor = put_values<T, WireValue::bf16>(cursor, value, count); break;
      case WireValue::levels: throw Error("levels are not raw values");
    }
  }
  writer.commit(cursor);
}

template <class T>
std::string read_raw(BitReader& reader, T* value, std::size_t count, WireValue format) {
  const std::uint64_t bits = static_cast<std::uint64_t>(count) * static_cast<unsigned>(bits_of(format));
  if (reader.remaining() < bits) return kValuesTooShort;
  const BitReader start = reader;
  if (format == kNativeWire<T> && reader.position() % 8 == 0 && count > 0) {
    std::memcpy(value, reader.bytes(), count * sizeof(T));
    reader.skip(bits);
  } else if (format == kNativeWire<T> && count > 0) {
    get_shifted(reader, value, count);
  } else {
    switch (format) {
      case WireValue::fp64:
        if (sizeof(T) < sizeof(double)) return "fp64 values in a run of single precision";
        get_values<T, WireValue::fp64>(reader, value, count);
        break;
      case WireValue::fp32: get_values<T, WireValue::fp32>(reader, value, count); break;
      case WireValue::fp16: get_values<T, WireValue::fp16>(reader, value, count); break;
      case WireValue::bf16: get_values<T, WireValue::bf16>(reader, value, count); break;
      case WireValue::levels: return "levels are not raw values";
    }
  }
  return refuse_not_finite(reader, start, value, count, format);
}

// ---- levels ----

namespace {

template <class L>
BitCursor put_levels(BitCursor cursor, const L* level, std::size_t count, const LevelFormat& format) {
  const unsigned bits = format.bits, per_word = kPutBits / bits;
  const auto min = static_cast<std::uint32_t>(format.min_level);
  const std::uint32_t largest = static_cast<std::uint32_t>(max_level(format)) - min;
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < count;) {
    const unsigned n = static_cast<unsigned>(std::min<std::size_t>(per_word, count - i));
    std::uint64_t word = 0;
    for (unsigned j = 0; j < n; ++j, ++i) {
      const std::uint32_t code = static_cast<std::uint32_t>(static_cast<std::int32_t>(level[i])) - min;
      worst = std::max(worst, code);
      word |= static_cast<std::uint64_t>(code) << (j * bits);
    }
    if (worst > largest) throw_level_outside(format);
    cursor.put(word, n * bits);
  }
  return cursor;
}

template <class L>
std::string get_levels(BitReader& reader, L* level, std::size_t count, const LevelFormat& format) {
  const unsigned bits = format.bits;
  const auto min = static_cast<std::uint32_t>(format.min_level);
  const std::uint32_t largest = static_cast<std::uint32_t>(max_level(format)) - min;
  const BitReader from = reader;
  std::uint64_t position = from.position();
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < count; ++i, position += bits) {
    const auto code = static_cast<std::uint32_t>(low_bits(from.peek_at(position), bits));
    worst = std::max(worst, code);
    level[i] = static_cast<L>(static_cast<std::int32_t>(min + code));
  }
  if (worst > largest) return level_outside(format);
  reader.skip(position - reader.position());
  return holds_nan(level, count, format.map) ? "a level is not a number" : "";
}

}  // namespace

template <class T>
void write_levels(BitWriter& writer, const Payload<T>& payload, std::size_t first, std::size_t count) {
  const LevelFormat& format = payload.level_format;
  BitCursor cursor = writer.reserve(static_cast<std::uint64_t>(count) * format.bits);
  switch (payload.level_width) {
    case LevelWidth::w8: cursor = put_levels(cursor, payload.template levels<std::int8_t>() + first, count, format); break;
    case LevelWidth::w16: cursor = put_levels(cursor, payload.template levels<std::int16_t>() + first, count, format); break;
    case LevelWidth::w32: cursor = put_levels(cursor, payload.template levels<std::int32_t>() + first, count, format); break;
  }
  writer.commit(cursor);
}

template <class T>
std::string read_levels(BitReader& reader, Payload<T>& payload, std::size_t first, std::size_t count) {
  const LevelFormat& format = payload.level_format;
  if (reader.remaining() < static_cast<std::uint64_t>(count) * format.bits) return kValuesTooShort;
  switch (payload.level_width) {
    case LevelWidth::w8: return get_levels(reader, payload.template levels<std::int8_t>() + first, count, format);
    case LevelWidth::w16: return get_levels(reader, payload.template levels<std::int16_t>() + first, count, format);
    case LevelWidth::w32: return get_levels(reader, payload.template levels<std::int32_t>() + first, count, format);
  }
  return "unknown width of levels";
}

template void write_raw<float>(BitWriter&, const float*, std::size_t, WireValue);
template void write_raw<double>(BitWriter&, const double*, std::size_t, WireValue);
template std::string read_raw<float>(BitReader&, float*, std::size_t, WireValue);
template std::string read_raw<double>(BitReader&, double*, std::size_t, WireValue);
template void write_levels<float>(BitWriter&, const Payload<float>&, std::size_t, std::size_t);
template void write_levels<double>(BitWriter&, const Payload<double>&, std::size_t, std::size_t);
template std::string read_levels<float>(BitReader&, Payload<float>&, std::size_t, std::size_t);
template std::string read_levels<double>(BitReader&, Payload<double>&, std::size_t, std::size_t);

}  // namespace fl::codec
