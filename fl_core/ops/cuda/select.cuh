// Sparsifying by a rule on each element: keeps the entries where keep(p, segment) holds. One pass over memory: p goes to the state row,
// the rule's answers to bit marks; the message is made from those (marks.cuh).
#pragma once

#include <span>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/marks.cuh"
#include "fl_core/ops/cuda/opened.cuh"

namespace fl::cuda {
namespace detail {

constexpr int kSelectAhead = kReduceTile / kBlockThreads;  // elements of a thread: the tile at once
static_assert(kSelectAhead * kBlockThreads == kReduceTile);

// One block per tile; a warp answers for 32 neighbours, one word of marks.
template <class T, class Keep>
__global__ void mark_kept(Affine<T> input, StateWrite<T> state, ScopePlan plan, Keep keep, std::uint32_t* mark) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state_row(state, k);
    const std::size_t first = tile.begin + threadIdx.x, end = tile.begin + tile.count;
    T p[kSelectAhead];
    OpenedInput<T>(input, k).load(first, kBlockThreads, end, p);
    unsigned word[kSelectAhead];
    FL_UNROLL
    for (std::size_t i = 0; i < kSelectAhead; ++i)
      word[i] = __ballot_sync(kAllLanes, first + i * kBlockThreads < end && keep(p[i], tile.segment));
    FL_UNROLL
    for (std::size_t i = 0; i < kSelectAhead; ++i) {
      const std::size_t at = i * kBlockThreads + threadIdx.x;
      if (row != nullptr && at < tile.count) row[tile.begin + at] = p[i];
      if (lane == 0) mark[piece * kMarkWords + at / kWarp] = word[i];
    }
  }
}

}  // namespace detail

// keep(T p, std::size_t segment) -> bool, an FL_HD functor; out: [K] payloads, cleared.
template <class T, class Keep>
void select_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, Keep keep, WireValue wire, const StateWrite<T>& state,
                 std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t pieces = input.clients() * plan.num_tiles;
  auto* mark = frame.take<std::uint32_t>(pieces * kMarkWords);
  Launch(exec, "mark_kept", pieces)(detail::mark_kept<T, Keep>, input, state, plan, keep, mark);
  send_marked(exec, input, plan, mark, wire, state, out, frame);
}

}  // namespace fl::cuda
