#include <limits>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/chosen.cuh"
#include "fl_core/ops/cuda/marks.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/reduce.cuh"
#include "fl_core/ops/cuda/scan.cuh"
#include "fl_core/ops/cuda/threshold_search.cuh"

namespace fl::cuda {
namespace {

constexpr int kAhead = kReduceTile / kBlockThreads;  // elements of a thread: the tile at once
static_assert(kAhead * kBlockThreads == kReduceTile && kMarkWords == 2 * kWarp && kReduceTile <= 65536);

// The least threshold, which zeros do not reach.
template <class T>
constexpr T kSmallest = std::numeric_limits<T>::denorm_min();

// The findings of a round of corrections, for all clients and segments together.
struct RoundFlags {
  std::uint32_t moved;      // a threshold was corrected
  std::uint32_t too_small;  // one lets zeros through; stays from round to round
};

// A block's answers for a tile: word w holds those for its elements 32 w and on.
struct ReachingWords {
  std::uint32_t word[kMarkWords], before[kMarkWords];  // before: answers of the words before it
  unsigned total;
};

// The first warp counts the answers.
__device__ void count_words(ReachingWords& words) {
  const unsigned lane = threadIdx.x, low = static_cast<unsigned>(__popc(words.word[2 * lane])),
                 high = static_cast<unsigned>(__popc(words.word[2 * lane + 1])), through = warp_inclusive_sum(low + high);
  words.before[2 * lane] = through - low - high;
  words.before[2 * lane + 1] = through - high;
  if (lane == kWarp - 1) words.total = through;
}

// All threads of the block: the answers, or of few the list (TileList). p: the thread's elements, i * kBlockThreads + threadIdx.x of the
// tile
template <class T>
__device__ void store_reaching(const ReachingWords& words, const T (&p)[kAhead], std::uint32_t* room) {
  if (words.total > kMostListed<T>) {
    if (threadIdx.x < kMarkWords) room[threadIdx.x] = words.word[threadIdx.x];
    return;
  }
  const TileList<T> list(room, words.total);
  const unsigned lane = threadIdx.x % kWarp, left_lanes = (1u << lane) - 1;
  FL_UNROLL
  for (std::size_t i = 0; i < kAhead; ++i) {
    const std::size_t at = i * kBlockThreads + threadIdx.x;
    const std::uint32_t word = words.word[at / kWarp];
    if ((word >> lane & 1) == 0) continue;
    const unsigned to = words.before[at / kWarp] + static_cast<unsigned>(__popc(word & left_lanes));
    list.value[to] = p[i];
    list.place[to] = static_cast<std::uint16_t>(at);
  }
}

// A block per tile of a client whose segment is still searched. moved: [K,S], or null where all are; count: [K,num_tiles]
template <class T>
__global__ void mark_reaching(Affine<T> input, StateWrite<T> state, ScopePlan plan, const T* threshold, const std::uint32_t* moved,
                              std::uint32_t* mark, std::uint32_t* count) {
  __shared__ ReachingWords words;
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece - k * plan.num_tiles);
    const std::size_t segment = k * plan.num_segments + tile.segment;
    if (moved != nullptr && moved[segment] == 0) continue;
    const T least = threshold[segment];
    T* row = state_row(state, k);
    const std::size_t first = tile.begin + threadIdx.x, end = tile.begin + tile.count;
    T p[kAhead];
    OpenedInput<T>(input, k).load(first, kBlockThreads, end, p);
    FL_UNROLL
    for (std::size_t i = 0; i < kAhead; ++i) {
      const std::size_t at = i * kBlockThreads + threadIdx.x;
      const std::uint32_t word = __ballot_sync(kAllLanes, at < tile.count && (p[i] < T(0) ? -p[i] : p[i]) >= least);
      if (row != nullptr && at < tile.count) row[tile.begin + at] = p[i];
      if (lane == 0) words.word[at / kWarp] = word;
    }
    __syncthreads();
    if (threadIdx.x < kWarp) count_words(words);
    __syncthreads();
    store_reaching(words, p, mark + piece * kMarkWords);
    if (threadIdx.x == 0) count[piece] = words.total;
    __syncthreads();  // before the next tile's words come into the same memory
  }
}

// A warp per client and segment: a step towards the wanted number. all: whether moved [K,S] is not there yet
template <class T>
__global__ void correct_thresholds(ScopePlan plan, std::size_t num_clients, const std::uint32_t* count, const double* wanted,
                                   double tolerance, bool all, T* threshold, std::uint32_t* moved, RoundFlags* flags) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = num_clients * plan.num_segments;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    if (!all && moved[piece] == 0) continue;
    const std::size_t k = piece / plan.num_segments, s = piece - k * plan.num_segments;
    const std::size_t tiles = (plan.segment[s].size + kReduceTile - 1) / kReduceTile;
    const std::uint32_t* own = count + k * plan.num_tiles + plan.segment[s].first_tile;
    unsigned mine = 0;
    for (std::size_t t = lane; t < tiles; t += kWarp) mine += own[t];
    const double sent = __reduce_add_sync(kAllLanes, mine);
    if (lane != 0) continue;
    const bool is_above = sent > (1 + tolerance) * wanted[s], is_below = sent < (1 - tolerance) * wanted[s];
    T t = threshold[piece];
    if (is_above)
      t = static_cast<T>(1 + tolerance) * t;
    else if (is_below)
      t = static_cast<T>(1 - tolerance) * t;
    threshold[piece] = t;
    moved[piece] = is_above || is_below ? 1 : 0;
    if (is_above || is_below) atomicOr(&flags->moved, 1u);
    if (t < kSmallest<T>) atomicOr(&flags->too_small, 1u);
  }
}

// largest: [K,S], or null where no threshold is above what its segment holds
template <class T>
__global__ void limit_thresholds(std::size_t pieces, const double* largest, T* threshold) {
  for (std::size_t piece = thread_index(); piece < pieces; piece += num_threads()) {
    T t = threshold[piece];
    if (largest != nullptr) {
      const T top = largest[piece] > 0 ? static_cast<T>(largest[piece]) : T(0);
      t = t < top ? t : top;
    }
    threshold[piece] = t > kSmallest<T> ? t : kSmallest<T>;
  }
}

}  // namespace

template <class T>
void send_reaching(const Exec& exec, const Affine<T>& input, const Scope& scope, const ThresholdSearch& search, T* threshold,
                   const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t K = input.clients(), pieces = K * plan.num_segments, tiles = K * plan.num_tiles;
  auto *mark = frame.take<std::uint32_t>(tiles * kMarkWords), *count = frame.take<std::uint32_t>(tiles);
  auto* moved = frame.take<std::uint32_t>(pieces);
  auto* flags = frame.take<RoundFlags>(1);
  const double* wanted = upload(exec, search.wanted, frame);
  FL_CUDA_CHECK(cudaMemsetAsync(flags, 0, sizeof(RoundFlags), stream_of(exec)));

  // The first pass leaves p in the state row, where the others find it.
  Affine<T> p = input;
  StateWrite<T> to = state;
  const auto mark_all = [&](const std::uint32_t* of) {
    Launch(exec, "mark_reaching", tiles)(mark_reaching<T>, p, to, plan, threshold, of, mark, count);
    if (to.rule == StateRule::none) return;
    p = Affine<T>{};
    p.add(T(1), state.out);
    to = StateWrite<T>{};
  };
  RoundFlags found{1, 0};
  for (std::int64_t round = 0; round < search.rounds && found.moved != 0; ++round) {
    mark_all(round == 0 ? nullptr : moved);
    FL_CUDA_CHECK(cudaMemsetAsync(&flags->moved, 0, sizeof flags->moved, stream_of(exec)));
    Launch(exec, "correct_thresholds", blocks_for(pieces * kWarp))(correct_thresholds<T>, plan, K, count, wanted, search.tolerance,
                                                                   round == 0, threshold, moved, flags);
    copy_bytes(&found, Device::cpu, flags, Device::cuda, sizeof found, exec.stream);
  }
  // Where the last count left a threshold as it was, something reaches it, so that it is not above the largest magnitude.
  if (found.moved != 0 || found.too_small != 0) {
    double* largest = found.moved != 0 ? frame.take<double>(pieces) : nullptr;
    if (largest != nullptr) detail::reduce_planned<Reduce::max>(exec, p, plan, MagnitudeOf{}, largest, frame);
    Launch(exec, "limit_thresholds", blocks_for(pieces))(limit_thresholds<T>, pieces, largest, threshold);
    mark_all(nullptr);
  }
  Chosen<T> counted;
  counted.kept = count;
  counted.lists_few = true;
  send_chosen(exec, input, plan, counted, mark, kNativeWire<T>, state, SentState::settled, out, frame);
}

template void send_reaching<float>(const Exec&, const Affine<float>&, const Scope&, const ThresholdSearch&, float*,
                                   const StateWrite<float>&, std::span<Payload<float>* const>);
template void send_reaching<double>(const Exec&, const Affine<double>&, const Scope&, const ThresholdSearch&, double*,
                                    const StateWrite<double>&, std::span<Payload<double>* const>);

}  // namespace fl::cuda
