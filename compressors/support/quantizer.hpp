// Common parts of the quantising operators: the width of a level, the random streams of a block, the largest segment, and values per
// segment.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/op_types.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

// Returns the bits of a fixed-width code for `count` different levels.
[[nodiscard]] inline std::uint8_t bits_for(std::uint64_t count) {
  return static_cast<std::uint8_t>(std::max(1, static_cast<int>(std::bit_width(count - 1))));
}

// Returns the narrowest integer width that holds the levels -largest .. largest.
[[nodiscard]] inline LevelWidth width_of(std::int64_t largest) {
  return largest <= 127 ? LevelWidth::w8 : largest <= 32767 ? LevelWidth::w16 : LevelWidth::w32;
}

[[nodiscard]] inline std::size_t largest_segment(const Scope& scope) {
  std::size_t largest = 0;
  for (const Segment& segment : scope.segments) largest = std::max(largest, segment.size());
  return largest;
}

// Returns d, the number of compressed coordinates.
[[nodiscard]] inline double compressed_size(const Scope& scope) {
  double d = 0;
  for (const Segment& segment : scope.segments) d += static_cast<double>(segment.size());
  return d;
}

// Returns one stream of random numbers per client of the block.
template <class T>
[[nodiscard]] std::vector<RandomStream> client_streams(const CompressContext<T>& context) {
  std::vector<RandomStream> streams;
  streams.reserve(context.clients.size());
  for (const std::uint32_t client : context.clients)
    streams.emplace_back(context.random_key, client, context.round, static_cast<std::uint32_t>(context.phase));
  return streams;
}

// The range of positive normal numbers of T.
template <class T>
struct NormalRange {
  static constexpr T kSmallest = std::numeric_limits<T>::min(), kLargest = std::numeric_limits<T>::max();
};

// Returns the scale as T, or 0 if it is not a normal number. The segment is then sent as zeros.
template <class T>
[[nodiscard]] FL_HD inline T usable_scale(double scale) {
  const T value = static_cast<T>(scale), smallest = NormalRange<T>::kSmallest, largest = NormalRange<T>::kLargest;
  return value >= smallest && value <= largest ? value : T(0);
}

// Returns one vector [P] as an operator's input.
template <class T>
[[nodiscard]] Affine<T> vector_input(const T* x, std::size_t P) {
  Affine<T> input;
  input.add(T(1), BatchView<const T>{x, nullptr, 1, P, P});
  return input;
}

namespace FL_DEVICE_NS {

// Returns the sizes of the segments [S] in memory that functors can read. They live as long as the frame.
[[nodiscard]] inline const double* segment_sizes(const Exec& exec, const Scope& scope, Workspace::Frame& frame) {
  std::vector<double> sizes;
  for (const Segment& segment : scope.segments) sizes.push_back(static_cast<double>(segment.size()));
  auto* placed = frame.take<double>(sizes.size());
  copy_bytes(placed, kThisDevice, sizes.data(), Device::cpu, sizes.size() * sizeof(double), exec.stream);
  return placed;
}

// Returns reduce_j map(p_j) over every segment of every client [K,S] on the host, for operators whose format depends on the input.
template <class T, class Map>
[[nodiscard]] std::vector<double> reduced_on_host(const Exec& exec, const Affine<T>& input, const Scope& scope, Map map, Reduce reduce) {
  Workspace::Frame frame(*exec.workspace);
  std::vector<double> values(input.clients() * scope.segments.size());
  auto* reduced = frame.take<double>(values.size());
  reduce_rows(exec, input, scope, map, reduce, reduced);
  copy_bytes(values.data(), Device::cpu, reduced, kThisDevice, values.size() * sizeof(double), exec.stream);
  return values;
}

}  // namespace FL_DEVICE_NS
}  // namespace fl
