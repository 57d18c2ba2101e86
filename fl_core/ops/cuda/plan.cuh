// The description of an operation's arguments for kernels, in device memory: the segments of a scope cut into tiles, and the place of each
// client's message.
//
// A tile is kReduceTile elements of one segment, counted from the segment's first one; a piece of work of most kernels is one tile of one
// client: work = k * num_tiles + tile. Tiles are found from their segments, so that nothing as long as the vector is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cuda {

struct SegmentPlan {
  std::size_t begin, size;
  std::size_t first_tile;  // tiles of the segments before this one
  std::size_t offset;      // elements of the segments before this one
};

struct ScopePlan {
  const SegmentPlan* segment = nullptr;  // [S] on the device
  std::size_t num_segments = 0;          // S
  std::size_t num_tiles = 0;             // of one client
  std::size_t total = 0;                 // elements of one client
  std::size_t largest = 0;               // elements of the largest segment
};

// Elements begin .. begin+count-1 of the vector: a tile of `segment`, at `offset` among the elements of all segments.
struct Tile {
  std::size_t segment, begin, count, offset;
};

// The last of `count` ascending segments whose `start` is not above x.
template <class AnySegment, class Start>
[[nodiscard]] FL_HD inline std::size_t last_not_above(const AnySegment* segment, std::size_t count, std::size_t x, Start start) {
  std::size_t low = 0, high = count;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    if (start(segment[middle]) <= x)
      low = middle;
    else
      high = middle;
  }
  return low;
}
template <class Start>
[[nodiscard]] FL_HD inline std::size_t segment_at(const ScopePlan& plan, std::size_t x, Start start) {
  return last_not_above(plan.segment, plan.num_segments, x, start);
}

struct FirstTile {
  FL_HD std::size_t operator()(const SegmentPlan& segment) const { return segment.first_tile; }
};
struct FirstElement {
  FL_HD std::size_t operator()(const SegmentPlan& segment) const { return segment.begin; }
};

[[nodiscard]] FL_HD inline Tile tile_at(const ScopePlan& plan, std::size_t tile) {
  const std::size_t s = segment_at(plan, tile, FirstTile{});
  const SegmentPlan& segment = plan.segment[s];
  const std::size_t from = (tile - segment.first_tile) * kReduceTile, left = segment.size - from;
  return {s, segment.begin + from, left < kReduceTile ? left : kReduceTile, segment.offset + from};
}

// Where one client's message lies on the device.
template <class T>
struct PayloadRow {
  std::uint32_t* counts;
  std::uint32_t* index;
  T* value;
  std::byte* levels;
  T* scale;
  T* excluded;
};

// The first of `count` ascending positions that is not below `bound`.
[[nodiscard]] FL_HD inline std::size_t first_from(const std::uint32_t* index, std::size_t count, std::size_t bound) {
  std::size_t low = 0, high = count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (index[middle] < bound)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Client k's row of the state, or null where none is written.
template <class T>
[[nodiscard]] FL_HD inline T* state_row(const StateWrite<T>& state, std::size_t k) {
  return state.rule == StateRule::none ? nullptr : state.out.row(k);
}

// Copies host memory into the frame, waiting for nothing. Pageable memory may go away at once; pinned memory is read later.
[[nodiscard]] FL_API const void* upload_bytes(const Exec& exec, const void* from, std::size_t bytes, Workspace::Frame& frame);
template <class U>
[[nodiscard]] const U* upload(const Exec& exec, std::span<const U> from, Workspace::Frame& frame) {
  return static_cast<const U*>(upload_bytes(exec, from.data(), from.size_bytes(), frame));
}

[[nodiscard]] FL_API ScopePlan plan_segments(const Exec& exec, std::span<const Segment> segments, Workspace::Frame& frame);

template <class T>
[[nodiscard]] FL_API const PayloadRow<T>* upload_rows(const Exec& exec, std::span<Payload<T>* const> out, Workspace::Frame& frame);

extern template const PayloadRow<float>* upload_rows<float>(const Exec&, std::span<Payload<float>* const>, Workspace::Frame&);
extern template const PayloadRow<double>* upload_rows<double>(const Exec&, std::span<Payload<double>* const>, Workspace::Frame&);

// Declares levels in every message, makes room for them and says where they lie.
template <class T>
[[nodiscard]] FL_API const PayloadRow<T>* prepare_levels(const Exec& exec, const ScopePlan& plan, const LevelFormat& format,
                                                         LevelWidth width, std::span<Payload<T>* const> out, Workspace::Frame& frame);
extern template const PayloadRow<float>* prepare_levels<float>(const Exec&, const ScopePlan&, const LevelFormat&, LevelWidth,
                                                               std::span<Payload<float>* const>, Workspace::Frame&);
extern template const PayloadRow<double>* prepare_levels<double>(const Exec&, const ScopePlan&, const LevelFormat&, LevelWidth,
                                                                 std::span<Payload<double>* const>, Workspace::Frame&);

}  // namespace fl::cuda
