// What the quantising operators share: the width of a level, the streams of a block, the largest segment.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compressors/compressor.hpp"

namespace fl {

// Bits of a fixed-width code for `count` different levels.
[[nodiscard]] inline std::uint8_t bits_for(std::uint64_t count) {
  return static_cast<std::uint8_t>(std::max(1, static_cast<int>(std::bit_width(count - 1))));
}

// The narrowest integer that holds the levels -largest .. largest.
[[nodiscard]] inline LevelWidth width_of(std::int64_t largest) {
  return largest <= 127 ? LevelWidth::w8 : largest <= 32767 ? LevelWidth::w16 : LevelWidth::w32;
}

[[nodiscard]] inline std::size_t largest_segment(const Scope& scope) {
  std::size_t largest = 0;
  for (const Segment& segment : scope.segments) largest = std::max(largest, segment.size());
  return largest;
}

// One stream of random numbers per client of the block.
template <class T>
[[nodiscard]] std::vector<RandomStream> client_streams(const CompressContext<T>& context) {
  std::vector<RandomStream> streams;
  streams.reserve(context.clients.size());
  for (const std::uint32_t client : context.clients)
    streams.emplace_back(context.random_key, client, context.round, static_cast<std::uint32_t>(context.phase));
  return streams;
}

}  // namespace fl
