#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "fl_core/cuda/candidates.cuh"
#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/marks.cuh"
#include "fl_core/cuda/radix_select.cuh"
#include "fl_core/cuda/scan.cuh"

namespace fl::cuda {
namespace {

constexpr unsigned kKeyBatch = 4;                              // keys that a thread fetches at once
constexpr unsigned kSampleBatch = 4;                           // elements of the sample that a thread fetches at once
constexpr unsigned kOwn = kReduceTile / kBlockThreads;         // elements of a tile that a thread takes
constexpr unsigned kTile = kReduceTile, kStretch = 4 * kTile;  // elements that a block takes before it looks for more work
constexpr unsigned kMiddleDigits = 2, kBoundDigits = 3;        // digits of a key that are precise enough
constexpr std::size_t kFewPieces = 512;                        // up to here blocks are large, so that all multiprocessors are full
constexpr int kLargeBlock = 1024;

// A segment of which candidates are listed.
struct LargeSegment {
  std::size_t begin;       // in the vector
  std::size_t first_tile;  // of the scope
  std::size_t first_slot;  // room of the segments before this one, for one client
  Sample sample;
  unsigned segment, size, k;
  unsigned first_stretch;
};
struct LargePlan {
  const LargeSegment* segment;  // [L] on the device
  unsigned num_segments;        // L
  unsigned num_stretches;       // of one client
  std::size_t num_slots;        // of one client
  unsigned most_runs;           // of a sample
};
struct FirstStretch {
  FL_HD std::size_t operator()(const LargeSegment& segment) const { return segment.first_stretch; }
};

// Candidates of all clients, in no order; of each key and index.
template <class T>
struct Lists {
  Key<T>* bound;         // [K,L]
  Key<T>* key;           // [K,num_slots]
  std::uint32_t* index;  // [K,num_slots], from the segment's first element
  Found* found;          // [K,S]
};

// One segment of one client.
template <class T>
struct List {
  Key<T> bound;
  Key<T>* key;
  std::uint32_t* index;
  Found* found;
};
template <class T>
__device__ List<T> list_of(const Lists<T>& lists, const ScopePlan& plan, const LargePlan& large, std::size_t client, std::size_t l) {
  const LargeSegment& at = large.segment[l];
  const std::size_t first = client * large.num_slots + at.first_slot;
  return {lists.bound[client * large.num_segments + l], lists.key + first, lists.index + first,
          lists.found + client * plan.num_segments + at.segment};
}

// A client's row of every term, from an element on.
template <class T, int kTerms>
struct Terms {
  const T* row[kTerms];
  T coefficient[kTerms];

  __device__ Terms(const Affine<T>& input, std::size_t client, std::size_t begin) {
    FL_UNROLL
    for (int a = 0; a < kTerms; ++a) {
      row[a] = input.term[a].row(client) + begin;
      coefficient[a] = input.coefficient[a];
    }
  }
  // p[u] is element at[u], or 0 from `end` on. All is asked for before the first number is waited for.
  template <unsigned kCount>
  __device__ void evaluate(const std::size_t (&at)[kCount], unsigned end, T (&p)[kCount]) const {
    T x[kTerms][kCount];
    FL_UNROLL
    for (int a = 0; a < kTerms; ++a) {
      FL_UNROLL
      for (unsigned u = 0; u < kCount; ++u) x[a][u] = at[u] < end ? row[a][at[u]] : T(0);
    }
    FL_UNROLL
    for (unsigned u = 0; u < kCount; ++u) {
      p[u] = coefficient[0] * x[0][u];
      FL_UNROLL
      for (int a = 1; a < kTerms; ++a) p[u] = p[u] + coefficient[a] * x[a][u];
    }
  }
};

// ---- 1. bounds ------------------------------------------------------------------------------------------------------------------

// key: the sample's, in shared memory. Neighbours are alike in a layer: how much the runs' counts of what reaches `middle` differ says how
// far below the expected rank to stay, four standard deviations.
template <class K>
__device__ unsigned rank_in_sample(const Sample& sample, const K* key, K middle, unsigned& squares) {
  const unsigned lane = threadIdx.x % kWarp, size = sample.num_runs * kSampleRun;
  if (threadIdx.x == 0) squares = 0;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
    const unsigned reach = __ballot_sync(kAllLanes, key[i] >= middle);
    const auto here = static_cast<unsigned>(__popc(reach >> (lane / kSampleRun * kSampleRun) & ((1u << kSampleRun) - 1)));
    if (lane % kSampleRun == 0) atomicAdd(&squares, here * here);
  }
  __syncthreads();
  const unsigned rank = sample.rank + static_cast<unsigned>(4 * sqrtf(static_cast<float>(squares))) + 8;
  return rank < sample.most_rank ? rank : sample.most_rank;
}

// A block per client and large segment. Only reads: the state row may lie over a term of the input.
template <class T, int kTerms>
__global__ void __launch_bounds__(kBlockThreads) sample_bounds(Affine<T> input, LargePlan large, Key<T>* bound) {
  FL_BLOCK_MEMORY(Key<T>, key);
  __shared__ RadixRoom room;
  __shared__ unsigned squares;
  const auto key_at = [key](std::size_t i, bool) { return key[i]; };
  const std::size_t pieces = std::size_t{input.clients()} * large.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const LargeSegment& at = large.segment[piece % large.num_segments];
    const Sample sample = at.sample;
    const Terms<T, kTerms> terms(input, piece / large.num_segments, at.begin);
    const unsigned size = sample.num_runs * kSampleRun;
    for (unsigned base = threadIdx.x; base < size; base += kSampleBatch * kBlockThreads) {
      std::size_t place[kSampleBatch];
      T p[kSampleBatch];
      FL_UNROLL
      for (unsigned u = 0; u < kSampleBatch; ++u) {
        const unsigned i = base + u * kBlockThreads;
        place[u] = sample.place(i / kSampleRun) + i % kSampleRun;
      }
      terms.evaluate(place, at.size, p);
      FL_UNROLL
      for (unsigned u = 0; u < kSampleBatch; ++u) key[base + u * kBlockThreads] = magnitude_key(p[u]);
    }
    __syncthreads();
    const Key<T> middle = select_key<Key<T>, kKeyBatch>(size, sample.rank, leading_digits<Key<T>>(kMiddleDigits), room, key_at).key;
    const unsigned rank = rank_in_sample(sample, key, middle, squares);
    const Key<T> least = select_key<Key<T>, kKeyBatch>(size, rank, leading_digits<Key<T>>(kBoundDigits), room, key_at).key;
    // Zeros are never listed: where they are among the k largest there is nothing to be found out about them.
    if (threadIdx.x == 0) bound[piece] = least > 0 ? least : 1;
  }
}

// ---- 2. the pass over memory ----------------------------------------------------------------------------------------------------

struct CollectRoom {
  unsigned num_here;    // candidates of the tile
  unsigned first_slot;  // of them
};

// A tile's candidates to free slots of the list; beyond its capacity they are only counted. own: bit u is set where p[u], element
// index + u * kBlockThreads of the segment, is one.
template <class T>
__device__ void append(const List<T>& list, unsigned capacity, unsigned own, const T (&p)[kOwn], unsigned index, CollectRoom& room) {
  const auto count = static_cast<unsigned>(__popc(own));
  const unsigned up_to_lane = warp_inclusive_sum(count);
  unsigned before_warp = threadIdx.x % kWarp == kWarp - 1 ? atomicAdd(&room.num_here, up_to_lane) : 0;
  before_warp = __shfl_sync(kAllLanes, before_warp, static_cast<int>(kWarp - 1));
  __syncthreads();
  if (threadIdx.x == 0) {
    room.first_slot = atomicAdd(&list.found->num_candidates, room.num_here);
    room.num_here = 0;
  }
  __syncthreads();
  unsigned slot = room.first_slot + before_warp + up_to_lane - count;
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) {
    if ((own >> u & 1) == 0) continue;
    if (slot < capacity) {
      list.key[slot] = magnitude_key(p[u]);
      list.index[slot] = index + u * kBlockThreads;
    }
    ++slot;
  }
}

// A tile: p is evaluated, goes to the state row (or null), and what reaches the bound is listed. begin: from the segment's first element.
template <class T, int kTerms>
__device__ void collect_tile(const Terms<T, kTerms>& terms, const List<T>& list, const LargeSegment& at, unsigned begin, T* row,
                             CollectRoom& room) {
  std::size_t place[kOwn];
  T p[kOwn];
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) place[u] = std::size_t{begin} + threadIdx.x + u * kBlockThreads;
  terms.evaluate(place, at.size, p);
  unsigned own = 0;
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) {
    const bool is_inside = place[u] < at.size;
    if (row != nullptr && is_inside) row[place[u]] = p[u];
    own |= (is_inside && magnitude_key(p[u]) >= list.bound ? 1u : 0u) << u;
  }
  append(list, at.sample.capacity, own, p, begin + threadIdx.x, room);
}

// A block per stretch of a client's large segments. Marks of what it visits become 0.
template <class T, int kTerms>
__global__ void __launch_bounds__(kBlockThreads)
    load_and_collect(Affine<T> input, StateWrite<T> state, ScopePlan plan, LargePlan large, Lists<T> lists, std::uint32_t* mark) {
  __shared__ CollectRoom room;
  if (threadIdx.x == 0) room.num_here = 0;
  __syncthreads();
  const unsigned works = input.clients() * large.num_stretches;
  for (unsigned work = blockIdx.x; work < works; work += gridDim.x) {
    const unsigned client = work / large.num_stretches, stretch = work % large.num_stretches;
    const std::size_t l = last_not_above(large.segment, large.num_segments, stretch, FirstStretch{});
    const LargeSegment at = large.segment[l];
    const Terms<T, kTerms> terms(input, client, at.begin);
    const List<T> list = list_of(lists, plan, large, client, l);
    T* row = state_row(state, client);
    if (row != nullptr) row += at.begin;
    std::uint32_t* word = mark + (client * plan.num_tiles + at.first_tile) * kMarkWords;
    const unsigned from = (stretch - at.first_stretch) * kStretch, left = at.size - from, to = from + (left < kStretch ? left : kStretch);
    for (unsigned begin = from; begin < to; begin += kTile) {
      if (threadIdx.x < kMarkWords) word[begin / kTile * kMarkWords + threadIdx.x] = 0;
      collect_tile(terms, list, at, begin, row, room);
    }
  }
}

// ---- 3. the k largest of the candidates -----------------------------------------------------------------------------------------

// Marks the k largest candidates; there are k or more. word: the marks of the segment.
template <class T>
__device__ void mark_in_list(const List<T>& list, unsigned count, const LargeSegment& at, TieRule ties, RadixRoom& room,
                             std::uint32_t* word) {
  const auto key_at = [&list](std::size_t i, bool) { return list.key[i]; };
  const Selected<Key<T>> kth = select_key<Key<T>, kKeyBatch>(count, at.k, leading_digits<Key<T>>(), room, key_at);
  unsigned beyond = at.size;  // equal ones are kept below this position
  if (ties == TieRule::lowest_index && kth.rank < kth.equal) {
    const auto from_end = [&list, &at, &kth](std::size_t i, bool) { return list.key[i] == kth.key ? at.size - list.index[i] : 0; };
    beyond = at.size - select_key<std::uint32_t, kKeyBatch>(count, kth.rank, leading_digits<std::uint32_t>(), room, from_end).key + 1;
  }
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const Key<T> key = list.key[i];
    if (key < kth.key) continue;
    const std::uint32_t index = list.index[i];
    if (key > kth.key || index < beyond) atomicOr(&word[index / 32], 1u << (index % 32));
  }
}

// A block per client and large segment.
template <class T>
__global__ void __launch_bounds__(kLargeBlock)
    choose_candidates(std::size_t num_clients, ScopePlan plan, LargePlan large, TieRule ties, Lists<T> lists, std::uint32_t* mark) {
  __shared__ RadixRoom room;
  const std::size_t pieces = num_clients * large.num_segments;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t client = piece / large.num_segments, l = piece % large.num_segments;
    const LargeSegment at = large.segment[l];
    const List<T> list = list_of(lists, plan, large, client, l);
    const unsigned count = list.found->num_candidates;
    Way way = Way::candidates;
    if (count < at.k) way = list.bound == 1 ? Way::and_zeros : Way::too_few;
    if (count > at.sample.capacity) way = Way::too_many;
    if (threadIdx.x == 0) list.found->way = way;
    if (way == Way::candidates) mark_in_list(list, count, at, ties, room, mark + (client * plan.num_tiles + at.first_tile) * kMarkWords);
  }
}

// ---- the host's part ------------------------------------------------------------------------------------------------------------

// The plan without its segments, which come one by one.
[[nodiscard]] LargePlan plan_large(const Scope& scope, std::span<const std::uint32_t> k, std::vector<LargeSegment>& segments) {
  LargePlan plan{};
  std::size_t tile = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    const Segment& segment = scope.segments[s];
    const std::size_t n = segment.size();
    if (lists_candidates(n, k[s])) {
      const Sample sample = sample_of(n, k[s]);
      segments.push_back({.begin = segment.begin,
                          .first_tile = tile,
                          .first_slot = plan.num_slots,
                          .sample = sample,
                          .segment = static_cast<unsigned>(s),
                          .size = static_cast<unsigned>(n),
                          .k = k[s],
                          .first_stretch = plan.num_stretches});
      plan.num_slots += sample.capacity;
      plan.num_stretches += static_cast<unsigned>((n + kStretch - 1) / kStretch);
      plan.most_runs = std::max(plan.most_runs, sample.num_runs);
    }
    tile += (n + kReduceTile - 1) / kReduceTile;
  }
  plan.num_segments = static_cast<unsigned>(segments.size());
  return plan;
}

// Steps 1 and 2.
template <class T, int kTerms>
void collect(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const LargePlan& large, const StateWrite<T>& state,
             const Lists<T>& lists, std::uint32_t* mark) {
  const std::size_t K = input.clients();
  Launch(exec, "sample_bounds", K * large.num_segments)
      .with_shared(large.most_runs * kSampleRun * sizeof(Key<T>))(sample_bounds<T, kTerms>, input, large, lists.bound);
  Launch(exec, "load_and_collect", K * large.num_stretches)(load_and_collect<T, kTerms>, input, state, plan, large, lists, mark);
}

}  // namespace

// Room is for twice the candidates of a bound five standard deviations of independent entries below the expected one.
Sample sample_of(std::size_t size, std::size_t k) {
  constexpr std::size_t kEvery = 32, kRunsAtOnce = kSampleBatch * kBlockThreads / kSampleRun, kMostRuns = 512;
  const std::size_t runs = std::clamp(size / (kEvery * kSampleRun) / kRunsAtOnce * kRunsAtOnce, kRunsAtOnce, kMostRuns);
  const double part = static_cast<double>(runs * kSampleRun) / static_cast<double>(size), mean = part * static_cast<double>(k);
  const double most = mean + 5 * std::sqrt(mean) + 16;
  Sample sample{};
  sample.num_runs = static_cast<unsigned>(runs);
  sample.step = static_cast<unsigned>(size / runs);
  sample.rank = std::max(1u, static_cast<unsigned>(mean));
  sample.most_rank = static_cast<unsigned>(1.5 * most);
  sample.capacity = static_cast<unsigned>(std::min(static_cast<double>(size), 2 * most / part));
  return sample;
}

template <class T>
const Found* mark_candidates(const Exec& exec, const Affine<T>& input, const Scope& scope, const ScopePlan& plan,
                             std::span<const std::uint32_t> k, TieRule ties, const StateWrite<T>& state, std::uint32_t* mark,
                             Workspace::Frame& frame) {
  const std::size_t K = input.clients(), pieces = K * plan.num_segments;
  std::vector<LargeSegment> segments;
  LargePlan large = plan_large(scope, k, segments);
  if (segments.empty() || K == 0) return nullptr;
  auto* found = frame.take<Found>(pieces);
  FL_CUDA_CHECK(cudaMemsetAsync(found, 0, pieces * sizeof(Found), stream_of(exec)));
  Workspace::Frame until_marked(*exec.workspace);
  large.segment = upload(exec, std::span<const LargeSegment>(segments), until_marked);
  const Lists<T> lists{until_marked.take<Key<T>>(K * large.num_segments), until_marked.take<Key<T>>(K * large.num_slots),
                       until_marked.take<std::uint32_t>(K * large.num_slots), found};
  const auto collect_terms = [&](auto terms) { collect<T, decltype(terms)::value>(exec, input, plan, large, state, lists, mark); };
  switch (input.num_terms) {
    case 1: collect_terms(std::integral_constant<int, 1>{}); break;
    case 2: collect_terms(std::integral_constant<int, 2>{}); break;
    case 3: collect_terms(std::integral_constant<int, 3>{}); break;
    default: collect_terms(std::integral_constant<int, 4>{}); break;
  }
  const std::size_t large_pieces = K * large.num_segments;
  Launch(exec, "choose_candidates", large_pieces, large_pieces <= kFewPieces ? kLargeBlock : kBlockThreads)(choose_candidates<T>, K, plan,
                                                                                                            large, ties, lists, mark);
  return found;
}

#define FL_INSTANTIATE(T)                                                                                                                 \
  template const Found* mark_candidates<T>(const Exec&, const Affine<T>&, const Scope&, const ScopePlan&, std::span<const std::uint32_t>, \
                                           TieRule, const StateWrite<T>&, std::uint32_t*, Workspace::Frame&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
