#include <algorithm>
#include <vector>

#include "compressors/codec/position_codes.hpp"
#include "fl_core/config/error.hpp"

namespace fl::codec {

void throw_disorder(const Segment& segment) {
  throw Error("a compressor's positions in parameters " + std::to_string(segment.begin) + " .. " + std::to_string(segment.end) +
              " (end excluded) are not ascending or leave that range: sort them and count them per segment");
}

std::span<const std::uint32_t> complement_of(std::span<const std::uint32_t> index, const Segment& segment) {
  static thread_local std::vector<std::uint32_t> others;
  others.clear();
  std::uint64_t next = segment.begin;
  for (const std::uint32_t position : index) {
    if (position < next || position >= segment.end) throw_disorder(segment);
    for (; next < position; ++next) others.push_back(static_cast<std::uint32_t>(next));
    ++next;
  }
  for (; next < segment.end; ++next) others.push_back(static_cast<std::uint32_t>(next));
  return others;
}

namespace {

BitCursor put_rice_word(BitCursor cursor, std::uint32_t gap, unsigned parameter) {
  const std::uint64_t zeros = gap >> parameter, low = low_bits(gap, parameter);
  if (zeros + 1 + parameter <= kPutBits) [[likely]] {
    cursor.put((low << 1 | 1) << zeros, static_cast<unsigned>(zeros) + 1 + parameter);
  } else {
    cursor.put_unary(zeros);
    cursor.put(low, parameter);
  }
  return cursor;
}

// Writes index[0] .. with `next` as the first possible position. It combines several code words per store, because each store waits for the
// previous one.
template <unsigned kTogether>
BitCursor put_rice_together(BitCursor cursor, std::span<const std::uint32_t> index, std::uint32_t next, unsigned parameter) {
  const auto mask = static_cast<std::uint32_t>(low_bits(~std::uint64_t{0}, parameter));
  std::size_t i = 0;
  for (; i + kTogether <= index.size(); i += kTogether) {
    std::uint32_t gap[kTogether];
    std::uint64_t zeros[kTogether], total = kTogether * (1 + parameter);
#pragma GCC unroll 4
    for (unsigned j = 0; j < kTogether; ++j) {
      gap[j] = index[i + j] - (j == 0 ? next : index[i + j - 1] + 1);
      zeros[j] = gap[j] >> parameter;
      total += zeros[j];
    }
    next = index[i + kTogether - 1] + 1;
    if (total > kPutBits) [[unlikely]] {
      for (unsigned j = 0; j < kTogether; ++j) cursor = put_rice_word(cursor, gap[j], parameter);
      continue;
    }
    std::uint64_t word = 0, shift = 0;
#pragma GCC unroll 4
    for (unsigned j = 0; j < kTogether; ++j) {
      word |= (std::uint64_t{gap[j] & mask} << 1 | 1) << (zeros[j] + shift);
      shift += zeros[j] + 1 + parameter;
    }
    cursor.put(word, static_cast<unsigned>(total));
  }
  for (; i < index.size(); ++i) {
    cursor = put_rice_word(cursor, index[i] - next, parameter);
    next = index[i] + 1;
  }
  return cursor;
}

BitCursor put_rice(BitCursor cursor, std::span<const std::uint32_t> index, std::uint32_t next, unsigned parameter) {
  cursor.put(parameter, kRiceParameterBits);
  return parameter <= 11 ? put_rice_together<4>(cursor, index, next, parameter) : put_rice_together<2>(cursor, index, next, parameter);
}

BitCursor put_blocks(BitCursor cursor, std::span<const std::uint32_t> index, const Segment& segment) {
  auto next = static_cast<std::uint32_t>(segment.begin);
  for (std::size_t from = 0; from < index.size(); from += kGapsPerBlock) {
    const auto block = index.subspan(from, std::min(kGapsPerBlock, index.size() - from));
    cursor = put_rice(cursor, block, next, best_rice_parameter(block, segment, block.front() - next));
    next = block.back() + 1;
  }
  return cursor;
}

BitCursor put_golomb(BitCursor cursor, std::span<const std::uint32_t> index, std::uint32_t next, std::uint32_t divisor) {
  const Golomb code(divisor);
  for (const std::uint32_t position : index) {
    const std::uint32_t gap = position - next, quotient = code.quotient(gap);
    next = position + 1;
    const std::uint64_t rest = gap - quotient * divisor, above = rest + code.short_ones;
    const bool is_short = rest < code.short_ones;
    const unsigned width = is_short ? code.width - 1 : code.width;
    const std::uint64_t word = is_short ? rest : above >> 1 | (above & 1) << (code.width - 1);
    if (quotient + 1 + width <= kPutBits && quotient < kPutBits) [[likely]] {
      cursor.put((word << 1 | 1) << quotient, quotient + 1 + width);
    } else {
      cursor.put_unary(quotient);
      cursor.put(word, width);
    }
  }
  return cursor;
}

BitCursor put_gamma(BitCursor cursor, std::span<const std::uint32_t> index, std::uint32_t begin) {
  std::uint64_t next = begin;
  for (const std::uint32_t position : index) {
    const std::uint64_t value = position - next + 1;
    next = std::uint64_t{position} + 1;
    const unsigned below = static_cast<unsigned>(std::bit_width(value)) - 1;
    const std::uint64_t low = value ^ (std::uint64_t{1} << below);
    if (2 * below + 1 <= kPutBits) [[likely]] {
      cursor.put((low << 1 | 1) << below, 2 * below + 1);
    } else {
      cursor.put_unary(below);
      cursor.put(low, below);
    }
  }
  return cursor;
}

BitCursor put_bitmap(BitCursor cursor, std::span<const std::uint32_t> index, const Segment& segment) {
  std::size_t at = segment.begin, i = 0;
  while (at < segment.end) {
    const std::size_t width = std::min<std::size_t>(kPutBits, segment.end - at);
    std::uint64_t word = 0;
    for (; i < index.size() && index[i] < at + width; ++i) word |= std::uint64_t{1} << (index[i] - at);
    cursor.put(word, static_cast<unsigned>(width));
    at += width;
  }
  return cursor;
}

BitCursor put_fixed(BitCursor cursor, std::span<const std::uint32_t> index, const Segment& segment) {
  const unsigned width = fixed_width(segment);
  for (const std::uint32_t position : index) cursor.put(position - segment.begin, width);
  return cursor;
}

}  // namespace

void write_positions(BitWriter& writer, const PositionPlan& plan, std::span<const std::uint32_t> index, const Segment& segment) {
  writer.put_gamma(index.size() + 1);
  if (index.empty() || index.size() == segment.size()) return;
  const auto listed = is_complement(index.size(), segment) ? complement_of(index, segment) : index;
  const auto begin = static_cast<std::uint32_t>(segment.begin);
  const auto code = static_cast<unsigned>(plan.code);
  const unsigned which = code < 4 ? code - 1 : 3 | (code - 4) << 2;
  writer.put(code == 0 ? 0 : 1 | which << 1, code_bits(plan.code));
  if (plan.code == PositionCode::golomb) writer.put_gamma(plan.golomb_divisor);
  BitCursor cursor = writer.reserve(plan.bits);
  switch (plan.code) {
    case PositionCode::rice: cursor = put_rice(cursor, listed, begin, plan.rice_parameter); break;
    case PositionCode::gamma: cursor = put_gamma(cursor, listed, begin); break;
    case PositionCode::bitmap: cursor = put_bitmap(cursor, listed, segment); break;
    case PositionCode::fixed: cursor = put_fixed(cursor, listed, segment); break;
    case PositionCode::golomb: cursor = put_golomb(cursor, listed, begin, plan.golomb_divisor); break;
    case PositionCode::blocks: cursor = put_blocks(cursor, listed, segment); break;
  }
  writer.commit(cursor);
}

}  // namespace fl::codec
