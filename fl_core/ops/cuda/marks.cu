#include <vector>

#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/chosen.cuh"
#include "fl_core/ops/cuda/marks.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/radix_select.cuh"
#include "fl_core/ops/cuda/scan.cuh"

namespace fl::cuda {
namespace {

constexpr int kScanThreads = 1024;
static_assert(kMarkWords == 2 * kWarp, "a lane takes two words of a tile");

// Whether a client's tile is of a segment that is chosen from candidates. found: [K,S], or null where none is
[[nodiscard]] __device__ bool is_chosen(const Found* found, const ScopePlan& plan, std::size_t client, std::size_t segment) {
  return found != nullptr && found[client * plan.num_segments + segment].way == Way::candidates;
}

// count: [K, num_tiles]; of tiles that are chosen it is there.
__global__ void count_marks(const std::uint32_t* mark, ScopePlan plan, std::size_t num_clients, const Found* found, std::uint32_t* count) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = num_clients * plan.num_tiles;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    if (found != nullptr && is_chosen(found, plan, piece / plan.num_tiles, tile_at(plan, piece % plan.num_tiles).segment)) continue;
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

// One warp: visit(at + i, j) for the i-th mark of a tile, which stands for element j of it. Of few marks every lane visits those of its own
// two words; many are visited word by word, so that neighbours in memory go together.
template <class Visit>
__device__ void visit_marks(const std::uint32_t* words, std::size_t at, Visit visit) {
  constexpr unsigned kFew = 4 * kMarkWords;
  const unsigned lane = threadIdx.x % kWarp;
  const std::uint32_t low = words[2 * lane], high = words[2 * lane + 1];
  if (__any_sync(kAllLanes, (low | high) != 0 ? 1 : 0) == 0) return;
  const unsigned mine = static_cast<unsigned>(__popc(low)) + static_cast<unsigned>(__popc(high)), through = warp_inclusive_sum(mine);
  if (__shfl_sync(kAllLanes, through, static_cast<int>(kWarp - 1)) <= kFew) {
    at += through - mine;
    for (std::uint32_t left = low; left != 0; left &= left - 1)
      visit(at++, std::size_t{64} * lane + static_cast<unsigned>(__popc((left & (~left + 1)) - 1)));
    for (std::uint32_t left = high; left != 0; left &= left - 1)
      visit(at++, std::size_t{64} * lane + 32 + static_cast<unsigned>(__popc((left & (~left + 1)) - 1)));
    return;
  }
  for (std::size_t w = 0; w < kMarkWords; ++w) {
    const std::uint32_t word = words[w];
    if ((word >> lane & 1) != 0) visit(at + static_cast<unsigned>(__popc(word & ((1u << lane) - 1))), w * kWarp + lane);
    at += static_cast<unsigned>(__popc(word));
  }
}

// A warp per tile. total: [K], how many entries a client has where tiles of few have lists; null where all have marks
template <class T>
__global__ void write_entries(Affine<T> input, StateWrite<T> state, SentState sent, ScopePlan plan, WireValue wire, const Found* found,
                              const std::uint32_t* mark, const std::uint32_t* first, const std::uint32_t* total,
                              const PayloadRow<T>* rows) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece - k * plan.num_tiles);
    if (is_chosen(found, plan, k, tile.segment)) continue;
    const std::size_t begin = tile.begin;
    const OpenedInput<T> opened(input, k);
    T *kept = state_row(state, k), *value = rows[k].value;
    std::uint32_t* index = rows[k].index;
    const auto write = [&](std::size_t at, std::size_t i, T p) {
      const std::size_t j = begin + i;
      const T c = wire_value(wire, p);
      index[at] = static_cast<std::uint32_t>(j);
      value[at] = c;
      if (kept != nullptr && sent == SentState::settled) kept[j] = state_where_sent(state.rule, p, c);
    };
    if (total != nullptr) {
      const bool is_last = piece - k * plan.num_tiles + 1 == plan.num_tiles;
      const std::uint32_t from = first[piece], n = (is_last ? total[k] : first[piece + 1]) - from;
      if (n <= kMostListed<T>) {
        const TileList<const T> list(mark + piece * kMarkWords, n);
        for (unsigned i = threadIdx.x % kWarp; i < n; i += kWarp) write(from + i, list.place[i], list.value[i]);
        continue;
      }
    }
    visit_marks(mark + piece * kMarkWords, first[piece],
                [&](std::size_t at, std::size_t i) { write(at, i, kept != nullptr ? kept[begin + i] : opened.at(begin + i)); });
  }
}

// A warp per tile, from its candidates: what is kept of them, ascending. Those equal to the k-th one are counted as they come.
template <class T>
__global__ void write_chosen(Chosen<T> chosen, StateWrite<T> state, SentState sent, ScopePlan plan, std::size_t num_clients, WireValue wire,
                             const std::uint32_t* first, const PayloadRow<T>* rows) {
  const unsigned lane = threadIdx.x % kWarp, left_lanes = (1u << lane) - 1;
  const std::size_t pieces = num_clients * plan.num_tiles;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece - k * plan.num_tiles);
    if (!is_chosen(chosen.found, plan, k, tile.segment)) continue;
    const std::size_t list = k * chosen.num_slots + chosen.slot[piece];
    const Key<T> kth = chosen.kth[k * plan.num_segments + tile.segment];
    const unsigned listed = chosen.listed[piece], quota = chosen.quota[piece];
    T* kept_state = sent == SentState::settled ? state_row(state, k) : nullptr;
    std::size_t at = first[piece];
    unsigned equal_before = 0;
    for (unsigned base = 0; base < listed; base += kWarp) {
      const bool is_there = base + lane < listed;
      const T p = is_there ? chosen.value[list + base + lane] : T(0);
      const Key<T> key = magnitude_key(p);
      const unsigned equals = __ballot_sync(kAllLanes, is_there && key == kth);
      const bool is_kept =
          is_there && (key > kth || (key == kth && equal_before + static_cast<unsigned>(__popc(equals & left_lanes)) < quota));
      const unsigned kept = __ballot_sync(kAllLanes, is_kept);
      if (is_kept) {
        const std::size_t j = tile.begin + chosen.place[list + base + lane], to = at + static_cast<unsigned>(__popc(kept & left_lanes));
        const T c = wire_value(wire, p);
        rows[k].index[to] = static_cast<std::uint32_t>(j);
        rows[k].value[to] = c;
        if (kept_state != nullptr) kept_state[j] = state_where_sent(state.rule, p, c);
      }
      at += static_cast<unsigned>(__popc(kept));
      equal_before += static_cast<unsigned>(__popc(equals));
    }
  }
}

// A warp per tile.
template <class T>
__global__ void write_positions(ScopePlan plan, std::size_t num_clients, const std::uint32_t* mark, const std::uint32_t* first,
                                const PayloadRow<T>* rows) {
  const std::size_t pieces = num_clients * plan.num_tiles;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_tiles, begin = tile_at(plan, piece - k * plan.num_tiles).begin;
    std::uint32_t* index = rows[k].index;
    visit_marks(mark + piece * kMarkWords, first[piece],
                [&](std::size_t at, std::size_t i) { index[at] = static_cast<std::uint32_t>(begin + i); });
  }
}

// Where each tile's entries begin in its client's message, [K,num_tiles], and how many there are of each client, [K].
struct MarkedEntries {
  const std::uint32_t *first, *total;
};
// kept: [K,num_tiles], the counts of tiles that are chosen, or of all where found is null; null where none are there.
MarkedEntries count_entries(const Exec& exec, const ScopePlan& plan, std::size_t K, const std::uint32_t* mark, const Found* found,
                            std::uint32_t* kept, Workspace::Frame& frame) {
  const std::size_t pieces = K * plan.num_tiles;
  auto* first = kept != nullptr ? kept : frame.take<std::uint32_t>(pieces);
  auto* total = frame.take<std::uint32_t>(K);
  if (kept == nullptr || found != nullptr)
    Launch(exec, "count_marks", blocks_for(pieces * kWarp))(count_marks, mark, plan, K, found, first);
  Launch(exec, "scan_counts", K, kScanThreads)(scan_counts, first, K, plan.num_tiles, total);
  return {first, total};
}

// Room for the positions of a message.
template <class T>
void make_room(const ScopePlan& plan, std::uint32_t num_sent, Payload<T>& payload) {
  payload.place_on(Device::cuda);
  payload.positions = Positions::list;
  payload.num_sent = num_sent;
  payload.counts.resize_for_overwrite(plan.num_segments);
  payload.index.resize_for_overwrite(num_sent);
}

}  // namespace

template <class T>
void send_chosen(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const Chosen<T>& chosen, const std::uint32_t* mark,
                 WireValue wire, const StateWrite<T>& state, SentState sent, std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  const std::size_t K = input.clients();
  const MarkedEntries entries = count_entries(exec, plan, K, mark, chosen.found, chosen.kept, frame);
  std::vector<std::uint32_t> num_sent(K);
  copy_bytes(num_sent.data(), Device::cpu, entries.total, Device::cuda, K * sizeof(std::uint32_t), exec.stream);
  for (std::size_t k = 0; k < K; ++k) {
    make_room(plan, num_sent[k], *out[k]);
    out[k]->value.resize_for_overwrite(num_sent[k]);
    out[k]->values = wire;
  }
  const PayloadRow<T>* rows = upload_rows(exec, out, frame);
  Launch(exec, "write_counts", blocks_for(K * plan.num_segments))(write_counts<T>, plan, K, entries.first, entries.total, rows);
  const std::size_t blocks = blocks_for(K * plan.num_tiles * kWarp);
  Launch(exec, "write_entries", blocks)(write_entries<T>, input, state, sent, plan, wire, chosen.found, mark, entries.first,
                                        chosen.lists_few ? entries.total : nullptr, rows);
  if (chosen.found != nullptr)
    Launch(exec, "write_chosen", blocks)(write_chosen<T>, chosen, state, sent, plan, K, wire, entries.first, rows);
}

template <class T>
void send_marked(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const std::uint32_t* mark, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  send_chosen(exec, input, plan, Chosen<T>{}, mark, wire, state, SentState::settled, out, frame);
}

template <class T>
void list_marked(const Exec& exec, const ScopePlan& plan, const std::uint32_t* mark, std::uint32_t num_sent,
                 std::span<Payload<T>* const> out, Workspace::Frame& frame) {
  const std::size_t K = out.size();
  const MarkedEntries entries = count_entries(exec, plan, K, mark, nullptr, nullptr, frame);
  for (Payload<T>* payload : out) make_room(plan, num_sent, *payload);
  const PayloadRow<T>* rows = upload_rows(exec, out, frame);
  Launch(exec, "write_counts", blocks_for(K * plan.num_segments))(write_counts<T>, plan, K, entries.first, entries.total, rows);
  Launch(exec, "write_positions", blocks_for(K * plan.num_tiles * kWarp))(write_positions<T>, plan, K, mark, entries.first, rows);
}

#define FL_INSTANTIATE(T)                                                                                                              \
  template void send_chosen<T>(const Exec&, const Affine<T>&, const ScopePlan&, const Chosen<T>&, const std::uint32_t*, WireValue,     \
                               const StateWrite<T>&, SentState, std::span<Payload<T>* const>, Workspace::Frame&);                      \
  template void send_marked<T>(const Exec&, const Affine<T>&, const ScopePlan&, const std::uint32_t*, WireValue, const StateWrite<T>&, \
                               std::span<Payload<T>* const>, Workspace::Frame&);                                                       \
  template void list_marked<T>(const Exec&, const ScopePlan&, const std::uint32_t*, std::uint32_t, std::span<Payload<T>* const>,       \
                               Workspace::Frame&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
