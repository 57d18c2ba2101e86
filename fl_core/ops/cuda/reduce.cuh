// Sums and maxima over the segments of every client: out[k,s] = sum_j map(p_kj)  or  max_j map(p_kj), in double.
//
// The order is the CPU's (fl_core/ops/cpu/reduce.hpp), so that a norm has the same bits: sixteen threads are the lanes of a tile, each adds
// elements l, l+16, l+32, ...; the lanes are joined as a binary tree by shuffles; then one warp per segment adds its tiles in ascending
// order. Maps use plain IEEE operations.
#pragma once

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {
namespace detail {

template <Reduce R>
[[nodiscard]] FL_HD inline double start_value() {
  return R == Reduce::sum ? 0.0 : -HUGE_VAL;
}

template <Reduce R>
[[nodiscard]] FL_HD inline double join(double a, double b) {
  if constexpr (R == Reduce::sum)
    return a + b;
  else
    return a < b ? b : a;  // NaN never wins
}

constexpr int kReduceAhead = 8;  // elements of a lane that are loaded together

// The lanes' numbers as one; lane 0 of every sixteen has it. All lanes of the warp take part.
template <Reduce R>
[[nodiscard]] __device__ inline double join_lanes(double mine) {
  for (unsigned width = kReduceLanes / 2; width > 0; width /= 2)
    mine = join<R>(mine, __shfl_down_sync(kAllLanes, mine, width, static_cast<int>(kReduceLanes)));
  return mine;
}

// tile_value: [K, num_tiles]
template <Reduce R, class T, class Map>
__global__ void reduce_tiles(Affine<T> input, ScopePlan plan, Map map, double* tile_value) {
  const std::size_t pieces = input.clients() * plan.num_tiles, stride = num_threads() / kReduceLanes;
  const std::size_t lane = threadIdx.x % kReduceLanes;
  // Both halves of a warp go round together: shuffles need all lanes.
  const std::size_t first = thread_index() / kReduceLanes, half = first % 2;
  for (std::size_t pair = first - half; pair < pieces; pair += stride) {
    const std::size_t piece = pair + half;
    double sum = start_value<R>();
    if (piece < pieces) {
      const std::size_t k = piece / plan.num_tiles;
      const Tile tile = tile_at(plan, piece % plan.num_tiles);
      const OpenedInput<T> opened(input, k);
      const std::size_t end = tile.begin + tile.count;
      for (std::size_t j = tile.begin + lane; j < end; j += kReduceAhead * kReduceLanes) {
        T p[kReduceAhead];
        opened.load(j, kReduceLanes, end, p);
        FL_UNROLL
        for (std::size_t i = 0; i < kReduceAhead; ++i)
          if (j + i * kReduceLanes < end) sum = join<R>(sum, mapped(map, p[i], tile.segment));
      }
    }
    sum = join_lanes<R>(sum);
    if (lane == 0 && piece < pieces) tile_value[piece] = sum;
  }
}

// One warp per client and segment; every lane holds the running value.
template <Reduce R>
__global__ void join_tiles(ScopePlan plan, std::size_t num_clients, const double* tile_value, double* out) {
  const std::size_t pieces = num_clients * plan.num_segments;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const SegmentPlan segment = plan.segment[piece % plan.num_segments];
    const std::size_t tiles = (segment.size + kReduceTile - 1) / kReduceTile;
    const double* value = tile_value + piece / plan.num_segments * plan.num_tiles + segment.first_tile;
    double result = start_value<R>();
    for (std::size_t base = 0; base < tiles; base += kWarp) {
      const double mine = base + lane < tiles ? value[base + lane] : 0.0;
      const int here = static_cast<int>(tiles - base < kWarp ? tiles - base : kWarp);
      for (int i = 0; i < here; ++i) result = join<R>(result, __shfl_sync(kAllLanes, mine, i));
    }
    if (lane == 0) out[piece] = result;
  }
}

template <Reduce R, class T, class Map>
void reduce_planned(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, Map map, double* out, Workspace::Frame& frame) {
  const std::size_t K = input.clients(), pieces = K * plan.num_tiles;
  double* tile_value = frame.take<double>(pieces);
  Launch(exec, "reduce_rows, tiles", blocks_for(pieces * kReduceLanes))(reduce_tiles<R, T, Map>, input, plan, map, tile_value);
  Launch(exec, "reduce_rows, segments", blocks_for(K * plan.num_segments * kWarp))(join_tiles<R>, plan, K, tile_value, out);
}

template <class T, class Map>
void reduce_planned(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, Map map, Reduce reduce, double* out,
                    Workspace::Frame& frame) {
  if (reduce == Reduce::sum)
    reduce_planned<Reduce::sum>(exec, input, plan, map, out, frame);
  else
    reduce_planned<Reduce::max>(exec, input, plan, map, out, frame);
}

}  // namespace detail

// out: [K,S] on the device; map: T -> double or (T, segment) -> double, an FL_HD functor.
template <class T, class Map>
void reduce_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, Map map, Reduce reduce, double* out) {
  Workspace::Frame frame(*exec.workspace);
  detail::reduce_planned(exec, input, plan_segments(exec, scope.segments, frame), map, reduce, out, frame);
}

}  // namespace fl::cuda
