#include "compressors/codec/positions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compressors/codec/position_codes.hpp"
#include "fl_core/config/error.hpp"

namespace fl::codec {

namespace {

constexpr unsigned kLargestParameter = kLargestRiceParameter;
constexpr int kTried = 4;  // Rice parameters measured by one pass over the positions

// Sums over the gaps after the first. All fit into 32 bits, because the gaps of a segment add up to less than its size.
struct GapSums {
  std::uint32_t shifted[kTried] = {};
  std::uint64_t exponents = 0;  // sum floor(log2(g + 1))
  bool ascending = true;
};

// Returns floor(log2(x)) for 1 <= x < 2^31 as the exponent of a float. It first clears every bit
// directly below a one, so that rounding cannot carry.
inline std::uint32_t floor_log2(std::uint32_t x) {
  const float rounded = static_cast<float>(static_cast<std::int32_t>(x & ~(x >> 1)));
  return (std::bit_cast<std::uint32_t>(rounded) >> 23) - 127;
}

void add_gaps(const std::uint32_t* index, std::size_t count, unsigned first_parameter, GapSums& sums) {
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
  constexpr std::size_t kGapsAtOnce = std::size_t{1} << 24;  // 32-bit sums of exponents stay below 2^29
  if (segment.size() > (std::size_t{1} << 30)) {
    add_wide(index.data(), gaps, first_parameter, sums);
  } else {
    for (std::size_t from = 0; from < gaps; from += kGapsAtOnce) {
      add_gaps(index.data() + from, std::min(kGapsAtOnce, gaps - from), first_parameter, sums);
    }
  }
  return sums;
}

std::uint64_t sum_shifted(std::span<const std::uint32_t> index, std::uint32_t first_gap, unsigned parameter) {
  std::uint32_t sum = first_gap >> parameter;
  for (std::size_t i = 1; i < index.size(); ++i) sum += (index[i] - index[i - 1] - 1) >> parameter;
  return sum;
}

// Returns the least cost of Rice's code words. It searches from the best measured parameter until both neighbours are no better.
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

[[noreturn]] void throw_too_wide(const Segment& segment) {
  throw Error("positions of " + std::to_string(segment.end) + " parameters do not fit 32 bits");
}

// Returns the costs of Rice and gamma for one gap of b bits: k = b - 1 takes b + 1 bits, and so does k = b - 2 if the gap starts with 10; a
// gap 0 takes one bit.
PositionCosts single_costs(std::uint32_t gap) {
  const auto width = static_cast<unsigned>(std::bit_width(gap));
  PositionCosts costs;
  costs.of(PositionCode::rice) = kRiceParameterBits + width + 1;
  costs.rice_parameter = static_cast<std::uint8_t>(width < 2 ? 0 : (gap >> (width - 2)) == 2 ? width - 2 : width - 1);
  costs.of(PositionCode::gamma) = gamma_bits(std::uint64_t{gap} + 1);
  return costs;
}

// The cost of Rice's code for positions index[0] .. with `first_gap` before the first, and the sums over the other gaps.
struct RiceCost {
  std::uint64_t bits = 0;  // including the parameter
  std::uint8_t parameter = 0;
  GapSums sums;
};

RiceCost rice_cost(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap) {
  const std::uint64_t count = index.size();
  // The best code for geometric gaps with mean g has 2^k near g ln 2; the four parameters around it nearly always contain the optimum.
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
  cost.bits = best_rice(index, first_gap, rice, first_parameter, cost.parameter) + kRiceParameterBits;
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

std::uint8_t best_rice_parameter(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap) {
  return rice_cost(index, segment, first_gap).parameter;
}

// Returns the best divisor for geometric gaps with the given mean, or 0 if it is a power of two, for which Rice's code is the same.
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

// Adds the costs of codes whose length does not depend on the positions.
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

}  // namespace fl::codec
