#include <algorithm>
#include <cmath>
#include <vector>

#include "fl_core/ops/cuda/candidates.cuh"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/chosen.cuh"
#include "fl_core/ops/cuda/marks.cuh"
#include "fl_core/ops/cuda/radix_select.cuh"
#include "fl_core/ops/cuda/scan.cuh"
#include "fl_core/ops/cuda/top_k.cuh"

namespace fl::cuda {
namespace {

constexpr int kLargeBlock = 1024;
constexpr std::size_t kSearchingBlocks = 1024;  // look for segments that candidates did not settle

// One segment of one client. The first visit of an element evaluates it and leaves p in the state row; later ones read it there. Every
// visit gives element i to the same thread, so that nothing need be waited for in between.
template <class T>
struct SegmentInput {
  const Affine<T>& input;
  std::size_t k, begin, size;
  T* state;  // row of the client, or null
  bool evaluated = false;

  [[nodiscard]] __device__ T at(std::size_t i) const {
    const std::size_t j = begin + i;
    if (state == nullptr) return input.at(k, j);
    if (evaluated) return state[j];
    return state[j] = input.at(k, j);
  }
};

// The rank-th largest key, 1 <= rank <= size. All threads of the block; ends with the segment evaluated.
template <class T>
__device__ Selected<Key<T>> select_in(SegmentInput<T>& segment, unsigned rank, RadixRoom& room) {
  const auto key_at = [&segment](std::size_t i, bool is_first) {
    segment.evaluated = segment.evaluated || !is_first;
    return magnitude_key(segment.at(i));
  };
  const Selected<Key<T>> selected = select_key<Key<T>, 1>(segment.size, rank, leading_digits<Key<T>>(), room, key_at);
  segment.evaluated = true;
  return selected;
}

// Keys at least key are kept: all above it, and `rank` of those equal to it.
template <class T>
struct Bound {
  Key<T> key;
  unsigned rank;
};

// The bound of a segment's k largest. What the list of candidates says about it is used.
template <class T>
__device__ Bound<T> bound_of(SegmentInput<T>& segment, unsigned k, const Found& found, RadixRoom& room) {
  if (k == 0) return {~Key<T>{0}, 0};
  if (k >= segment.size) return {0, static_cast<unsigned>(segment.size)};
  if (found.way == Way::and_zeros) return {0, k - found.num_candidates};
  const Selected<Key<T>> selected = select_in(segment, k, room);
  return {selected.key, selected.rank};
}

// Marks the keys above the bound and the first `quota` equal to it. word: the segment's marks, of whole tiles.
template <class T>
__device__ void mark_segment(const SegmentInput<T>& segment, Bound<T> bound, std::size_t quota, RadixRoom& room, std::uint32_t* word) {
  const std::size_t words = (segment.size + kReduceTile - 1) / kReduceTile * kMarkWords;
  const unsigned lane = threadIdx.x % kWarp, left_lanes = (1u << lane) - 1;
  std::size_t equal_before = 0;
  for (std::size_t base = 0; base < words * kWarp; base += blockDim.x) {
    const std::size_t i = base + threadIdx.x;
    const Key<T> key = i < segment.size ? magnitude_key(segment.at(i)) : 0;
    const bool above = i < segment.size && key > bound.key, equal = i < segment.size && key == bound.key;
    const unsigned equals = __ballot_sync(kAllLanes, equal);
    unsigned all = 0;
    // Every lane of a warp has the sum of the warps before it: lane 0 brings its warp's count.
    const unsigned in_block = block_exclusive_sum(lane == 0 ? static_cast<unsigned>(__popc(equals)) : 0, room.warp_sum, all);
    const unsigned warp_before = __shfl_sync(kAllLanes, in_block, 0);
    const std::size_t nth = equal_before + warp_before + static_cast<unsigned>(__popc(equals & left_lanes));
    const unsigned kept = __ballot_sync(kAllLanes, above || (equal && nth < quota));
    if (lane == 0 && i / kWarp < words) word[i / kWarp] = kept;
    equal_before += all;
  }
}

// A block per client and segment; those that are chosen from candidates are done. found: [K,S] or null.
template <class T>
__global__ void __launch_bounds__(kLargeBlock) mark_largest(Affine<T> input, StateWrite<T> state, ScopePlan plan, const std::uint32_t* k,
                                                            TieRule ties, const Found* found, std::uint32_t* mark) {
  __shared__ RadixRoom room;
  const std::size_t pieces = input.clients() * plan.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const Found known = found == nullptr ? Found{} : found[piece];
    if (known.way == Way::candidates) continue;
    const std::size_t client = piece / plan.num_segments, s = piece % plan.num_segments;
    const SegmentPlan at = plan.segment[s];
    SegmentInput<T> segment{input, client, at.begin, at.size, state_row(state, client), known.way != Way::not_listed};
    const Bound<T> bound = bound_of(segment, k[s], known, room);
    const std::size_t quota = ties == TieRule::all_ties && bound.rank > 0 ? at.size : bound.rank;
    mark_segment(segment, bound, quota, room, mark + (client * plan.num_tiles + at.first_tile) * kMarkWords);
  }
}

// rank: [S]; out: [K,S]
template <class T>
__global__ void __launch_bounds__(kLargeBlock) find_magnitudes(Affine<T> input, ScopePlan plan, const std::uint32_t* rank, T* out) {
  __shared__ RadixRoom room;
  const std::size_t pieces = input.clients() * plan.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t s = piece % plan.num_segments;
    if (rank[s] == 0) {  // a segment without elements
      if (threadIdx.x == 0) out[piece] = T(0);
      continue;
    }
    SegmentInput<T> segment{input, piece / plan.num_segments, plan.segment[s].begin, plan.segment[s].size, nullptr};
    const Selected<Key<T>> selected = select_in(segment, rank[s], room);
    if (threadIdx.x == 0) out[piece] = magnitude_of(selected.key);
  }
}

[[nodiscard]] int threads_for(const Scope& scope) {
  for (const Segment& segment : scope.segments)
    if (segment.size() > kReduceTile) return kLargeBlock;
  return kBlockThreads;
}

[[nodiscard]] bool all_listed(const Scope& scope, std::span<const std::uint32_t> k) {
  for (std::size_t s = 0; s < scope.segments.size(); ++s)
    if (!lists_candidates(scope.segments[s].size(), k[s])) return false;
  return true;
}

}  // namespace

template <class T>
void largest_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                  WireValue wire, const StateWrite<T>& state, SentState sent, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t K = input.clients(), pieces = K * plan.num_segments;
  auto* mark = frame.take<std::uint32_t>(K * plan.num_tiles * kMarkWords);
  const Chosen<T> chosen = choose_candidates(exec, input, scope, plan, k, ties, state, frame);
  const std::size_t blocks = all_listed(scope, k) ? std::min(pieces, kSearchingBlocks) : pieces;
  Launch(exec, "mark_largest", blocks, threads_for(scope))(mark_largest<T>, input, state, plan, upload(exec, k, frame), ties, chosen.found,
                                                           mark);
  send_chosen(exec, input, plan, chosen, mark, wire, state, sent, out, frame);
}

template <class T>
void top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                WireValue wire, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  largest_rows(exec, input, scope, k, ties, wire, state, SentState::settled, out);
}

template <class T>
void quantile_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, double q, T* out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  std::vector<std::uint32_t> rank;
  rank.reserve(scope.segments.size());
  for (const Segment& segment : scope.segments) {
    const std::size_t n = segment.size();
    const auto from_below = static_cast<std::size_t>(std::ceil(q * static_cast<double>(n)));
    rank.push_back(n == 0 ? 0 : static_cast<std::uint32_t>(n - std::clamp<std::size_t>(from_below, 1, n) + 1));
  }
  Launch(exec, "find_magnitudes", input.clients() * plan.num_segments, threads_for(scope))(
      find_magnitudes<T>, input, plan, upload(exec, std::span<const std::uint32_t>(rank), frame), out);
}

#define FL_INSTANTIATE(T)                                                                                                        \
  template void largest_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue, \
                                const StateWrite<T>&, SentState, std::span<Payload<T>* const>);                                  \
  template void top_k_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue,   \
                              const StateWrite<T>&, std::span<Payload<T>* const>);                                               \
  template void quantile_rows<T>(const Exec&, const Affine<T>&, const Scope&, double, T*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
