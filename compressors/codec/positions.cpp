#include "compressors/codec/positions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "fl_core/buffer.hpp"
#include "fl_core/error.hpp"

namespace fl::codec {

namespace {

constexpr unsigned kParameterBits = kRiceParameterBits, kLargestParameter = kLargestRiceParameter;
constexpr int kTried = 4;                               // Rice parameters that one pass over the positions measures
constexpr std::uint64_t kMaxPositions = 0xffffffffULL;  // indices have 32 bits

// Sums over the gaps behind the first. All fit 32 bits: the gaps of a segment add up to less than its size.
struct GapSums {
  std::uint32_t shifted[kTried] = {};
  std::uint64_t exponents = 0;  // sum floor(log2(g + 1))
  bool ascending = true;
};

// floor(log2(x)) for 1 <= x < 2^31 as the exponent of a float: without the second of two leading ones, rounding cannot carry.
inline std::uint32_t floor_log2(std::uint32_t x) {
  const float rounded = static_cast<float>(static_cast<std::int32_t>(x & ~(x >> 1)));
  return (std::bit_cast<std::uint32_t>(rounded) >> 23) - 127;
}

void add_block(const std::uint32_t* index, std::size_t count, unsigned first_parameter, GapSums& sums) {
  std::uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, exponents = 0, disorder = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t step = index[i + 1] - index[i], gap = step - 1;
    s0 += gap >> first_parameter;
    s1 += gap >> (first_parameter + 1);
    s2 += gap >> (first_parameter + 2);
    s3 += gap >> (first_parameter + 3);
    exponents += floor_log2(step);
    disorder |= static_cast<std::uint32_t>(index[i + 1] <= index[i]);
  }
  sums.shifted[0] += s0;
  sums.shifted[1] += s1;
  sums.shifted[2] += s2;
  sums.shifted[3] += s3;
  sums.exponents += exponents;
  sums.ascending = sums.ascending && disorder == 0;
}

// As above for segments in which a gap may reach 2^31.
void add_wide(const std::uint32_t* index, std::size_t count, unsigned first_parameter, GapSums& sums) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t step = index[i + 1] - index[i];
    for (unsigned k = 0; k < kTried; ++k) sums.shifted[k] += (step - 1) >> (first_parameter + k);
    sums.exponents += static_cast<std::uint64_t>(std::bit_width(step)) - 1;
    sums.ascending = sums.ascending && index[i + 1] > index[i];
  }
}

GapSums sum_gaps(std::span<const std::uint32_t> index, const Segment& segment, unsigned first_parameter) {
  GapSums sums;
  const std::size_t gaps = index.size() - 1;
  constexpr std::size_t kBlock = std::size_t{1} << 24;  // 32-bit sums of exponents stay below 2^29
  if (segment.size() > (std::size_t{1} << 30)) {
    add_wide(index.data(), gaps, first_parameter, sums);
  } else {
    for (std::size_t from = 0; from < gaps; from += kBlock) {
      add_block(index.data() + from, std::min(kBlock, gaps - from), first_parameter, sums);
    }
  }
  return sums;
}

std::uint64_t sum_shifted(std::span<const std::uint32_t> index, std::uint32_t first_gap, unsigned parameter) {
  std::uint32_t sum = first_gap >> parameter;
  for (std::size_t i = 1; i < index.size(); ++i) sum += (index[i] - index[i - 1] - 1) >> parameter;
  return sum;
}

// The least cost of Rice's code words, walking from the best measured parameter to where both neighbours are no better.
std::uint64_t best_rice(std::span<const std::uint32_t> index, std::uint32_t first_gap, const std::uint64_t (&measured)[kTried],
                        unsigned first_parameter, std::uint8_t& parameter) {
  const std::uint64_t count = index.size();
  const auto* best = std::min_element(measured, measured + kTried);
  std::uint64_t least = *best;
  unsigned k = first_parameter + static_cast<unsigned>(best - measured);
  if (best == measured) {
    while (k > 0) {
      const std::uint64_t cost = sum_shifted(index, first_gap, k - 1) + count * k;
      if (cost > least) break;
      least = cost;
      --k;
    }
  } else if (best == measured + kTried - 1) {
    while (k < kLargestParameter) {
      const std::uint64_t cost = sum_shifted(index, first_gap, k + 1) + count * (k + 2);
      if (cost >= least) break;
      least = cost;
      ++k;
    }
  }
  parameter = static_cast<std::uint8_t>(k);
  return least;
}

unsigned fixed_width(const Segment& segment) { return static_cast<unsigned>(std::bit_width(segment.size() - 1)); }

[[noreturn]] void throw_disorder(const Segment& segment) {
  throw Error("a compressor's positions in parameters " + std::to_string(segment.begin) + " .. " + std::to_string(segment.end) +
              " (end excluded) are not ascending or leave that range: sort them and count them per segment");
}

[[noreturn]] void throw_too_wide(const Segment& segment) {
  throw Error("positions of " + std::to_string(segment.end) + " parameters do not fit 32 bits");
}

// Rice and gamma of one gap of b bits: k = b - 1 takes b + 1 bits, and so does k = b - 2 where the gap starts with 10; a gap 0 takes one.
PositionCosts single_costs(std::uint32_t gap) {
  const auto width = static_cast<unsigned>(std::bit_width(gap));
  PositionCosts costs;
  costs.of(PositionCode::rice) = kParameterBits + width + 1;
  costs.rice_parameter = static_cast<std::uint8_t>(width < 2 ? 0 : (gap >> (width - 2)) == 2 ? width - 2 : width - 1);
  costs.of(PositionCode::gamma) = gamma_bits(std::uint64_t{gap} + 1);
  return costs;
}

// What Rice's code takes for positions index[0] .. with `first_gap` in front of the first, and the sums over the other gaps.
struct RiceCost {
  std::uint64_t bits = 0;  // the parameter's included
  std::uint8_t parameter = 0;
  GapSums sums;
};

RiceCost rice_cost(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap) {
  const std::uint64_t count = index.size();
  // Geometric gaps with mean g are coded best with 2^k near g ln 2; the four parameters around it hold the optimum nearly always.
  const std::uint64_t gap_total = std::uint64_t{first_gap} + (index.back() - index.front()) - (count - 1);
  const unsigned near = static_cast<unsigned>(std::bit_width(gap_total * 710 / (count * 1024)));
  const unsigned first_parameter = std::min(near < 2 ? 0 : near - 2, kLargestParameter + 1 - kTried);

  RiceCost cost;
  cost.sums = sum_gaps(index, segment, first_parameter);
  if (!cost.sums.ascending) throw_disorder(segment);
  std::uint64_t rice[kTried];
  for (unsigned t = 0; t < kTried; ++t) {
    rice[t] = cost.sums.shifted[t] + (first_gap >> (first_parameter + t)) + count * (1 + first_parameter + t);
  }
  cost.bits = best_rice(index, first_gap, rice, first_parameter, cost.parameter) + kParameterBits;
  return cost;
}

std::uint64_t blocks_cost(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap) {
  std::uint64_t bits = 0;
  for (std::size_t from = 0; from < index.size(); from += kGapsPerBlock) {
    const auto block = index.subspan(from, std::min(kGapsPerBlock, index.size() - from));
    bits += rice_cost(block, segment, from == 0 ? first_gap : index[from] - index[from - 1] - 1).bits;
  }
  return bits;
}

// Golomb's code with divisor d that is no power of two, hence at least 3.
struct Golomb {
  explicit Golomb(std::uint32_t d)
      : divisor(d), width(static_cast<unsigned>(std::bit_width(d - 1))), short_ones((std::uint64_t{1} << width) - d), inverse(1.0 / d) {}
  // g / d, exactly: a half keeps the product away from the next integer.
  [[nodiscard]] std::uint32_t quotient(std::uint32_t gap) const {
    return static_cast<std::uint32_t>((static_cast<double>(gap) + 0.5) * inverse);
  }
  std::uint32_t divisor;
  unsigned width;            // b
  std::uint64_t short_ones;  // c
  double inverse;
};

std::uint64_t golomb_cost(std::span<const std::uint32_t> index, std::uint32_t first_gap, std::uint32_t divisor) {
  const Golomb code(divisor);
  const auto short_ones = static_cast<std::uint32_t>(code.short_ones);
  const auto extra = [&](std::uint32_t gap, std::uint32_t quotient) { return gap - quotient * divisor >= short_ones ? 1U : 0U; };
  const std::uint32_t first = code.quotient(first_gap);
  std::uint64_t zeros = first, long_ones = extra(first_gap, first);
  constexpr std::size_t kRun = std::size_t{1} << 24;
  for (std::size_t from = 1; from < index.size(); from += kRun) {
    std::uint32_t run_zeros = 0, run_long = 0;  // quotients add up to less than the segment's size
    for (std::size_t i = from, last = std::min(index.size(), from + kRun); i < last; ++i) {
      const std::uint32_t gap = index[i] - index[i - 1] - 1, quotient = code.quotient(gap);
      run_zeros += quotient;
      run_long += extra(gap, quotient);
    }
    zeros += run_zeros;
    long_ones += run_long;
  }
  return gamma_bits(divisor) + zeros + long_ones + index.size() * std::uint64_t{code.width};
}

}  // namespace

// The best divisor for geometric gaps with the mean of these, 0 where it is a power of two and Rice's code is the same.
std::uint32_t golomb_divisor(std::uint64_t gap_total, std::size_t count) {
  if (gap_total == 0) return 0;
  const double q = static_cast<double>(gap_total) / static_cast<double>(gap_total + count);
  const auto divisor = static_cast<std::uint32_t>(std::ceil(-std::log1p(q) / std::log(q)));
  return std::has_single_bit(divisor) ? 0 : divisor;
}

namespace {

PositionCosts many_costs(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap) {
  const std::uint64_t count = index.size();
  const RiceCost rice = rice_cost(index, segment, first_gap);
  PositionCosts costs;
  costs.of(PositionCode::rice) = rice.bits;
  costs.rice_parameter = rice.parameter;
  costs.of(PositionCode::gamma) =
      2 * (rice.sums.exponents + static_cast<std::uint64_t>(std::bit_width(std::uint64_t{first_gap} + 1)) - 1) + count;
  if (count >= kBlocksFrom) costs.of(PositionCode::blocks) = blocks_cost(index, segment, first_gap);
  if (count < kGolombFrom) return costs;
  costs.golomb_divisor = golomb_divisor(index.back() - segment.begin - (count - 1), count);
  if (costs.golomb_divisor != 0) costs.of(PositionCode::golomb) = golomb_cost(index, first_gap, costs.golomb_divisor);
  return costs;
}

}  // namespace

// Of the codes whose length needs no look at the positions.
void add_plain_costs(std::size_t count, const Segment& segment, PositionCosts& costs) {
  costs.of(PositionCode::bitmap) = segment.size();
  costs.of(PositionCode::fixed) = std::uint64_t{count} * fixed_width(segment);
}

PositionCosts position_costs(std::span<const std::uint32_t> index, const Segment& segment) {
  if (segment.end - 1 > kMaxPositions) throw_too_wide(segment);
  if (index.front() < segment.begin || index.back() >= segment.end || index.back() - index.front() < index.size() - 1) {
    throw_disorder(segment);
  }
  const std::uint64_t count = index.size();
  const auto first_gap = static_cast<std::uint32_t>(index.front() - segment.begin);
  PositionCosts costs = count == 1 ? single_costs(first_gap) : many_costs(index, segment, first_gap);
  add_plain_costs(count, segment, costs);
  return costs;
}

namespace {

// Whether the positions that are not kept are described.
bool is_complement(std::size_t count, const Segment& segment) { return count > segment.size() - count; }

// The positions of the segment that are not in `index`, ascending; lives until the next call on this thread. index: more than half
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

}  // namespace

PositionPlan shortest_plan(std::size_t kept, const PositionCosts& costs) {
  PositionPlan plan;
  plan.rice_parameter = costs.rice_parameter;
  plan.golomb_divisor = costs.golomb_divisor;
  std::uint64_t least = PositionCosts::kNotTried;
  for (int c = 0; c < kNumPositionCodes; ++c) {
    const auto code = static_cast<PositionCode>(c);
    if (costs.of(code) == PositionCosts::kNotTried || costs.of(code) + code_bits(code) >= least) continue;
    least = costs.of(code) + code_bits(code);
    plan.code = code;
  }
  plan.bits = gamma_bits(kept + 1) + least;
  return plan;
}

PositionPlan plan_positions(std::span<const std::uint32_t> index, const Segment& segment) {
  PositionPlan plan;
  plan.bits = gamma_bits(index.size() + 1);
  if (index.empty()) return plan;
  if (index.size() >= segment.size()) {
    bool complete = index.size() == segment.size();
    for (std::size_t i = 0; i < index.size(); ++i) complete = complete && index[i] == segment.begin + i;
    if (!complete) throw_disorder(segment);
    return plan;
  }
  if (segment.end - 1 > kMaxPositions) throw_too_wide(segment);
  return shortest_plan(index.size(), position_costs(is_complement(index.size(), segment) ? complement_of(index, segment) : index, segment));
}

// ---- writing ----

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

// index[0] .. with `next` in front. Several code words are put together before they are stored: a store waits for the one before.
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
  cursor.put(parameter, kParameterBits);
  return parameter <= 11 ? put_rice_together<4>(cursor, index, next, parameter) : put_rice_together<2>(cursor, index, next, parameter);
}

BitCursor put_blocks(BitCursor cursor, std::span<const std::uint32_t> index, const Segment& segment) {
  auto next = static_cast<std::uint32_t>(segment.begin);
  for (std::size_t from = 0; from < index.size(); from += kGapsPerBlock) {
    const auto block = index.subspan(from, std::min(kGapsPerBlock, index.size() - from));
    cursor = put_rice(cursor, block, next, rice_cost(block, segment, block.front() - next).parameter);
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

// ---- reading ----

namespace {

constexpr unsigned kPeekBits = 57;
constexpr const char* kPositionsTooShort = "the message ends inside the positions";

// What is wrong with a code word that was not there or led out of the segment.
std::string bad_gap(const BitReader& reader, const Segment& segment) {
  if (reader.past_end()) return kPositionsTooShort;
  return "a position lies behind the end of the segment, parameter " + std::to_string(segment.end);
}

// A few code words per load: each waits for the length of the one before, but no longer for memory.
// `next`: the first parameter that can follow, from the segment's begin; moves on.
std::string get_rice(BitReader& shared, const Segment& segment, std::size_t count, std::uint32_t* index, std::uint64_t& shared_next) {
  BitReader reader = shared;
  const unsigned parameter = static_cast<unsigned>(reader.get(kParameterBits));
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
    // A code word longer than a load.
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

}  // namespace

namespace {

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

// The positions of the segment that `others` leaves.
void invert(std::span<const std::uint32_t> others, const Segment& segment, std::uint32_t* index) {
  std::uint64_t next = segment.begin;
  for (const std::uint32_t other : others) {
    for (; next < other; ++next) *index++ = static_cast<std::uint32_t>(next);
    ++next;
  }
  for (; next < segment.end; ++next) *index++ = static_cast<std::uint32_t>(next);
}

// Reads the positions that are not sent, where these are fewer.
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
