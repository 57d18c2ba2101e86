// The positions kept in one segment of n parameters, as bits.
//
//   positions = gamma(m+1)  [code  [parameter]  code words]        m = kept; nothing follows m = 0 and m = n
// Where m > n/2 the n - m positions that are not kept are described instead: both sides know m. Code words describe the gaps
// g = position - previous position - 1 (the first: position - begin), 0 <= g < n, of the w = min(m, n - m) positions described:
//
//   code         bits                            in sum
//   0 rice       0                               k:5, then g >> k zeros, a one, the k low bits of g           5 + sum(g >> k) + w (1 + k)
//   1 gamma      1 0:2                           gamma(g + 1)                                                 sum(2 floor(log2(g + 1)) + 1)
//   2 bitmap     1 1:2                           n bits, a one where a position is described                  n
//   3 fixed      1 2:2                           position - begin in ceil(log2 n) bits                        w ceil(log2 n)
//   4 golomb     1 3:2 0                         gamma(d), then g / d zeros, a one, g % d in truncated binary: with b = ceil(log2 d) and
//                                                c = 2^b - d a remainder r < c has b - 1 bits, another one b: the b - 1 high bits of r + c,
//                                                then the lowest
//   5 blocks     1 3:2 1                         for every 128 gaps k:5 and their rice code words: where supports are clustered
//
// The shortest is taken, the lower number on equal length. A Rice parameter is the smallest of those with the least sum; its cost is
// convex in k (each halving saves at most what the one before saved), so the optimum is a k better than both neighbours. Golomb's divisor
// is the best one for geometric gaps of the mean that these have, ceil(-log(1 + q) / log q) with q = mean / (1 + mean); golomb is tried
// from 64 positions on and blocks from 256 on. Uniform supports come within 1.5% of log2 C(n, m) where 0.01% to 20% are kept.
//
// An Elias-Fano code would not help: with l low bits each it takes w l + w + floor(last / 2^l), and Rice with k = l takes
// w l + w + sum floor(g / 2^l), which is not more because the gaps add up to less than the last position.
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
// The bits that name a code.
[[nodiscard]] constexpr unsigned code_bits(PositionCode code) {
  return code == PositionCode::rice ? 1 : code < PositionCode::golomb ? 3 : 4;
}

// The shortest way to write the positions of a segment.
struct PositionPlan {
  PositionCode code = PositionCode::rice;
  std::uint8_t rice_parameter = 0;
  std::uint32_t golomb_divisor = 0;
  std::uint64_t bits = 0;  // of everything above, the count included
};

// How the code words of each kind would sum up, parameters included; kNotTried where a code is left out. Only for 0 < w < n.
struct PositionCosts {
  static constexpr std::uint64_t kNotTried = ~std::uint64_t{0};
  std::uint64_t bits[kNumPositionCodes] = {kNotTried, kNotTried, kNotTried, kNotTried, kNotTried, kNotTried};  // by PositionCode
  std::uint8_t rice_parameter = 0;
  std::uint32_t golomb_divisor = 0;
  [[nodiscard]] std::uint64_t of(PositionCode code) const { return bits[static_cast<int>(code)]; }
  std::uint64_t& of(PositionCode code) { return bits[static_cast<int>(code)]; }
};

// index: ascending, inside the segment. Throws Error where an operator broke that. The costs are those of the list that is given, the plan
// that of the shorter list: the positions or their complement.
[[nodiscard]] FL_API PositionCosts position_costs(std::span<const std::uint32_t> index, const Segment& segment);
[[nodiscard]] FL_API PositionPlan plan_positions(std::span<const std::uint32_t> index, const Segment& segment);

// What a device adds up of the gaps, the host makes costs and a plan of: the same ones. count: of the positions that are described,
// `kept` of those that are kept.
inline constexpr std::size_t kGolombFrom = 64, kBlocksFrom = 2 * kGapsPerBlock;
inline constexpr unsigned kRiceParameterBits = 5, kLargestRiceParameter = 31;
[[nodiscard]] std::uint32_t golomb_divisor(std::uint64_t gap_total, std::size_t count);
void add_plain_costs(std::size_t count, const Segment& segment, PositionCosts& costs);
[[nodiscard]] PositionPlan shortest_plan(std::size_t kept, const PositionCosts& costs);

FL_API void write_positions(BitWriter& writer, const PositionPlan& plan, std::span<const std::uint32_t> index, const Segment& segment);

// First the count, so that the caller can compare it with the bytes that are left and make room, then the positions. Both return "" or the
// reason for refusing the bytes.
[[nodiscard]] FL_API std::string read_count(BitReader& reader, const Segment& segment, std::size_t& count);
[[nodiscard]] FL_API std::string read_positions(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index);

}  // namespace fl::codec
