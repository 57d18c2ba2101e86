#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/gather.cuh"
#include "fl_core/ops/cuda/marks.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/random/subset_draws.hpp"

namespace fl::cuda {
namespace {

constexpr int kAhead = kReduceTile / kBlockThreads;  // elements of a thread: the tile at once
static_assert(kAhead * kBlockThreads == kReduceTile);

// state = p in all segments.
template <class T>
__global__ void evaluate_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state.out.row(k) + tile.begin;
    T p[kAhead];
    OpenedInput<T>(input, k).load(tile.begin + threadIdx.x, kBlockThreads, tile.begin + tile.count, p);
    FL_UNROLL
    for (std::size_t a = 0; a < kAhead; ++a)
      if (threadIdx.x + a * kBlockThreads < tile.count) row[threadIdx.x + a * kBlockThreads] = p[a];
  }
}

// The scope of a factor: there is one per segment, or one per entry.
enum class FactorOf { segment, entry };

// One thread per entry; `largest` entries of each client are asked for, num_sent[k] exist. factor: [num_segments] or [K, largest]
template <FactorOf kFactorOf, class T>
__global__ void gather_entries(Affine<T> input, StateWrite<T> state, ScopePlan plan, const T* factor, WireValue wire,
                               const std::size_t* num_sent, std::size_t largest, const PayloadRow<T>* rows) {
  for (std::size_t piece = thread_index(); piece < input.clients() * largest; piece += num_threads()) {
    const std::size_t k = piece / largest, i = piece % largest;
    if (i >= num_sent[k]) continue;
    const std::size_t j = rows[k].index[i];
    T* row = state_row(state, k);
    const T p = row != nullptr ? row[j] : input.at(k, j);
    const std::size_t f = kFactorOf == FactorOf::entry ? piece : segment_at(plan, j, FirstElement{});
    const T c = wire_value(wire, factor[f] * p);
    rows[k].value[i] = c;
    if (row != nullptr) row[j] = state_where_sent(state.rule, p, c);
  }
}

// Returns the lanes of a warp that take part and hold the same number.
[[nodiscard]] __device__ unsigned lanes_with(std::uint32_t number, bool takes_part) {
  unsigned same = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (__shfl_sync(kAllLanes, number, static_cast<int>(lane)) == number) same |= 1u << lane;
  return same & __ballot_sync(kAllLanes, takes_part);
}

// Marks the subset that draw_subset draws, a warp at a time: each lane marks its number, and lanes then settle which of them draw a number
// that is selected already, by those before it in the warp or earlier, and so select themselves.
__device__ void mark_subset(const RandomStream& stream, std::size_t n, std::size_t k, std::uint32_t* mark) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t drawn = draws_the_others(n, k) ? n - k : k;
  for (std::size_t done = 0; done < drawn; done += kWarp) {
    const bool draws = done + lane < drawn;
    const std::size_t begin = n - drawn + done, own = begin + lane;
    const std::uint32_t number = draws ? SubsetDraws::at(stream, done + lane, own + 1) : 0, bit = 1u << (number % 32);
    const bool is_marked = draws && (atomicOr(&mark[number / 32], bit) & bit) != 0;
    const unsigned same = lanes_with(number, draws);
    // A number that was marked before these draws is marked for all its lanes, and another one for all but one of them.
    const bool was_selected = (__ballot_sync(kAllLanes, is_marked) & same) == same;
    bool selects_itself = draws && (was_selected || (same & ((1u << lane) - 1)) != 0);
    unsigned known = 0;
    for (unsigned found = __ballot_sync(kAllLanes, selects_itself); found != known; found = __ballot_sync(kAllLanes, selects_itself)) {
      known = found;
      if (draws && number >= begin && number < own && (found >> (number - begin) & 1) != 0) selects_itself = true;
    }
    if (selects_itself) atomicOr(&mark[own / 32], 1u << (own % 32));
    __syncwarp();
  }
}

// A warp per client and segment: k[s] of the segment's entries, or, where these are more than half of them, the others.
__global__ void mark_subsets(ScopePlan plan, std::size_t num_clients, const std::uint32_t* k, const RandomStream* stream,
                             std::uint32_t* mark) {
  for (std::size_t piece = blockIdx.x; piece < num_clients * plan.num_segments; piece += gridDim.x) {
    const std::size_t client = piece / plan.num_segments, s = piece - client * plan.num_segments;
    std::uint32_t* own = mark + (client * plan.num_tiles + plan.segment[s].first_tile) * kMarkWords;
    mark_subset(stream[piece], plan.segment[s].size, k[s], own);
  }
}

// Where the others were drawn, marks are turned round; a thread per word.
__global__ void turn_marks(ScopePlan plan, std::size_t num_clients, const std::uint32_t* k, std::uint32_t* mark) {
  for (std::size_t piece = blockIdx.x; piece < num_clients * plan.num_tiles; piece += gridDim.x) {
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    if (!draws_the_others(plan.segment[tile.segment].size, k[tile.segment])) continue;
    const std::size_t first = std::size_t{threadIdx.x} * 32, here = tile.count > first ? tile.count - first : 0;
    std::uint32_t& word = mark[piece * kMarkWords + threadIdx.x];
    word = here >= 32 ? ~word : ~word & ((1u << here) - 1);
  }
}

template <FactorOf kFactorOf, class T>
void gather_with(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  std::vector<std::size_t> num_sent;
  num_sent.reserve(out.size());
  std::size_t largest = 0;
  for (Payload<T>* payload : out) {
    payload->positions = Positions::list;
    payload->values = wire;
    payload->value.resize_for_overwrite(payload->num_sent);
    num_sent.push_back(payload->num_sent);
    largest = std::max(largest, payload->num_sent);
  }
  const std::size_t K = input.clients();
  if (state.rule != StateRule::none) Launch(exec, "evaluate_tiles", K * plan.num_tiles)(evaluate_tiles<T>, input, state, plan);
  Launch(exec, "gather_entries", blocks_for(K * largest))(gather_entries<kFactorOf, T>, input, state, plan, upload(exec, factor, frame),
                                                          wire, upload(exec, std::span<const std::size_t>(num_sent), frame), largest,
                                                          upload_rows(exec, out, frame));
}

}  // namespace

template <class T>
void gather_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  gather_with<FactorOf::segment>(exec, input, scope, factor, wire, state, out);
}

template <class T>
void gather_scaled_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  gather_with<FactorOf::entry>(exec, input, scope, factor, wire, state, out);
}

template <class T>
void list_rows(const Exec& exec, std::span<const std::uint32_t> counts, std::span<const std::uint32_t> index,
               std::span<Payload<T>* const> out) {
  const std::size_t total = index.size() / out.size();
  Workspace::Frame frame(*exec.workspace);
  const std::uint32_t *sizes = upload(exec, counts, frame), *listed = upload(exec, index, frame);
  for (std::size_t k = 0; k < out.size(); ++k) {
    Payload<T>& payload = *out[k];
    payload.place_on(Device::cuda);
    payload.positions = Positions::list;
    payload.num_sent = total;
    payload.counts.resize_for_overwrite(counts.size());
    payload.index.resize_for_overwrite(total);
    FL_CUDA_CHECK(cudaMemcpyAsync(payload.counts.data(), sizes, counts.size_bytes(), cudaMemcpyDefault, stream_of(exec)));
    FL_CUDA_CHECK(cudaMemcpyAsync(payload.index.data(), listed + k * total, total * sizeof *listed, cudaMemcpyDefault, stream_of(exec)));
  }
}

template <class T>
void random_subset_rows(const Exec& exec, const Scope& scope, std::span<const std::uint32_t> k, const SubsetDraw& draw,
                        std::span<Payload<T>* const> out) {
  const std::size_t K = out.size();
  std::vector<RandomStream> stream;
  stream.reserve(K * k.size());
  for (std::size_t client = 0; client < K; ++client)
    for (std::size_t s = 0; s < k.size(); ++s) {
      const auto layer = static_cast<std::uint32_t>(s);
      stream.emplace_back(draw.key, draw.clients[client], draw.round, layer >> 16, layer & 0xFFFF);
    }
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t words = K * plan.num_tiles * kMarkWords;
  auto* mark = frame.take<std::uint32_t>(words);
  FL_CUDA_CHECK(cudaMemsetAsync(mark, 0, words * sizeof *mark, stream_of(exec)));
  const std::uint32_t* kept = upload(exec, k, frame);
  Launch(exec, "mark_subsets", K * k.size(), static_cast<int>(kWarp))(mark_subsets, plan, K, kept,
                                                                      upload(exec, std::span<const RandomStream>(stream), frame), mark);
  std::size_t num_sent = 0;
  bool turns = false;
  for (std::size_t s = 0; s < k.size(); ++s) {
    num_sent += k[s];
    turns = turns || draws_the_others(scope.segments[s].size(), k[s]);
  }
  if (turns) Launch(exec, "turn_marks", K * plan.num_tiles, static_cast<int>(kMarkWords))(turn_marks, plan, K, kept, mark);
  list_marked(exec, plan, mark, static_cast<std::uint32_t>(num_sent), out, frame);
}

#define FL_INSTANTIATE(T)                                                                                                                \
  template void gather_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const T>, WireValue, const StateWrite<T>&,         \
                               std::span<Payload<T>* const>);                                                                            \
  template void gather_scaled_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const T>, WireValue, const StateWrite<T>&,  \
                                      std::span<Payload<T>* const>);                                                                     \
  template void list_rows<T>(const Exec&, std::span<const std::uint32_t>, std::span<const std::uint32_t>, std::span<Payload<T>* const>); \
  template void random_subset_rows<T>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,                      \
                                      std::span<Payload<T>* const>);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
