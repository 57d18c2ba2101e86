// The positions kept in one segment of n parameters, as bits.
//
//   positions = gamma(m+1)  [code:2  [parameter:5]  code words]        m = kept; nothing follows m = 0 and m = n
// Code words describe the gaps g = index - previous index - 1 (the first: index - begin), 0 <= g < n:
//   0 rice     g >> k zeros, a one, the k low bits of g; parameter k                 sum(g >> k) + m (1 + k)
//   1 gamma    gamma(g + 1)                                                          sum(2 floor(log2(g + 1)) + 1)
//   2 bitmap   n bits, a one where a position is kept                                n
//   3 fixed    index - begin in ceil(log2 n) bits                                    m ceil(log2 n)
// The shortest is taken, the lower number on equal length; the Rice parameter is the smallest of those with the least sum. Its cost is
// convex in k (each halving saves at most what the one before saved), so the optimum is a k better than both neighbours.
// R. F. Rice, Some practical universal noiseless coding techniques, JPL Publication 79-22 (1979); S. W. Golomb, Run-length encodings,
// IEEE Trans. Information Theory 12 (1966).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compressors/codec/bit_stream.hpp"
#include "fl_core/layer_table.hpp"

namespace fl::codec {

enum class PositionCode : std::uint8_t { rice, gamma, bitmap, fixed };

// The shortest way to write the positions of a segment.
struct PositionPlan {
  PositionCode code = PositionCode::rice;
  std::uint8_t rice_parameter = 0;
  std::uint64_t bits = 0;  // of everything above, the count included
};

// How the code words of each kind would sum up; the parameter's bits are in `rice`. Only for 0 < m < n.
struct PositionCosts {
  std::uint64_t rice = 0, gamma = 0, bitmap = 0, fixed = 0;
  std::uint8_t rice_parameter = 0;
};

// index: ascending, inside the segment. Throws Error where an operator broke that.
[[nodiscard]] FL_API PositionCosts position_costs(std::span<const std::uint32_t> index, const Segment& segment);
[[nodiscard]] FL_API PositionPlan plan_positions(std::span<const std::uint32_t> index, const Segment& segment);

FL_API void write_positions(BitWriter& writer, const PositionPlan& plan, std::span<const std::uint32_t> index, const Segment& segment);

// First the count, so that the caller can make room, then the positions. Both return "" or the reason for refusing the bytes.
[[nodiscard]] FL_API std::string read_count(BitReader& reader, const Segment& segment, std::size_t& count);
[[nodiscard]] FL_API std::string read_positions(BitReader& reader, const Segment& segment, std::size_t count, std::uint32_t* index);

}  // namespace fl::codec
