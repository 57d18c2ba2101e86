#include <algorithm>
#include <cmath>
#include <vector>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/marks.cuh"
#include "fl_core/cuda/scan.cuh"
#include "fl_core/cuda/top_k.cuh"

namespace fl::cuda {
namespace {

constexpr unsigned kDigits = 256, kDigitBits = 8, kCopies = 4;
constexpr int kLargeBlock = 1024;

// |p| as an integer: ordered like the magnitude, NaN above infinity.
[[nodiscard]] __device__ inline std::uint32_t magnitude_key(float p) { return __float_as_uint(p) & 0x7FFFFFFFu; }
[[nodiscard]] __device__ inline std::uint64_t magnitude_key(double p) {
  return static_cast<std::uint64_t>(__double_as_longlong(p)) & 0x7FFFFFFFFFFFFFFFull;
}
[[nodiscard]] __device__ inline float magnitude_of(std::uint32_t key) { return __uint_as_float(key); }
[[nodiscard]] __device__ inline double magnitude_of(std::uint64_t key) { return __longlong_as_double(static_cast<long long>(key)); }
template <class T>
using Key = decltype(magnitude_key(T()));

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

struct Shared {
  unsigned count[kCopies][kDigits];
  unsigned digit, rank;
  unsigned warp_sum[kWarp];
};

// Keys at least key: all above it, and `rank` of those equal to it reach the k-th.
template <class T>
struct Bound {
  Key<T> key;
  unsigned rank;
};

// The digit that holds the rank-th largest, and the rank inside it. One warp; lane l has the digits 8l .. 8l+7.
__device__ inline void find_digit(Shared& shared, unsigned rank) {
  constexpr unsigned kOwn = kDigits / kWarp;
  const unsigned lane = threadIdx.x % kWarp, first = (kWarp - 1 - lane) * kOwn;  // descending
  unsigned own = 0;
  for (unsigned d = 0; d < kOwn; ++d) own += shared.count[0][first + d];
  const unsigned above = warp_inclusive_sum(own) - own;
  if (above >= rank || above + own < rank) return;
  unsigned left = rank - above, d = kOwn;
  while (shared.count[0][first + d - 1] < left) left -= shared.count[0][first + --d];
  shared.digit = first + d - 1;
  shared.rank = left;
}

// The rank-th largest key, 1 <= rank <= size. All threads of the block; ends with the segment evaluated.
template <class T>
__device__ Bound<T> select_key(SegmentInput<T>& segment, unsigned rank, Shared& shared) {
  constexpr int kTopShift = static_cast<int>(8 * sizeof(T) - kDigitBits);
  unsigned* count = shared.count[threadIdx.x / kWarp % kCopies];
  Key<T> prefix = 0, known = 0;
  for (int shift = kTopShift; shift >= 0; shift -= static_cast<int>(kDigitBits)) {
    for (unsigned i = threadIdx.x; i < kCopies * kDigits; i += blockDim.x) shared.count[i / kDigits][i % kDigits] = 0;
    __syncthreads();
    for (std::size_t i = threadIdx.x; i < segment.size; i += blockDim.x) {
      const Key<T> key = magnitude_key(segment.at(i));
      if ((key & known) == prefix) atomicAdd(&count[key >> shift & (kDigits - 1)], 1u);
    }
    segment.evaluated = true;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < kDigits; i += blockDim.x)
      for (unsigned c = 1; c < kCopies; ++c) shared.count[0][i] += shared.count[c][i];
    __syncthreads();
    if (threadIdx.x < kWarp) find_digit(shared, rank);
    __syncthreads();
    prefix |= static_cast<Key<T>>(shared.digit) << shift;
    known |= static_cast<Key<T>>(kDigits - 1) << shift;
    rank = shared.rank;
    __syncthreads();
  }
  return {prefix, rank};
}

// Marks the keys above the bound and the first `quota` equal to it. word: the segment's marks, of whole tiles.
template <class T>
__device__ void mark_segment(const SegmentInput<T>& segment, Bound<T> bound, std::size_t quota, Shared& shared, std::uint32_t* word) {
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
    const unsigned in_block = block_exclusive_sum(lane == 0 ? static_cast<unsigned>(__popc(equals)) : 0, shared.warp_sum, all);
    const unsigned warp_before = __shfl_sync(kAllLanes, in_block, 0);
    const std::size_t nth = equal_before + warp_before + static_cast<unsigned>(__popc(equals & left_lanes));
    const unsigned kept = __ballot_sync(kAllLanes, above || (equal && nth < quota));
    if (lane == 0 && i / kWarp < words) word[i / kWarp] = kept;
    equal_before += all;
  }
}

template <class T>
__global__ void __launch_bounds__(kLargeBlock)
    mark_largest(Affine<T> input, StateWrite<T> state, ScopePlan plan, const std::uint32_t* k, TieRule ties, std::uint32_t* mark) {
  __shared__ Shared shared;
  const std::size_t pieces = input.clients() * plan.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t client = piece / plan.num_segments, s = piece % plan.num_segments;
    const SegmentPlan at = plan.segment[s];
    SegmentInput<T> segment{input, client, at.begin, at.size, state_row(state, client)};
    Bound<T> bound{~Key<T>{0}, 0};
    if (k[s] >= at.size)
      bound = {0, static_cast<unsigned>(at.size)};
    else if (k[s] > 0)
      bound = select_key(segment, k[s], shared);
    const std::size_t quota = ties == TieRule::all_ties && bound.rank > 0 ? at.size : bound.rank;
    mark_segment(segment, bound, quota, shared, mark + (client * plan.num_tiles + at.first_tile) * kMarkWords);
  }
}

// rank: [S]; out: [K,S]
template <class T>
__global__ void __launch_bounds__(kLargeBlock) find_magnitudes(Affine<T> input, ScopePlan plan, const std::uint32_t* rank, T* out) {
  __shared__ Shared shared;
  const std::size_t pieces = input.clients() * plan.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t s = piece % plan.num_segments;
    SegmentInput<T> segment{input, piece / plan.num_segments, plan.segment[s].begin, plan.segment[s].size, nullptr};
    const Bound<T> bound = select_key(segment, rank[s], shared);
    if (threadIdx.x == 0) out[piece] = magnitude_of(bound.key);
  }
}

[[nodiscard]] int threads_for(const Scope& scope) {
  for (const Segment& segment : scope.segments)
    if (segment.size() > kReduceTile) return kLargeBlock;
  return kBlockThreads;
}

}  // namespace

template <class T>
void top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                WireValue wire, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t K = input.clients();
  auto* mark = frame.take<std::uint32_t>(K * plan.num_tiles * kMarkWords);
  Launch(exec, "mark_largest", K * plan.num_segments, threads_for(scope))(mark_largest<T>, input, state, plan, upload(exec, k, frame), ties,
                                                                          mark);
  send_marked(exec, input, plan, mark, wire, state, out, frame);
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
    rank.push_back(static_cast<std::uint32_t>(n - std::clamp<std::size_t>(from_below, 1, n) + 1));
  }
  Launch(exec, "find_magnitudes", input.clients() * plan.num_segments, threads_for(scope))(
      find_magnitudes<T>, input, plan, upload(exec, std::span<const std::uint32_t>(rank), frame), out);
}

#define FL_INSTANTIATE(T)                                                                                                      \
  template void top_k_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue, \
                              const StateWrite<T>&, std::span<Payload<T>* const>);                                             \
  template void quantile_rows<T>(const Exec&, const Affine<T>&, const Scope&, double, T*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
