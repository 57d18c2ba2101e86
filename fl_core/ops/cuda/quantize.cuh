// Levels for every parameter, fused: affine input, random words, quantiser, level store and new state in one pass over memory.
//
//   level_j = q(p_j, scale, word_j, segment),   c_j = level_value(format, level_j, scale),   state: p - c  or  0
//
// word_j is word j of the client's stream: one thread serves the quad of parameters of a Philox counter. The quantiser is given the
// segment's scale, all its scales, or its parameters, as fl_core/ops/cpu/quantize.hpp says. Bytes per element of EF14 in float32 with
// levels of 8 bits: 13 = e and g, state, level; where the scale is a norm of segments that are longer than a tile, 8 more for the norm.
#pragma once

#include <algorithm>
#include <span>

#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/ops/cuda/reduce.cuh"
#include "fl_core/random/random.hpp"

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

template <class L>
__device__ inline void store_level_quad(std::byte* to, const std::int32_t (&level)[4]) {
  Quad<L> quad;
  for (int i = 0; i < 4; ++i) quad.x[i] = static_cast<L>(level[i]);
  store_quad(reinterpret_cast<L*>(to), quad);
}
__device__ inline void store_levels(std::byte* to, LevelWidth width, const std::int32_t (&level)[4]) {
  switch (width) {
    case LevelWidth::w8: return store_level_quad<std::int8_t>(to, level);
    case LevelWidth::w16: return store_level_quad<std::int16_t>(to, level);
    case LevelWidth::w32: return store_level_quad<std::int32_t>(to, level);
  }
}

// The numbers that a quantiser receives: its segment's scales as the receiver has them, or parameters [K,S,m] of the sender alone.
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

// The numbers of levels, with the map known to the compiler where the quantiser names it and a single scale at hand.
template <class T, class Quantizer>
class NumberOfLevel {
 public:
  // scale: [scales_per_segment]
  __device__ NumberOfLevel(const LevelFormat& format, const T* scale) : format_(format), scales_(scale) {
    if constexpr (requires { typename Quantizer::Map; }) format_.map = Quantizer::Map::value;
    scale_ = has_several() || !format.has_scale ? T(1) : *scale;
  }
  [[nodiscard]] __device__ T operator()(std::int32_t level) const {
    return has_several() ? level_value(format_, level, scales_) : level_value(format_, level, scale_);
  }

 private:
  [[nodiscard]] __device__ bool has_several() const { return format_.map == LevelMap::two_values || format_.map == LevelMap::table; }
  LevelFormat format_;
  const T* scales_;
  T scale_;
};

// Where a piece's levels and state go: elements begin .. end-1 of the vector, whose levels begin at `level`.
template <class T>
struct PieceTarget {
  std::size_t segment, begin, end;
  std::byte* level;
  LevelWidth width;
  T* state;  // client's row, or null
  StateRule rule;

  [[nodiscard]] __device__ std::byte* level_of(std::size_t j) const { return level_at(level, width, j - begin); }
  // Whether the levels, the state of whole quads can be stored at once.
  [[nodiscard]] __device__ bool has_level_quads() const {
    const std::size_t to_quad = (4 - begin % 4) % 4, bytes = static_cast<std::size_t>(width);
    return (reinterpret_cast<std::uintptr_t>(level) + to_quad * bytes) % (4 * bytes) == 0;
  }
  [[nodiscard]] __device__ bool has_state_quads() const { return holds_quads(state); }
};

// Levels and state of elements first .. first+3, as far as the target has them.
template <class T, class Quantizer, class Numbers>
__device__ void quantize_quad(const PieceTarget<T>& to, std::size_t first, const Quad<T>& p, const std::uint32_t (&word)[4], Quantizer q,
                              Numbers numbers, const NumberOfLevel<T, Quantizer>& number_of, bool level_quads, bool state_quads) {
  const bool whole = first >= to.begin && first + 4 <= to.end;
  std::int32_t level[4];
  Quad<T> left;
  FL_UNROLL
  for (int i = 0; i < 4; ++i) {
    level[i] = q(p.x[i], numbers, word[i], to.segment);
    left.x[i] = state_where_sent(to.rule, p.x[i], number_of(level[i]));
  }
  if (whole && level_quads) {
    store_levels(to.level_of(first), to.width, level);
  } else {
    FL_UNROLL
    for (int i = 0; i < 4; ++i)
      if (first + i >= to.begin && first + i < to.end) store_level(to.level_of(first + i), to.width, level[i]);
  }
  if (to.state == nullptr) return;
  if (whole && state_quads) {
    store_quad(to.state + first, left);
  } else {
    FL_UNROLL
    for (int i = 0; i < 4; ++i)
      if (first + i >= to.begin && first + i < to.end) to.state[first + i] = left.x[i];
  }
}

// stream: [K] or null; the scales are in the rows where the format has them.
template <class T, class Quantizer, class NumbersOf>
__global__ void quantize_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan, LevelFormat format, LevelWidth width, Quantizer q,
                               NumbersOf numbers_of, const RandomStream* stream, const PayloadRow<T>* rows) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece - k * plan.num_tiles);
    const OpenedInput<T> opened(input, k);
    const RandomStream words = stream != nullptr ? stream[k] : RandomStream{};
    const T* scale = rows[k].scale + tile.segment * scales_per_segment(format);
    const auto numbers = numbers_of(format, scale, k * plan.num_segments + tile.segment);
    const NumberOfLevel<T, Quantizer> number_of(format, scale);
    const PieceTarget<T> to{tile.segment,        tile.begin, tile.begin + tile.count, level_at(rows[k].levels, width, tile.offset), width,
                            state_row(state, k), state.rule};
    const bool in_quads = opened.has_quads(), level_quads = to.has_level_quads(), state_quads = to.has_state_quads();
    for (std::size_t quad = tile.begin / 4 + threadIdx.x; quad * 4 < to.end; quad += blockDim.x) {
      Quad<T> p[1];
      opened.load_quads(quad, 1, to.begin, to.end, in_quads, p);
      std::uint32_t word[4] = {};
      if (stream != nullptr) words.quad(static_cast<std::uint32_t>(quad), word);
      quantize_quad(to, quad * 4, p[0], word, q, numbers, number_of, level_quads, state_quads);
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

// ---- segments of one tile ----

// Elements of shared memory that hold a segment from the quad on in which it begins.
[[nodiscard]] FL_HD inline std::size_t held_elements(std::size_t largest) { return (largest + 3 + 3) / 4 * 4; }

// reduce_j map(p_j) of a tile by one warp, in the order of reduce_rows; every lane has it. p: [count] in shared memory
template <Reduce R, class T, class Map>
[[nodiscard]] __device__ double reduce_held(const T* p, std::size_t count, Map map, std::size_t segment) {
  const unsigned lane = threadIdx.x % kWarp;
  double sum = start_value<R>();
  if (lane < kReduceLanes)
    for (std::size_t i = lane; i < count; i += kReduceLanes) sum = join<R>(sum, mapped(map, p[i], segment));
  return join<R>(start_value<R>(), __shfl_sync(kAllLanes, join_lanes<R>(sum), 0));
}

// The input of one segment into shared memory by one warp, two quads of a lane at a time.
template <class T>
__device__ void hold_segment(const OpenedInput<T>& opened, std::size_t begin, std::size_t end, T* held) {
  constexpr int kQuads = 2;
  const bool in_quads = opened.has_quads();
  const std::size_t first = begin / 4, quads = (end + 3) / 4;
  for (std::size_t quad = first + threadIdx.x % kWarp; quad < quads; quad += kQuads * kWarp) {
    Quad<T> p[kQuads];
    opened.load_quads(quad, kWarp, begin, end, in_quads, p);
    FL_UNROLL
    for (std::size_t i = 0; i < kQuads; ++i)
      if (quad + i * kWarp < quads) store_quad(held + 4 * (quad + i * kWarp - first), p[i]);
  }
}

// Scale, levels and state by one warp per client and segment of kReduceTile elements at most: p waits in shared memory for the scale.
template <class T, class Map, class ScaleOf, class Quantizer>
__global__ void quantize_buckets(Affine<T> input, StateWrite<T> state, ScopePlan plan, LevelFormat format, LevelWidth width, Map map,
                                 Reduce reduce, ScaleOf scale_of, Quantizer q, const RandomStream* stream, const PayloadRow<T>* rows) {
  FL_SHARED_MEMORY(T, memory);
  const unsigned lane = threadIdx.x % kWarp;
  T* held = memory + threadIdx.x / kWarp * held_elements(plan.largest);
  const std::size_t pieces = input.clients() * plan.num_segments;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_segments, s = piece - k * plan.num_segments;
    const SegmentPlan segment = plan.segment[s];
    const std::size_t begin = segment.begin, end = begin + segment.size;
    hold_segment(OpenedInput<T>(input, k), begin, end, held);
    __syncwarp();
    const T* p = held + begin % 4;
    const double reduced =
        reduce == Reduce::sum ? reduce_held<Reduce::sum>(p, segment.size, map, s) : reduce_held<Reduce::max>(p, segment.size, map, s);
    const T scale = scale_of(reduced, segment.size);
    if (lane == 0) rows[k].scale[s] = scale;

    const RandomStream words = stream != nullptr ? stream[k] : RandomStream{};
    const NumberOfLevel<T, Quantizer> number_of(format, &scale);
    const PieceTarget<T> to{s, begin, end, level_at(rows[k].levels, width, segment.offset), width, state_row(state, k), state.rule};
    const bool level_quads = to.has_level_quads(), state_quads = to.has_state_quads();
    for (std::size_t quad = begin / 4 + lane; quad * 4 < end; quad += kWarp) {
      std::uint32_t word[4] = {};
      if (stream != nullptr) words.quad(static_cast<std::uint32_t>(quad), word);
      quantize_quad(to, quad * 4, load_quad(held + 4 * (quad - begin / 4)), word, q, numbers_for<Quantizer>(format, &scale), number_of,
                    level_quads, state_quads);
    }
    __syncwarp();  // before the next segment comes into the same memory
  }
}

// Warps of a block whose segments lie in 48 KiB of shared memory together.
template <class T>
[[nodiscard]] std::size_t bucket_warps(const ScopePlan& plan) {
  constexpr std::size_t kMostBytes = 48 * 1024, kMostWarps = kBlockThreads / kWarp;
  return std::clamp<std::size_t>(kMostBytes / (held_elements(plan.largest) * sizeof(T)), 1, kMostWarps);
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
  if (plan.largest <= kReduceTile) {
    const RandomStream* streams = stream.empty() ? nullptr : upload(exec, stream, frame);
    const std::size_t warps = detail::bucket_warps<T>(plan);
    Launch(exec, "quantize_buckets", (K * plan.num_segments + warps - 1) / warps, static_cast<int>(warps * kWarp))
        .with_shared(warps * detail::held_elements(plan.largest) * sizeof(T))(detail::quantize_buckets<T, Map, ScaleOf, Quantizer>, input,
                                                                              state, plan, format, width, map, reduce, scale_of, q, streams,
                                                                              rows);
    return;
  }
  double* reduced = frame.take<double>(K * plan.num_segments);
  detail::reduce_planned(exec, input, plan, map, reduce, reduced, frame);
  Launch(exec, "write_scales", blocks_for(K * plan.num_segments))(detail::write_scales<T, Reduced>, plan, K, Reduced{reduced, scale_of},
                                                                  rows);
  detail::quantize_planned(exec, input, plan, format, width, q, detail::OwnScales<T, Quantizer>{}, stream, state, rows, frame);
}

}  // namespace fl::cuda
