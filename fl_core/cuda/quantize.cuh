// Levels for every parameter, fused: affine input, random words, quantiser, level store and new state in one pass over memory.
//
//   level_j = q(p_j, scale, word_j, segment),   c_j = level_value(format, level_j, scale),   state: p - c  or  0
//
// word_j is word j of the client's stream: one thread serves the four parameters of a Philox counter. The quantiser is given the segment's
// scale, all its scales, or its parameters, as fl_core/cpu/quantize.hpp says.
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

// What the quantiser is given: its segment's scales as the receiver has them, or parameters [K,S,m] of the sender alone.
template <class T, class Quantizer>
struct OwnScales {
  FL_HD auto operator()(const LevelFormat& format, const T* scale, std::size_t /*piece*/) const {
    return numbers_for<Quantizer>(format, scale);
  }
};
template <class T>
struct Parameters {
  const T* parameter;
  std::size_t m;
  FL_HD const T* operator()(const LevelFormat&, const T* /*scale*/, std::size_t piece) const { return parameter + piece * m; }
};

// stream: [K] or null; the scales are in the rows where the format has them.
template <class T, class Quantizer, class NumbersOf>
__global__ void quantize_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan, LevelFormat format, LevelWidth width, Quantizer q,
                               NumbersOf numbers_of, const RandomStream* stream, const PayloadRow<T>* rows) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state_row(state, k);
    const T* scale = rows[k].scale + tile.segment * scales_per_segment(format);
    const auto numbers = numbers_of(format, scale, k * plan.num_segments + tile.segment);
    const std::size_t end = tile.begin + tile.count;
    for (std::size_t quad = tile.begin / 4 + threadIdx.x; quad * 4 < end; quad += blockDim.x) {
      std::uint32_t word[4] = {};
      if (stream != nullptr) stream[k].quad(static_cast<std::uint32_t>(quad), word);
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t j = quad * 4 + i;
        if (j < tile.begin || j >= end) continue;
        const T p = input.at(k, j);
        const std::int32_t level = q(p, numbers, word[i], tile.segment);
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

// The n scales of every client and segment, [K,S,n], into the messages.
template <class T>
__global__ void copy_scales(ScopePlan plan, std::size_t num_clients, std::size_t n, const T* scale, const PayloadRow<T>* rows) {
  const std::size_t row = plan.num_segments * n, total = num_clients * row;
  for (std::size_t i = thread_index(); i < total; i += num_threads()) rows[i / row].scale[i % row] = scale[i];
}

template <class T, class ScaleOf>
struct ReducedScale {
  const double* reduced;  // [K,S]
  ScaleOf scale_of;
  FL_HD T operator()(std::size_t piece, std::size_t size) const { return scale_of(reduced[piece], size); }
};

template <class T, class Quantizer, class NumbersOf>
void quantize_planned(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const LevelFormat& format, LevelWidth width,
                      Quantizer q, NumbersOf numbers_of, std::span<const RandomStream> stream, const StateWrite<T>& state,
                      const PayloadRow<T>* rows, Workspace::Frame& frame) {
  const RandomStream* streams = stream.empty() ? nullptr : upload(exec, stream, frame);
  Launch(exec, "quantize_tiles", input.clients() * plan.num_tiles)(quantize_tiles<T, Quantizer, NumbersOf>, input, state, plan, format,
                                                                   width, q, numbers_of, streams, rows);
}

// scale: [K,S,n] on the device.
template <class T, class Quantizer, class NumbersOf>
void quantize_given(const Exec& exec, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                    const T* scale, Quantizer q, NumbersOf numbers_of, std::span<const RandomStream> stream, const StateWrite<T>& state,
                    std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const PayloadRow<T>* rows = prepare_levels(exec, plan, format, width, out, frame);
  const std::size_t K = input.clients(), n = scales_per_segment(format);
  if (n > 0) Launch(exec, "copy_scales", blocks_for(K * plan.num_segments * n))(copy_scales<T>, plan, K, n, scale, rows);
  quantize_planned(exec, input, plan, format, width, q, numbers_of, stream, state, rows, frame);
}

}  // namespace detail

// scale: [K,S,n] on the device, or null where the format has none (the scale is then 1). stream: [K], or empty for a quantiser without
// chance.
template <class T, class Quantizer>
void quantize_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                   const T* scale, Quantizer q, std::span<const RandomStream> stream, const StateWrite<T>& state,
                   std::span<Payload<T>* const> out) {
  detail::quantize_given(exec, input, scope, format, width, scale, q, detail::OwnScales<T, Quantizer>{}, stream, state, out);
}

// As quantize_rows, with parameters [K,S,m] on the device that stay here: the quantiser is given those of its segment, not the scales.
template <class T, class Quantizer>
void encode_levels_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                        const T* scale, const T* parameters, std::size_t m, Quantizer q, std::span<const RandomStream> stream,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  detail::quantize_given(exec, input, scope, format, width, scale, q, detail::Parameters<T>{parameters, m}, stream, state, out);
}

// scale[k,s] = scale_of(reduce_j map(p_kj), size of the segment), then as quantize_rows. scale_of: FL_HD (double, std::size_t) -> T.
// The reduction has the order of reduce_rows. For formats with one scale per segment.
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
  detail::quantize_planned(exec, input, plan, format, width, q, detail::OwnScales<T, Quantizer>{}, stream, state, rows, frame);
}

}  // namespace fl::cuda
