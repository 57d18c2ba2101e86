#include <algorithm>

#include "compressors/codec/position_codes.hpp"
#include "fl_core/memory/buffer.hpp"

namespace fl::codec {

namespace {

constexpr unsigned kPeekBits = 57;
constexpr const char* kPositionsTooShort = "the message ends inside the positions";

// Returns the error for a code word that is missing or leads out of the segment.
std::string bad_gap(const BitReader& reader, const Segment& segment) {
  if (reader.past_end()) return kPositionsTooShort;
  return "a position lies behind the end of the segment, parameter " + std::to_string(segment.end);
}

// Reads a few code words per load: each waits for the length of the previous one, but not for memory. `next`: the first possible position
// of the next code word, from the segment's begin; it is updated.
std::string get_rice(BitReader& shared, const Segment& segment, std::size_t count, std::uint32_t* index, std::uint64_t& shared_next) {
  BitReader reader = shared;
  const unsigned parameter = static_cast<unsigned>(reader.get(kRiceParameterBits));
  const std::size_t per_load = std::clamp(kPeekBits / (parameter + 3), 1U, 4U);
  const std::uint64_t size = segment.size();
  std::uint64_t next = shared_next;
  for (std::size_t i = 0; i < count;) {
    std::uint64_t word = reader.peek();
    unsigned left = kPeekBits;
    for (const std::size_t stop = std::min(count, i + per_load); i < stop; ++i) {
      const unsigned zeros = static_cast<unsigned>(std::countr_zero(word)), width = zeros + 1 + parameter;
      if (width > left) break;
      next += (std::uint64_t{zeros} << parameter) | low_bits(word >> zeros >> 1, parameter);
      if (next >= size) return bad_gap(reader, segment);
      index[i] = static_cast<std::uint32_t>(segment.begin + next++);
      word >>= width;
      left -= width;
    }
    reader.skip(kPeekBits - left);
    if (left < kPeekBits) continue;
    // This code word is longer than a load.
    const std::uint64_t high = reader.get_unary(size >> parameter);
    if (high == BitReader::kNoOne) return bad_gap(reader, segment);
    next += (high << parameter) | reader.get(parameter);
    if (next >= size) return bad_gap(reader, segment);
    index[i++] = static_cast<std::uint32_t>(segment.begin + next++);
  }
  shared = reader;
  shared_next = next;
  return reader.past_end() ? kPositionsTooShort : "";
}

std::string get_blocks(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index) {
  std::uint64_t next = 0;
  for (std::size_t from = 0; from < count; from += kGapsPerBlock) {
    std::string wrong = get_rice(reader, segment, std::min(kGapsPerBlock, count - from), index + from, next);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string get_golomb(BitReader& shared, const Segment& segment, std::size_t count, std::uint32_t* index) {
  BitReader reader = shared;
  const std::uint64_t size = segment.size(), divisor = reader.get_gamma();
  if (divisor < 3 || divisor > kMaxPositions || std::has_single_bit(divisor)) {
    return "Golomb codes with divisor " + std::to_string(divisor) + ", which must be 3 or more and no power of two";
  }
  const Golomb code(static_cast<std::uint32_t>(divisor));
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word = reader.peek(), zeros = static_cast<std::uint64_t>(std::countr_zero(word));
    if (zeros + 1 + code.width <= kPeekBits) [[likely]] {
      word = word >> zeros >> 1;
      reader.skip(zeros + 1);
    } else {
      zeros = reader.get_unary(size / divisor);
      if (zeros == BitReader::kNoOne) return bad_gap(reader, segment);
      word = reader.peek();
    }
    std::uint64_t rest = low_bits(word, code.width - 1);
    const bool is_short = rest < code.short_ones;
    if (!is_short) rest = 2 * rest + (word >> (code.width - 1) & 1) - code.short_ones;
    reader.skip(is_short ? code.width - 1 : code.width);
    next += zeros * divisor + rest;
    if (next >= size) return bad_gap(reader, segment);
    index[i] = static_cast<std::uint32_t>(segment.begin + next++);
  }
  shared = reader;
  return reader.past_end() ? kPositionsTooShort : "";
}

std::string get_gamma(BitReader& shared, const Segment& segment, std::size_t count, std::uint32_t* index) {
  BitReader reader = shared;
  const std::uint64_t size = segment.size();
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = reader.peek();
    const unsigned below = static_cast<unsigned>(std::countr_zero(word));
    std::uint64_t value = 0;
    if (2 * below + 1 <= kPeekBits) [[likely]] {
      value = (std::uint64_t{1} << below) | low_bits(word >> below >> 1, below);
      reader.skip(2 * below + 1);
    } else {
      value = reader.get_gamma();
      if (value == 0) return bad_gap(reader, segment);
    }
    next += value;
    if (next > size) return bad_gap(reader, segment);
    index[i] = static_cast<std::uint32_t>(segment.begin + next - 1);
  }
  shared = reader;
  return reader.past_end() ? kPositionsTooShort : "";
}

std::string get_bitmap(BitReader& shared, const Segment& segment, std::size_t count, std::uint32_t* index) {
  if (shared.remaining() < segment.size()) return kPositionsTooShort;
  BitReader reader = shared;
  std::size_t found = 0;
  for (std::size_t at = segment.begin; at < segment.end; at += kPutBits) {
    const unsigned width = static_cast<unsigned>(std::min<std::size_t>(kPutBits, segment.end - at));
    std::uint64_t word = low_bits(reader.peek(), width);
    reader.skip(width);
    if (static_cast<std::size_t>(std::popcount(word)) > count - found) {
      return "the bitmap holds more positions than the " + std::to_string(count) + " announced";
    }
    for (; word != 0; word &= word - 1) index[found++] = static_cast<std::uint32_t>(at + static_cast<std::size_t>(std::countr_zero(word)));
  }
  if (found != count) return "the bitmap holds " + std::to_string(found) + " positions where " + std::to_string(count) + " were announced";
  shared = reader;
  return "";
}

std::string get_fixed(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index) {
  const unsigned width = fixed_width(segment);
  if (reader.remaining() < static_cast<std::uint64_t>(count) * width) return kPositionsTooShort;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = reader.get(width);
    if (offset >= segment.size()) return bad_gap(reader, segment);
    if (offset < next) return "positions are not ascending at parameter " + std::to_string(segment.begin + offset);
    index[i] = static_cast<std::uint32_t>(segment.begin + offset);
    next = offset + 1;
  }
  return "";
}

std::string read_list(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index) {
  std::uint64_t next = 0;
  if (reader.get(1) == 0) return get_rice(reader, segment, count, index, next);
  switch (reader.get(2)) {
    case 0: return get_gamma(reader, segment, count, index);
    case 1: return get_bitmap(reader, segment, count, index);
    case 2: return get_fixed(reader, segment, count, index);
    default: return reader.get(1) == 0 ? get_golomb(reader, segment, count, index) : get_blocks(reader, segment, count, index);
  }
}

// Writes the positions of the segment that are not in `others`.
void invert(std::span<const std::uint32_t> others, const Segment& segment, std::uint32_t* index) {
  std::uint64_t next = segment.begin;
  for (const std::uint32_t other : others) {
    for (; next < other; ++next) *index++ = static_cast<std::uint32_t>(next);
    ++next;
  }
  for (; next < segment.end; ++next) *index++ = static_cast<std::uint32_t>(next);
}

// Reads the positions that are not sent and writes the others; used if fewer positions are not sent.
std::string read_complement(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index) {
  Buffer<std::uint32_t> others(segment.size() - count);
  if (std::string wrong = others.empty() ? "" : read_list(reader, segment, others.size(), others.data()); !wrong.empty()) return wrong;
  invert(others.span(), segment, index);
  return "";
}

}  // namespace

std::string read_count(BitReader& reader, const Segment& segment, std::size_t& count) {
  count = 0;
  const std::uint64_t code = reader.get_gamma();
  if (code == 0 || reader.past_end()) return "the message ends inside a count of positions, or the count is longer than 33 bits";
  if (code - 1 > segment.size()) {
    return std::to_string(code - 1) + " positions are announced in a segment of " + std::to_string(segment.size()) + " parameters";
  }
  if (code > 1 && segment.end - 1 > kMaxPositions) return "positions of " + std::to_string(segment.end) + " parameters do not fit 32 bits";
  count = static_cast<std::size_t>(code - 1);
  return "";
}

std::string read_positions(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index) {
  if (count == 0) return "";
  return is_complement(count, segment) ? read_complement(reader, segment, count, index) : read_list(reader, segment, count, index);
}

}  // namespace fl::codec
