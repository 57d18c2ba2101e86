#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "fl_core/ops/cuda/candidates.cuh"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/radix_select.cuh"
#include "fl_core/ops/cuda/scan.cuh"

namespace fl::cuda {
namespace {

constexpr unsigned kKeyBatch = 4;                              // keys that a thread fetches at once
constexpr unsigned kSampleBatch = 4;                           // elements of the sample that a thread fetches at once
constexpr unsigned kOwn = kReduceTile / kBlockThreads;         // elements of a tile that a thread takes
constexpr unsigned kTile = kReduceTile, kStretch = 4 * kTile;  // elements that a block takes before it looks for more work
constexpr unsigned kMiddleDigits = 2, kBoundDigits = 3;        // digits of a key that are precise enough
constexpr std::size_t kFewPieces = 512;                        // up to here blocks are large, so that all multiprocessors are full
constexpr int kLargeBlock = 1024;
constexpr std::size_t kHeldBytes = 80 * 1024;  // of keys in a block's shared memory, where its candidates have room there

// A segment whose candidates are listed.
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

// Candidates of all clients.
template <class T>
struct Lists {
  Key<T>*bound, *kth;                           // [K,L], [K,S]
  T* value;                                     // [K,num_slots]
  std::uint16_t* place;                         // [K,num_slots], from the tile's first element
  Found* found;                                 // [K,S]
  std::uint32_t *slot, *listed, *quota, *kept;  // [K,num_tiles]
};

// One segment of one client.
template <class T>
struct List {
  Key<T> bound;
  Key<T>* kth;
  T* value;
  std::uint16_t* place;
  Found* found;
  std::uint32_t *slot, *listed, *quota, *kept;  // of its tiles
};
template <class T>
__device__ List<T> list_of(const Lists<T>& lists, const ScopePlan& plan, const LargePlan& large, std::size_t client, std::size_t l) {
  const LargeSegment& at = large.segment[l];
  const std::size_t first = client * large.num_slots + at.first_slot, segment = client * plan.num_segments + at.segment,
                    tile = client * plan.num_tiles + at.first_tile;
  return {lists.bound[client * large.num_segments + l],
          lists.kth + segment,
          lists.value + first,
          lists.place + first,
          lists.found + segment,
          lists.slot + tile,
          lists.listed + tile,
          lists.quota + tile,
          lists.kept + tile};
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
  FL_SHARED_MEMORY(Key<T>, key);
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

// A block's words of a tile: word u * kTileWarps + w has the elements of warp w from u * kBlockThreads on.
constexpr unsigned kTileWarps = kBlockThreads / kWarp, kTileWords = kOwn * kTileWarps;
static_assert(kTileWords == 2 * kWarp, "a lane takes two words of a tile");

struct CollectRoom {
  unsigned count[kTileWords];   // candidates of each word
  unsigned before[kTileWords];  // of the words before it
  unsigned first_slot;          // of the tile
};

// One warp: slots for a tile's candidates.
template <class T>
__device__ void take_slots(const List<T>& list, const LargeSegment& at, std::size_t tile, CollectRoom& room) {
  const unsigned lane = threadIdx.x, low = room.count[2 * lane], high = room.count[2 * lane + 1];
  const unsigned through = warp_inclusive_sum(low + high);
  room.before[2 * lane] = through - low - high;
  room.before[2 * lane + 1] = through - high;
  if (lane != kWarp - 1) return;
  room.first_slot = atomicAdd(&list.found->num_candidates, through);
  list.slot[tile] = static_cast<std::uint32_t>(at.first_slot) + room.first_slot;
  list.listed[tile] = through;
}

// A tile: p is evaluated, goes to the state row (or null), and what reaches the bound is listed in ascending order; beyond the list's
// capacity it is only counted. begin: from the segment's first element.
template <class T, int kTerms>
__device__ void collect_tile(const Terms<T, kTerms>& terms, const List<T>& list, const LargeSegment& at, unsigned begin, T* row,
                             CollectRoom& room) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  std::size_t place[kOwn];
  T p[kOwn];
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) place[u] = std::size_t{begin} + threadIdx.x + u * kBlockThreads;
  terms.evaluate(place, at.size, p);
  unsigned word[kOwn];
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) {
    const bool is_inside = place[u] < at.size;
    if (row != nullptr && is_inside) row[place[u]] = p[u];
    word[u] = __ballot_sync(kAllLanes, is_inside && magnitude_key(p[u]) >= list.bound);
    if (lane == 0) room.count[u * kTileWarps + warp] = static_cast<unsigned>(__popc(word[u]));
  }
  __syncthreads();
  if (warp == 0) take_slots(list, at, begin / kTile, room);
  __syncthreads();
  FL_UNROLL
  for (unsigned u = 0; u < kOwn; ++u) {
    if ((word[u] >> lane & 1) == 0) continue;
    const unsigned slot =
        room.first_slot + room.before[u * kTileWarps + warp] + static_cast<unsigned>(__popc(word[u] & ((1u << lane) - 1)));
    if (slot >= at.sample.capacity) continue;
    list.value[slot] = p[u];
    list.place[slot] = static_cast<std::uint16_t>(threadIdx.x + u * kBlockThreads);
  }
}

// A block per stretch of a client's large segments.
template <class T, int kTerms>
__global__ void __launch_bounds__(kBlockThreads)
    load_and_collect(Affine<T> input, StateWrite<T> state, ScopePlan plan, LargePlan large, Lists<T> lists) {
  __shared__ CollectRoom room;
  const unsigned works = input.clients() * large.num_stretches;
  for (unsigned work = blockIdx.x; work < works; work += gridDim.x) {
    const unsigned client = work / large.num_stretches, stretch = work % large.num_stretches;
    const std::size_t l = last_not_above(large.segment, large.num_segments, stretch, FirstStretch{});
    const LargeSegment at = large.segment[l];
    const Terms<T, kTerms> terms(input, client, at.begin);
    const List<T> list = list_of(lists, plan, large, client, l);
    T* row = state_row(state, client);
    if (row != nullptr) row += at.begin;
    const unsigned from = (stretch - at.first_stretch) * kStretch, left = at.size - from, to = from + (left < kStretch ? left : kStretch);
    for (unsigned begin = from; begin < to; begin += kTile) collect_tile(terms, list, at, begin, row, room);
  }
}

// ---- 3. the k largest of the candidates -----------------------------------------------------------------------------------------

// kept[t] of each tile: its candidates above the k-th key; quota[t]: those that are equal to it. key_at(i, .): key of candidate i.
template <class T, class KeyAt>
__device__ void count_in_tiles(const List<T>& list, const LargeSegment& at, Key<T> kth, unsigned tiles, const KeyAt& key_at) {
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned t = threadIdx.x / kWarp; t < tiles; t += blockDim.x / kWarp) {
    const unsigned first = list.slot[t] - static_cast<unsigned>(at.first_slot), count = list.listed[t];
    unsigned above = 0, equal = 0;
    for (unsigned base = 0; base < count; base += kWarp) {
      const bool is_there = base + lane < count;
      const Key<T> key = is_there ? key_at(first + base + lane, false) : 0;
      above += static_cast<unsigned>(__popc(__ballot_sync(kAllLanes, is_there && key > kth)));
      equal += static_cast<unsigned>(__popc(__ballot_sync(kAllLanes, is_there && key == kth)));
    }
    if (lane == 0) {
      list.kept[t] = above;
      list.quota[t] = equal;
    }
  }
}

// Chooses the k largest of `count` candidates; there are k or more. held: room for `most_held` keys in shared memory.
template <class T>
__device__ void choose_in_list(const List<T>& list, unsigned count, const LargeSegment& at, TieRule ties, Key<T>* held, unsigned most_held,
                               RadixRoom& room) {
  const bool holds = count <= most_held;
  if (holds)
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) held[i] = magnitude_key(list.value[i]);
  __syncthreads();
  const auto key_at = [&](std::size_t i, bool) { return holds ? held[i] : magnitude_key(list.value[i]); };
  const Selected<Key<T>> kth = select_key<Key<T>, kKeyBatch>(count, at.k, leading_digits<Key<T>>(), room, key_at);
  if (threadIdx.x == 0) *list.kth = kth.key;
  const unsigned tiles = (at.size + kTile - 1) / kTile;
  count_in_tiles(list, at, kth.key, tiles, key_at);
  __syncthreads();
  unsigned before = 0;  // of those equal to the k-th one, in ascending order
  for (unsigned base = 0; base < tiles; base += blockDim.x) {
    const unsigned t = base + threadIdx.x, equal = t < tiles ? list.quota[t] : 0;
    unsigned all = 0;
    const unsigned here = before + block_exclusive_sum(equal, room.warp_sum, all), left = kth.rank > here ? kth.rank - here : 0;
    const unsigned quota = ties == TieRule::all_ties || equal < left ? equal : left;
    if (t < tiles) {
      list.quota[t] = quota;
      list.kept[t] += quota;
    }
    before += all;
  }
  __syncthreads();  // before other keys come into the same memory
}

// A block per client and large segment.
template <class T>
__global__ void __launch_bounds__(kLargeBlock)
    choose_largest(std::size_t num_clients, ScopePlan plan, LargePlan large, TieRule ties, Lists<T> lists, unsigned most_held) {
  FL_SHARED_MEMORY(Key<T>, held);
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
    if (way == Way::candidates) choose_in_list(list, count, at, ties, held, most_held, room);
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
             const Lists<T>& lists) {
  const std::size_t K = input.clients();
  Launch(exec, "sample_bounds", K * large.num_segments)
      .with_shared(large.most_runs * kSampleRun * sizeof(Key<T>))(sample_bounds<T, kTerms>, input, large, lists.bound);
  Launch(exec, "load_and_collect", K * large.num_stretches)(load_and_collect<T, kTerms>, input, state, plan, large, lists);
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
Chosen<T> choose_candidates(const Exec& exec, const Affine<T>& input, const Scope& scope, const ScopePlan& plan,
                            std::span<const std::uint32_t> k, TieRule ties, const StateWrite<T>& state, Workspace::Frame& frame) {
  const std::size_t K = input.clients(), pieces = K * plan.num_segments, tiles = K * plan.num_tiles;
  std::vector<LargeSegment> segments;
  LargePlan large = plan_large(scope, k, segments);
  if (segments.empty() || K == 0) return {};
  const std::size_t slots = K * large.num_slots;
  const Lists<T> lists{frame.take<Key<T>>(K * large.num_segments), frame.take<Key<T>>(pieces),       frame.take<T>(slots),
                       frame.take<std::uint16_t>(slots),           frame.take<Found>(pieces),        frame.take<std::uint32_t>(tiles),
                       frame.take<std::uint32_t>(tiles),           frame.take<std::uint32_t>(tiles), frame.take<std::uint32_t>(tiles)};
  FL_CUDA_CHECK(cudaMemsetAsync(lists.found, 0, pieces * sizeof(Found), stream_of(exec)));
  large.segment = upload(exec, std::span<const LargeSegment>(segments), frame);
  const auto collect_terms = [&](auto terms) { collect<T, decltype(terms)::value>(exec, input, plan, large, state, lists); };
  switch (input.num_terms) {
    case 1: collect_terms(std::integral_constant<int, 1>{}); break;
    case 2: collect_terms(std::integral_constant<int, 2>{}); break;
    case 3: collect_terms(std::integral_constant<int, 3>{}); break;
    default: collect_terms(std::integral_constant<int, 4>{}); break;
  }
  std::size_t most_held = 0;
  for (const LargeSegment& segment : segments) most_held = std::max<std::size_t>(most_held, segment.sample.capacity);
  most_held = std::min(most_held, kHeldBytes / sizeof(Key<T>));
  const std::size_t large_pieces = K * large.num_segments;
  Launch(exec, "choose_largest", large_pieces, large_pieces <= kFewPieces ? kLargeBlock : kBlockThreads)
      .with_shared(most_held * sizeof(Key<T>))(choose_largest<T>, K, plan, large, ties, lists, static_cast<unsigned>(most_held));
  return {lists.found, lists.kth, large.num_slots, lists.value, lists.place, lists.slot, lists.listed, lists.quota, lists.kept};
}

#define FL_INSTANTIATE(T)                                                                                                                \
  template Chosen<T> choose_candidates<T>(const Exec&, const Affine<T>&, const Scope&, const ScopePlan&, std::span<const std::uint32_t>, \
                                          TieRule, const StateWrite<T>&, Workspace::Frame&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
