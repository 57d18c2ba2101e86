// Levels for every parameter, fused: affine input, random words, quantiser, level store and new state in one pass over memory.
//
//   level_j = q(p_j, scale, word_j, segment),   c_j = level_value(format, level_j, scale),   state: p - c  or  0
//
// word_j is word j of the client's stream: one thread serves the four parameters of a Philox counter.
#pragma once

#include <span>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/plan.cuh"
#include "fl_core/cuda/reduce.cuh"
#include "fl_core/random.hpp"
#include "fl_core/wire_value.hpp"

namespace fl::cuda {

namespace detail {

[[nodiscard]] __device__ inline std::byte* level_at(std::byte* levels, LevelWidth width, std::size_t i) {
  return levels + i * static_cast<std::size_t>(width);
}
__device__ inline void store_level(std::byte* to, LevelWidth width, std::int32_t level) {
  switch (width) {
    case LevelWidth::w8: *reinterpret_cast<std::int8_t*>(to) = static_cast<std::int8_t>(level); return;
    case LevelWidth::w16: *reinterpret_cast<std::int16_t*>(to) = static_cast<std::int16_t>(level); return;
    case LevelWidth::w32: *reinterpret_cast<std::int32_t*>(to) = level; return;
  }
}

// stream: [K] or null; the scales are in the rows where the format has them.
template <class T, class Quantizer>
__global__ void quantize_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan, LevelFormat format, LevelWidth width, Quantizer q,
                               const RandomStream* stream, const PayloadRow<T>* rows) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state_row(state, k);
    const T scale = format.has_scale ? rows[k].scale[tile.segment] : T(1);
    const std::size_t end = tile.begin + tile.count;
    for (std::size_t quad = tile.begin / 4 + threadIdx.x; quad * 4 < end; quad += blockDim.x) {
      std::uint32_t word[4] = {};
      if (stream != nullptr) stream[k].quad(static_cast<std::uint32_t>(quad), word);
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t j = quad * 4 + i;
        if (j < tile.begin || j >= end) continue;
        const T p = input.at(k, j);
        const std::int32_t level = q(p, scale, word[i], tile.segment);
        store_level(level_at(rows[k].levels, width, tile.offset + (j - tile.begin)), width, level);
        if (row != nullptr) row[j] = state_where_sent(state.rule, p, level_value(format, level, scale));
      }
    }
  }
}

// scale_of(k*S + s, size of segment s), for every client and segment.
template <class T, class ScaleOf>
__global__ void write_scales(ScopePlan plan, std::size_t num_clients, ScaleOf scale_of, const PayloadRow<T>* rows) {
  const std::size_t pieces = num_clients * plan.num_segments;
  for (std::size_t piece = thread_index(); piece < pieces; piece += num_threads()) {
    const std::size_t s = piece % plan.num_segments;
    rows[piece / plan.num_segments].scale[s] = scale_of(piece, plan.segment[s].size);
  }
}

template <class T>
struct GivenScale {
  const T* scale;  // [K,S]
  FL_HD T operator()(std::size_t piece, std::size_t /*size*/) const { return scale[piece]; }
};
template <class T, class ScaleOf>
struct ReducedScale {
  const double* reduced;  // [K,S]
  ScaleOf scale_of;
  FL_HD T operator()(std::size_t piece, std::size_t size) const { return scale_of(reduced[piece], size); }
};

template <class T, class Quantizer>
void quantize_planned(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const LevelFormat& format, LevelWidth width,
                      Quantizer q, std::span<const RandomStream> stream, const StateWrite<T>& state, const PayloadRow<T>* rows,
                      Workspace::Frame& frame) {
  const RandomStream* streams = stream.empty() ? nullptr : upload(exec, stream, frame);
  Launch(exec, "quantize_tiles", input.clients() * plan.num_tiles)(quantize_tiles<T, Quantizer>, input, state, plan, format, width, q,
                                                                   streams, rows);
}

}  // namespace detail

// scale: [K,S] on the device, or null where the format has none (the scale is then 1). stream: [K], or empty for a quantiser without
// chance.
template <class T, class Quantizer>
void quantize_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                   const T* scale, Quantizer q, std::span<const RandomStream> stream, const StateWrite<T>& state,
                   std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const PayloadRow<T>* rows = prepare_levels(exec, plan, format, width, out, frame);
  if (format.has_scale) {
    using Given = detail::GivenScale<T>;
    const std::size_t K = input.clients();
    Launch(exec, "write_scales", blocks_for(K * plan.num_segments))(detail::write_scales<T, Given>, plan, K, Given{scale}, rows);
  }
  detail::quantize_planned(exec, input, plan, format, width, q, stream, state, rows, frame);
}

// scale[k,s] = scale_of(reduce_j map(p_kj), size of the segment), then as quantize_rows. scale_of: FL_HD (double, std::size_t) -> T.
// The reduction has the order of reduce_rows.
template <class T, class Map, class ScaleOf, class Quantizer>
void quantize_segments_fused(const Exec& exec, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                             Map map, Reduce reduce, ScaleOf scale_of, Quantizer q, std::span<const RandomStream> stream,
                             const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  using Reduced = detail::ReducedScale<T, ScaleOf>;
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const PayloadRow<T>* rows = prepare_levels(exec, plan, format, width, out, frame);
  const std::size_t K = input.clients();
  double* reduced = frame.take<double>(K * plan.num_segments);
  detail::reduce_planned(exec, input, plan, map, reduce, reduced, frame);
  Launch(exec, "write_scales", blocks_for(K * plan.num_segments))(detail::write_scales<T, Reduced>, plan, K, Reduced{reduced, scale_of},
                                                                  rows);
  detail::quantize_planned(exec, input, plan, format, width, q, stream, state, rows, frame);
}

}  // namespace fl::cuda
