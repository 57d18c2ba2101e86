// Common definitions of the three files on positions: lengths of codes (positions.cpp), writing (positions_write.cpp) and reading
// (positions_read.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "compressors/codec/positions.hpp"

namespace fl::codec {

inline constexpr std::uint64_t kMaxPositions = 0xffffffffULL;  // indices have 32 bits

// Returns the bits of one position in a segment, which are the same for all positions.
inline unsigned fixed_width(const Segment& segment) { return static_cast<unsigned>(std::bit_width(segment.size() - 1)); }

// Returns whether the code describes the positions that are not kept.
inline bool is_complement(std::size_t count, const Segment& segment) { return count > segment.size() - count; }

// Returns the positions of the segment that are not in `index`, ascending. The result is valid until the next call on this thread. `index`
// must hold more than half of the segment. Throws Error if the positions are not ascending or leave the segment.
[[nodiscard]] std::span<const std::uint32_t> complement_of(std::span<const std::uint32_t> index, const Segment& segment);

// Returns the parameter that minimises the bits of Rice's code for these positions, with `first_gap` before the first position.
[[nodiscard]] std::uint8_t best_rice_parameter(std::span<const std::uint32_t> index, const Segment& segment, std::uint32_t first_gap);

[[noreturn]] void throw_disorder(const Segment& segment);

// Golomb's code with a divisor d that is not a power of two, hence at least 3.
struct Golomb {
  explicit Golomb(std::uint32_t d)
      : divisor(d), width(static_cast<unsigned>(std::bit_width(d - 1))), short_ones((std::uint64_t{1} << width) - d), inverse(1.0 / d) {}
  // Returns g / d exactly: adding a half keeps the product away from the next integer.
  [[nodiscard]] std::uint32_t quotient(std::uint32_t gap) const {
    return static_cast<std::uint32_t>((static_cast<double>(gap) + 0.5) * inverse);
  }
  std::uint32_t divisor;
  unsigned width;            // b
  std::uint64_t short_ones;  // c
  double inverse;
};

}  // namespace fl::codec
