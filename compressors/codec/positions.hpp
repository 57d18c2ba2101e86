// The bit encoding of the positions kept in one segment of n parameters.
//
//   positions = gamma(m+1)  [code  [parameter]  code words]        m = kept; nothing follows m = 0 and m = n
// If m > n/2, the n - m positions that are not kept are described instead; both sides know m. Code words describe the gaps g = position -
// previous position - 1 (the first: position - begin), 0 <= g < n, of the w = min(m, n - m) positions described:
//
//   code         bits                            in sum
//   0 rice       0                               k:5, then g >> k zeros, a one, the k low bits of g           5 + sum(g >> k) + w (1 + k)
//   1 gamma      1 0:2                           gamma(g + 1)                                                 sum(2 floor(log2(g + 1)) + 1)
//   2 bitmap     1 1:2                           n bits, a one for each position described                    n
//   3 fixed      1 2:2                           position - begin in ceil(log2 n) bits                        w ceil(log2 n)
//   4 golomb     1 3:2 0                         gamma(d), then g / d zeros, a one, g % d in truncated binary: with b = ceil(log2 d) and
//                                                c = 2^b - d a remainder r < c has b - 1 bits, another one b: the b - 1 high bits of r + c,
//                                                then the lowest
//   5 blocks     1 3:2 1                         for every 128 gaps k:5 and their rice code words: for clustered positions
//
// The shortest code is used, or the one with the lowest number among equals. The Rice parameter is the smallest one with the least sum. Its
// cost is convex in k (each halving saves at most as much as the one before), so the optimum is a k that is better than both neighbours.
// Golomb's divisor is the best one for geometric gaps with the observed mean, ceil(-log(1 + q) / log q) with q = mean / (1 + mean). golomb
// is tried from 64 positions on and blocks from 256 on. Uniformly distributed positions take at most 1.5% more than log2 C(n, m) if 0.01%
// to 20% are kept.
//
// An Elias-Fano code would not be shorter: with l low bits each it takes w l + w + floor(last / 2^l), and Rice with k = l takes w l + w +
// sum floor(g / 2^l), which is not more because the gaps add up to less than the last position.
//
// R. F. Rice, Some practical universal noiseless coding techniques, JPL Publication 79-22 (1979); S. W. Golomb, Run-length encodings,
// IEEE Trans. Information Theory 12 (1966); R. G. Gallager, D. C. Van Voorhis, Optimal source codes for geometrically distributed integer
// alphabets, IEEE Trans. Information Theory 21 (1975); P. Elias, Efficient storage and retrieval by content and address of static files,
// J. ACM 21 (1974).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compressors/codec/bit_stream.hpp"
#include "fl_core/message/layer_table.hpp"

namespace fl::codec {

enum class PositionCode : std::uint8_t { rice, gamma, bitmap, fixed, golomb, blocks };
inline constexpr int kNumPositionCodes = 6;
inline constexpr std::size_t kGapsPerBlock = 128;
// Returns the bits that name a code.
[[nodiscard]] constexpr unsigned code_bits(PositionCode code) {
  return code == PositionCode::rice ? 1 : code < PositionCode::golomb ? 3 : 4;
}

// The shortest encoding of the positions of a segment.
struct PositionPlan {
  PositionCode code = PositionCode::rice;
  std::uint8_t rice_parameter = 0;
  std::uint32_t golomb_divisor = 0;
  std::uint64_t bits = 0;  // of the whole encoding, including the count
};

// The total bits of each code's words, parameters included; kNotTried marks codes that are not tried. Only for 0 < w < n.
struct PositionCosts {
  static constexpr std::uint64_t kNotTried = ~std::uint64_t{0};
  std::uint64_t bits[kNumPositionCodes] = {kNotTried, kNotTried, kNotTried, kNotTried, kNotTried, kNotTried};  // by PositionCode
  std::uint8_t rice_parameter = 0;
  std::uint32_t golomb_divisor = 0;
  [[nodiscard]] std::uint64_t of(PositionCode code) const { return bits[static_cast<int>(code)]; }
  std::uint64_t& of(PositionCode code) { return bits[static_cast<int>(code)]; }
};

// Return the costs of the given list, and the plan for the shorter list (the positions or their complement). index: ascending, inside the
// segment; otherwise they throw Error.
[[nodiscard]] FL_API PositionCosts position_costs(std::span<const std::uint32_t> index, const Segment& segment);
[[nodiscard]] FL_API PositionPlan plan_positions(std::span<const std::uint32_t> index, const Segment& segment);

// Functions with which the host turns sums over gaps, computed on a device, into the same costs and plan. count: number of positions
// described. kept: number of positions kept.
inline constexpr std::size_t kGolombFrom = 64, kBlocksFrom = 2 * kGapsPerBlock;
inline constexpr unsigned kRiceParameterBits = 5, kLargestRiceParameter = 31;
[[nodiscard]] std::uint32_t golomb_divisor(std::uint64_t gap_total, std::size_t count);
void add_plain_costs(std::size_t count, const Segment& segment, PositionCosts& costs);
[[nodiscard]] PositionPlan shortest_plan(std::size_t kept, const PositionCosts& costs);

FL_API void write_positions(BitWriter& writer, const PositionPlan& plan, std::span<const std::uint32_t> index, const Segment& segment);

// Read first the count, so that the caller can compare it with the remaining bytes and allocate, then the positions. Both return "" or the
// reason for refusing the bytes.
[[nodiscard]] FL_API std::string read_count(BitReader& reader, const Segment& segment, std::size_t& count);
[[nodiscard]] FL_API std::string read_positions(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index);

}  // namespace fl::codec
