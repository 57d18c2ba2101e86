// Sparsifying by a rule on each element: keeps the entries where keep(p, segment) holds. One pass over memory: p goes to the state row,
// the rule's answers to bit marks; the message is made from those (marks.cuh).
#pragma once

#include <span>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/marks.cuh"

namespace fl::cuda {
namespace detail {

// One block per tile; a warp answers for 32 neighbours, one word of marks.
template <class T, class Keep>
__global__ void mark_kept(Affine<T> input, StateWrite<T> state, ScopePlan plan, Keep keep, std::uint32_t* mark) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state_row(state, k);
    for (std::size_t w = threadIdx.x / kWarp; w < kMarkWords; w += blockDim.x / kWarp) {
      const std::size_t i = w * kWarp + lane;
      bool kept = false;
      if (i < tile.count) {
        const T p = input.at(k, tile.begin + i);
        if (row != nullptr) row[tile.begin + i] = p;
        kept = keep(p, tile.segment);
      }
      const unsigned word = __ballot_sync(kAllLanes, kept);
      if (lane == 0) mark[piece * kMarkWords + w] = word;
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
