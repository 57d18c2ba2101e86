#include <vector>

#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/marks.cuh"
#include "fl_core/cuda/scan.cuh"
#include "fl_core/wire_value.hpp"

namespace fl::cuda {
namespace {

constexpr unsigned kWarps = kBlockThreads / kWarp;
constexpr int kScanThreads = 1024;
static_assert(kMarkWords == 2 * kWarp, "a lane takes two words of a tile");

// count: [K, num_tiles]
__global__ void count_marks(const std::uint32_t* mark, std::size_t pieces, std::uint32_t* count) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::uint32_t* word = mark + piece * kMarkWords;
    const auto mine = static_cast<unsigned>(__popc(word[lane]) + __popc(word[lane + kWarp]));
    const unsigned total = __reduce_add_sync(kAllLanes, mine);
    if (lane == 0) count[piece] = total;
  }
}

// One block per row: x[i] becomes x[0] + .. + x[i-1]; total: [rows].
__global__ void __launch_bounds__(kScanThreads) scan_counts(std::uint32_t* x, std::size_t rows, std::size_t n, std::uint32_t* total) {
  __shared__ unsigned warp_sum[kWarp];
  for (std::size_t row = blockIdx.x; row < rows; row += gridDim.x) {
    std::uint32_t* count = x + row * n;
    unsigned carry = 0;
    for (std::size_t base = 0; base < n; base += blockDim.x) {
      const std::size_t i = base + threadIdx.x;
      const unsigned mine = i < n ? count[i] : 0;
      unsigned all = 0;
      const unsigned before = carry + block_exclusive_sum(mine, warp_sum, all);
      if (i < n) count[i] = before;
      carry += all;
    }
    if (threadIdx.x == 0) total[row] = carry;
  }
}

// counts[s] of every client, from the scanned tile counts.
template <class T>
__global__ void write_counts(ScopePlan plan, std::size_t num_clients, const std::uint32_t* first, const std::uint32_t* total,
                             const PayloadRow<T>* rows) {
  const std::size_t pieces = num_clients * plan.num_segments;
  for (std::size_t piece = thread_index(); piece < pieces; piece += num_threads()) {
    const std::size_t k = piece / plan.num_segments, s = piece % plan.num_segments;
    const std::uint32_t* client = first + k * plan.num_tiles;
    // A segment without elements has no tile of its own.
    const std::size_t from = plan.segment[s].first_tile, to = s + 1 < plan.num_segments ? plan.segment[s + 1].first_tile : plan.num_tiles;
    const std::uint32_t end = to < plan.num_tiles ? client[to] : total[k];
    rows[k].counts[s] = from < to ? end - client[from] : 0;
  }
}

template <class T>
__global__ void write_entries(Affine<T> input, StateWrite<T> state, ScopePlan plan, WireValue wire, const std::uint32_t* mark,
                              const std::uint32_t* first, const PayloadRow<T>* rows) {
  __shared__ unsigned before[kMarkWords];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::uint32_t* words = mark + piece * kMarkWords;
    if (warp == 0) {
      const auto even = static_cast<unsigned>(__popc(words[2 * lane])), odd = static_cast<unsigned>(__popc(words[2 * lane + 1]));
      before[2 * lane] = warp_inclusive_sum(even + odd) - even - odd;
      before[2 * lane + 1] = before[2 * lane] + even;
    }
    __syncthreads();
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* kept = state_row(state, k);
    for (std::size_t w = warp; w < kMarkWords; w += kWarps) {
      const std::uint32_t word = words[w];
      if ((word >> lane & 1) == 0) continue;
      const std::size_t at = first[piece] + before[w] + static_cast<unsigned>(__popc(word & ((1u << lane) - 1)));
      const std::size_t j = tile.begin + w * 32 + lane;
      const T p = kept != nullptr ? kept[j] : input.at(k, j);
      const T c = wire_value(wire, p);
      rows[k].index[at] = static_cast<std::uint32_t>(j);
      rows[k].value[at] = c;
      if (kept != nullptr) kept[j] = state_where_sent(state.rule, p, c);
    }
    __syncthreads();
  }
}

// A warp per word of marks.
template <class T>
__global__ void write_positions(ScopePlan plan, std::size_t num_clients, const std::uint32_t* mark, const std::uint32_t* first,
                                const PayloadRow<T>* rows) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = num_clients * plan.num_tiles;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    std::size_t at = first[piece];
    for (std::size_t w = 0; w < kMarkWords; ++w) {
      const std::uint32_t word = mark[piece * kMarkWords + w];
      if ((word >> lane & 1) != 0)
        rows[k].index[at + static_cast<unsigned>(__popc(word & ((1u << lane) - 1)))] =
            static_cast<std::uint32_t>(tile.begin + w * 32 + lane);
      at += static_cast<unsigned>(__popc(word));
    }
  }
}

// Where each tile's entries begin in its client's message, [K,num_tiles], and room in the messages for them all.
struct MarkedEntries {
  const std::uint32_t *first, *total;  // total: [K]
};
template <class T>
MarkedEntries make_room(const Exec& exec, const ScopePlan& plan, std::size_t K, const std::uint32_t* mark, bool for_values,
                        std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  const std::size_t pieces = K * plan.num_tiles;
  auto* first = frame.take<std::uint32_t>(pieces);
  auto* total = frame.take<std::uint32_t>(K);
  Launch(exec, "count_marks", blocks_for(pieces * kWarp))(count_marks, mark, pieces, first);
  Launch(exec, "scan_counts", K, kScanThreads)(scan_counts, first, K, plan.num_tiles, total);

  std::vector<std::uint32_t> num_sent(K);
  copy_bytes(num_sent.data(), Device::cpu, total, Device::cuda, K * sizeof(std::uint32_t), exec.stream);
  for (std::size_t k = 0; k < K; ++k) {
    Payload<T>& payload = *out[k];
    payload.place_on(Device::cuda);
    payload.positions = Positions::list;
    payload.num_sent = num_sent[k];
    payload.counts.resize_discard(plan.num_segments);
    payload.index.resize_discard(num_sent[k]);
    if (for_values) payload.value.resize_discard(num_sent[k]);
  }
  return {first, total};
}

}  // namespace

template <class T>
void send_marked(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const std::uint32_t* mark, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  const std::size_t K = input.clients();
  const MarkedEntries entries = make_room(exec, plan, K, mark, true, out, frame);
  for (Payload<T>* payload : out) payload->values = wire;
  const PayloadRow<T>* rows = upload_rows(exec, out, frame);
  Launch(exec, "write_counts", blocks_for(K * plan.num_segments))(write_counts<T>, plan, K, entries.first, entries.total, rows);
  Launch(exec, "write_entries", K * plan.num_tiles)(write_entries<T>, input, state, plan, wire, mark, entries.first, rows);
}

template <class T>
void list_marked(const Exec& exec, const ScopePlan& plan, std::size_t num_clients, const std::uint32_t* mark,
                 std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  const MarkedEntries entries = make_room(exec, plan, num_clients, mark, false, out, frame);
  const PayloadRow<T>* rows = upload_rows(exec, out, frame);
  Launch(exec, "write_counts", blocks_for(num_clients * plan.num_segments))(write_counts<T>, plan, num_clients, entries.first,
                                                                            entries.total, rows);
  Launch(exec, "write_positions", blocks_for(num_clients * plan.num_tiles * kWarp))(write_positions<T>, plan, num_clients, mark,
                                                                                    entries.first, rows);
}

template void send_marked<float>(const Exec&, const Affine<float>&, const ScopePlan&, const std::uint32_t*, WireValue,
                                 const StateWrite<float>&, std::span<Payload<float>* const>, Workspace::Frame&);
template void send_marked<double>(const Exec&, const Affine<double>&, const ScopePlan&, const std::uint32_t*, WireValue,
                                  const StateWrite<double>&, std::span<Payload<double>* const>, Workspace::Frame&);

template void list_marked<float>(const Exec&, const ScopePlan&, std::size_t, const std::uint32_t*, std::span<Payload<float>* const>,
                                 Workspace::Frame&);
template void list_marked<double>(const Exec&, const ScopePlan&, std::size_t, const std::uint32_t*, std::span<Payload<double>* const>,
                                  Workspace::Frame&);

}  // namespace fl::cuda
