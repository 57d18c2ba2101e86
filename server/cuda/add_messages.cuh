// Sums of messages of any form.
//
// Each block owns a part of the positions and processes the clients in order. Each thread owns two quads of positions. Numbers for all
// positions are added in registers, with the loads of several clients in flight at a time. The entries of a list are divided among the
// threads, which add them to the sums in shared memory: the entries of one client have distinct positions, and the block waits between
// clients; the next clients' entries are loaded before. The first entry of a part in each list is searched for from its place under an
// even spread, for a group of clients at a time. Cohorts that send only lists of values use list_sums.cuh instead.
//
// Where parts alone would leave multiprocessors without work, the groups of clients are divided into runs as well. A run has a power of two
// of groups, so that its sum is a node of the tree that GroupSums adds along: join_runs gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/levels.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "server/cuda/sent_message.cuh"

namespace fl::cuda {
namespace detail {

inline constexpr int kAddThreads = 256, kQuads = 2;
inline constexpr std::size_t kPositions = 4 * kQuads * kAddThreads;  // of a part
inline constexpr std::size_t kMostTogether = 8;                      // segments of a part
inline constexpr std::size_t kMostNear = 3;  // levels of group sums in shared memory; three blocks fit on a multiprocessor
inline constexpr int kBlocksAtOnce = 3;      // on a multiprocessor, as far as registers allow
static_assert(kPositions == kReduceTile && kSumGroup == 2 * kWarp);

// The clients' messages, and the group sums that a block keeps in global memory if shared memory has no room: [blocks, num_far,
// kPositions].
template <class T>
struct Cohort {
  const SentMessage<T>* message;     // [num_messages]
  const MessageDetails<T>* details;  // [num_messages]
  std::size_t num_messages;
  std::size_t num_near, num_far;
  double* far;
};

// The division of positions: into tiles or, if segments are buckets of one size, into parts of `together` buckets. Excluded tensors are
// the last segments of the plan; their tiles read other numbers.
struct Cut {
  std::size_t num_segments = 0;    // compressed ones
  std::size_t num_compressed = 0;  // elements of them
  std::size_t bucket = 0;          // elements of each bucket except the last; 0: tiles
  std::size_t together = 1;        // buckets per part
  std::size_t num_compressed_parts = 0, num_parts = 0;
};

// Positions of one part.
struct PartPositions {
  std::size_t segment, begin, count;
  bool is_excluded;
  std::size_t first;   // entry of the first position, in messages that send all
  std::size_t length;  // of all segments
  std::size_t bucket;  // elements of each segment; 0: all positions are in one segment

  // Returns the segment of the i-th position, counted from the first segment.
  [[nodiscard]] __device__ unsigned nth_segment(std::size_t i) const {
    return bucket == 0 ? 0 : static_cast<unsigned>(i) / static_cast<unsigned>(bucket);
  }
};

[[nodiscard]] __device__ inline PartPositions positions_of_part(const ScopePlan& plan, const Cut& cut, std::size_t part) {
  const bool is_excluded = part >= cut.num_compressed_parts;
  if (cut.bucket != 0 && !is_excluded) {
    const std::size_t segment = part * cut.together, first = segment * cut.bucket, left = cut.num_compressed - first;
    const std::size_t most = cut.together * cut.bucket;
    return {segment, plan.segment[0].begin + first, left < most ? left : most, false, first, plan.total, cut.bucket};
  }
  // A bucket is a tile of its own, so the tiles of excluded tensors follow after as many tiles as there are segments.
  const std::size_t behind = part - cut.num_compressed_parts;
  const Tile tile = tile_at(plan, cut.bucket != 0 ? cut.num_segments + behind : part);
  return {tile.segment, tile.begin, tile.count, is_excluded, tile.offset - (is_excluded ? cut.num_compressed : 0), plan.total, 0};
}

// The contribution of one client of a group to a part.
template <class T>
struct Incoming {
  Form form;      // nothing: also for a list without entries in the part
  bool in_quads;  // whether the numbers are aligned for quads
  double weight;
  const void* numbers;      // of the first position; for a list, the message has the address
  const T* scale;           // of the first segment
  std::size_t first, last;  // entries of a list
};
template <class T>
struct Group {
  Incoming<T> incoming[kSumGroup];
  T number[kSumGroup][kMostTogether][2];     // of each segment: linear: of level 1; binary: of both levels
  unsigned present[kSumGroup], num_present;  // clients that contribute, in order
};

// Returns the first of `count` ascending positions that is not below `bound`. The search starts at `guess` with doubling steps: a near
// guess reads little of the list.
[[nodiscard]] __device__ inline std::size_t first_near(const std::uint32_t* index, std::size_t count, std::size_t bound,
                                                       std::size_t guess) {
  std::size_t low = 0, high = count, step = 8;  // numbers per memory sector
  if (guess < count && index[guess] < bound) {
    low = guess + 1;
    for (std::size_t at = guess + step; at < count; at += step) {
      if (index[at] >= bound) {
        high = at;
        break;
      }
      low = at + 1;
      step *= 2;
    }
  } else {
    high = guess < count ? guess : count;
    while (high > 0) {
      const std::size_t at = high > step ? high - step : 0;
      if (index[at] < bound) {
        low = at + 1;
        break;
      }
      high = at;
      step *= 2;
    }
  }
  return low + first_from(index + low, high - low, bound);
}

// Returns the bytes per number of messages that send all positions.
template <class T>
[[nodiscard]] __device__ std::size_t bytes_of_number(Form form, const MessageDetails<T>& details) {
  switch (form) {
    case Form::vector: return sizeof(T);
    case Form::linear8:
    case Form::signs:
    case Form::two_values: return 1;
    case Form::linear16: return 2;
    case Form::linear32: return 4;
    case Form::levels: return static_cast<std::size_t>(details.width);
    default: return 0;
  }
}

template <class T>
[[nodiscard]] __device__ Incoming<T> incoming_from(const SentMessage<T>& message, const MessageDetails<T>& details,
                                                   const PartPositions& positions) {
  Incoming<T> in{};
  in.weight = message.weight;
  if (message.form == Form::nothing) return in;
  if (positions.is_excluded) {
    in.form = details.excluded != nullptr ? Form::vector : Form::nothing;
    in.numbers = details.excluded + positions.first;
    in.in_quads = holds_quads(details.excluded + positions.first);
    return in;
  }
  in.form = message.form;
  if (in.form == Form::list || in.form == Form::level_list) {
    // Entries are spread about evenly for most operators, and a part has few of them.
    const auto* index = static_cast<const std::uint32_t*>(message.numbers);
    in.numbers = index;
    in.first = first_near(index, message.num_sent, positions.begin, message.num_sent * positions.begin / positions.length);
    in.last = first_near(index, message.num_sent, positions.begin + positions.count, in.first);
    if (in.first == in.last) in.form = Form::nothing;
  }
  if (const std::size_t bytes = bytes_of_number<T>(in.form, details); bytes > 0) {
    in.numbers = static_cast<const std::byte*>(message.numbers) + positions.first * bytes;
    in.in_quads = reinterpret_cast<std::uintptr_t>(in.numbers) % (bytes < 8 ? 4 * bytes : 16) == 0;
  }
  if (message.second == nullptr || in.form == Form::list) return in;
  const std::size_t scales = is_linear(in.form) || in.form == Form::signs ? 1
                             : in.form == Form::two_values                ? 2
                                                                          : scales_per_segment(details.format);
  in.scale = message.second + positions.segment * scales;
  return in;
}

// Computes the numbers of a client's levels in the n-th segment of a part: of level 1 for linear levels, of both levels otherwise.
template <class T>
__device__ void open_numbers(const SentMessage<T>& message, const Incoming<T>& in, std::size_t n, T (&number)[2]) {
  if (is_linear(in.form)) {
    number[0] = (in.scale != nullptr ? in.scale[n] : T(1)) * message.unit;
  } else if (in.form == Form::signs) {
    number[1] = in.scale != nullptr ? in.scale[n] : T(1);
    number[0] = -number[1];
  } else if (in.form == Form::two_values) {
    number[0] = in.scale[2 * n];
    number[1] = in.scale[2 * n + 1];
  }
}

// Prepares a group. All threads synchronise at the end.
template <class T>
__device__ void open_group(const Cohort<T>& cohort, std::size_t first, const PartPositions& positions, Group<T>& group) {
  const SentMessage<T>* message = cohort.message + first;
  const std::size_t left = cohort.num_messages - first, count = left < kSumGroup ? left : kSumGroup;
  if (threadIdx.x < kSumGroup) {
    Incoming<T> in{};
    if (threadIdx.x < count) in = incoming_from(message[threadIdx.x], cohort.details[first + threadIdx.x], positions);
    group.incoming[threadIdx.x] = in;
  }
  __syncthreads();
  const unsigned segments = positions.count > 0 ? positions.nth_segment(positions.count - 1) + 1 : 0;
  for (unsigned i = threadIdx.x; i < kSumGroup * segments; i += kAddThreads) {
    const unsigned m = i / segments, n = i - m * segments;
    const Incoming<T>& in = group.incoming[m];
    if (is_linear(in.form) || is_binary(in.form)) open_numbers(message[m], in, n, group.number[m][n]);
  }
  if (threadIdx.x < kWarp) {
    const unsigned lane = threadIdx.x, before = (1u << lane) - 1;
    const bool low = group.incoming[lane].form != Form::nothing, high = group.incoming[kWarp + lane].form != Form::nothing;
    const unsigned lows = __ballot_sync(kAllLanes, low), highs = __ballot_sync(kAllLanes, high);
    const auto num_low = static_cast<unsigned>(__popc(lows));
    if (low) group.present[__popc(lows & before)] = lane;
    if (high) group.present[num_low + static_cast<unsigned>(__popc(highs & before))] = kWarp + lane;
    if (lane == 0) group.num_present = num_low + static_cast<unsigned>(__popc(highs));
  }
  __syncthreads();
}

// The sums of a thread's positions.
struct OwnTotals {
  Quad<double> x[kQuads];
  unsigned segment[kQuads];  // in the part; a bucket's length is a multiple of four

  [[nodiscard]] __device__ static unsigned first(int quad) { return 4 * (threadIdx.x + static_cast<unsigned>(quad * kAddThreads)); }
  __device__ OwnTotals(const double* total, const PartPositions& positions) {
    FL_UNROLL
    for (int q = 0; q < kQuads; ++q) {
      x[q] = load_quad(total + first(q));
      segment[q] = first(q) < positions.count ? positions.nth_segment(first(q)) : 0;
    }
  }
  __device__ void store(double* total) const {
    FL_UNROLL
    for (int q = 0; q < kQuads; ++q) store_quad(total + first(q), x[q]);
  }
};

// A quad in flight; small numbers stay packed in words.
template <class U>
struct alignas(4 * sizeof(U)) SmallQuad {
  std::uint32_t word[sizeof(U)];
  [[nodiscard]] __device__ U at(int l) const {
    constexpr int kBytes = static_cast<int>(sizeof(U));
    return static_cast<U>(word[l * kBytes / 4] >> (8 * (l * kBytes % 4)));
  }
};
template <class U>
struct LargeQuad : Quad<U> {
  [[nodiscard]] __device__ U at(int l) const { return this->x[l]; }
};
template <class U>
using LoadedQuad = std::conditional_t<sizeof(U) < 4, SmallQuad<U>, LargeQuad<U>>;

// Returns weight c of a number, or of a level by the expressions of level_value. U = T: vectors; bytes: binary; others: linear
template <class U, class T>
[[nodiscard]] __device__ double term(double weight, const T (&number)[2], U x) {
  if constexpr (std::is_same_v<U, T>)
    return weight * static_cast<double>(x);
  else if constexpr (std::is_same_v<U, std::uint8_t>)
    return weight * static_cast<double>(x != 0 ? number[1] : number[0]);
  else
    return weight * static_cast<double>(static_cast<T>(x) * number[0]);
}

// Returns the numbers of the i-th present client for all positions of the part.
template <class U, class T>
[[nodiscard]] __device__ const U* numbers_of(const Group<T>& group, unsigned i) {
  return static_cast<const U*>(group.incoming[group.present[i]].numbers);
}

// Adds the numbers of N present clients, from index `first` on, if all of them are aligned for quads. All `count` positions form whole
// quads.
template <int N, class U, class T>
[[nodiscard]] __device__ bool add_quads(const Group<T>& group, unsigned first, unsigned count, OwnTotals& own) {
  bool in_quads = true;
  FL_UNROLL
  for (unsigned m = 0; m < N; ++m) in_quads = in_quads && group.incoming[group.present[first + m]].in_quads;
  if (!in_quads) return false;
  LoadedQuad<U> x[N][kQuads] = {};
  FL_UNROLL
  for (int i = 0; i < N * kQuads; ++i)
    if (OwnTotals::first(i % kQuads) < count)
      x[i / kQuads][i % kQuads] = *reinterpret_cast<const LoadedQuad<U>*>(numbers_of<U>(group, first + static_cast<unsigned>(i / kQuads)) +
                                                                          OwnTotals::first(i % kQuads));
  FL_UNROLL
  for (unsigned m = 0; m < N; ++m) {
    const unsigned client = group.present[first + m];
    const double weight = group.incoming[client].weight;
    FL_UNROLL
    for (int i = 0; i < 4 * kQuads; ++i)
      own.x[i / 4].x[i % 4] += term(weight, group.number[client][own.segment[i / 4]], x[m][i / 4].at(i % 4));
  }
  return true;
}

// Adds the present clients from .. to-1 to `total`. Each thread owns distinct positions.
template <class U, class T>
__device__ void add_all(const Group<T>& group, unsigned from, unsigned to, const PartPositions& positions, double* total) {
  // Number of clients in flight, as many as fit in registers.
  constexpr int kBytesAhead = sizeof(U) == 1 ? 32 : 64, kAhead = kBytesAhead / (4 * kQuads * static_cast<int>(sizeof(U)));
  const auto count = static_cast<unsigned>(positions.count);
  OwnTotals own(total, positions);
  while (from < to) {
    if (count % 4 == 0 && from + kAhead <= to && add_quads<kAhead, U>(group, from, count, own)) {
      from += kAhead;
      continue;
    }
    const unsigned client = group.present[from];
    const double weight = group.incoming[client].weight;
    const U* x = numbers_of<U>(group, from);
    FL_UNROLL
    for (int i = 0; i < 4 * kQuads; ++i) {
      const unsigned at = OwnTotals::first(i / 4) + static_cast<unsigned>(i % 4);
      if (at < count) own.x[i / 4].x[i % 4] += term(weight, group.number[client][own.segment[i / 4]], x[at]);
    }
    ++from;
  }
  own.store(total);
}

// Does the same for levels of any map, position by position.
template <class T>
__device__ void add_levels(const MessageDetails<T>* details, const Group<T>& group, unsigned from, unsigned to,
                           const PartPositions& positions, double* total) {
  for (; from < to; ++from) {
    const unsigned m = group.present[from];
    const Incoming<T>& in = group.incoming[m];
    const LevelFormat& format = details[m].format;
    const LevelWidth width = details[m].width;
    const std::size_t scales = scales_per_segment(format);
    const auto* levels = static_cast<const std::byte*>(in.numbers);
    FL_NO_UNROLL
    for (std::size_t i = threadIdx.x; i < positions.count; i += kAddThreads)
      total[i] +=
          in.weight * static_cast<double>(level_value(format, level_from(levels, width, i), in.scale + positions.nth_segment(i) * scales));
  }
}

// Does the same for lists of values, with several clients in flight. The threads synchronise before every client.
template <class T>
__device__ void add_lists(const SentMessage<T>* message, const Group<T>& group, unsigned from, unsigned to, std::size_t begin,
                          double* total) {
  constexpr unsigned kAhead = sizeof(T) == 4 ? 8 : 4;
  for (; from < to; from += kAhead) {
    std::uint32_t at[kAhead];
    T c[kAhead];
    FL_UNROLL
    for (unsigned a = 0; a < kAhead; ++a) {
      if (from + a >= to) break;
      const unsigned m = group.present[from + a];
      const std::size_t i = group.incoming[m].first + threadIdx.x;
      if (i >= group.incoming[m].last) continue;
      at[a] = static_cast<const std::uint32_t*>(message[m].numbers)[i];
      c[a] = message[m].second[i];
    }
    FL_UNROLL
    for (unsigned a = 0; a < kAhead; ++a) {
      if (from + a >= to) break;
      __syncthreads();
      const unsigned m = group.present[from + a];
      const std::size_t first = group.incoming[m].first + threadIdx.x, last = group.incoming[m].last;
      const double weight = group.incoming[m].weight;
      if (first < last) total[at[a] - begin] += weight * static_cast<double>(c[a]);
      for (std::size_t i = first + kAddThreads; i < last; i += kAddThreads)
        total[static_cast<const std::uint32_t*>(message[m].numbers)[i] - begin] += weight * static_cast<double>(message[m].second[i]);
    }
  }
}

template <class T>
__device__ void add_level_lists(const MessageDetails<T>* details, const Group<T>& group, unsigned from, unsigned to,
                                const PartPositions& positions, double* total) {
  for (; from < to; ++from) {
    __syncthreads();
    const unsigned m = group.present[from];
    const Incoming<T>& in = group.incoming[m];
    const LevelFormat& format = details[m].format;
    const std::size_t scales = scales_per_segment(format);
    FL_NO_UNROLL
    for (std::size_t i = in.first + threadIdx.x; i < in.last; i += kAddThreads) {
      const std::size_t at = static_cast<const std::uint32_t*>(in.numbers)[i] - positions.begin;
      total[at] += in.weight * static_cast<double>(level_value(format, level_from(details[m].levels, details[m].width, i),
                                                               in.scale + positions.nth_segment(at) * scales));
    }
  }
}

// Computes total = sum of weight c over a group of clients, one after another.
template <class T>
__device__ void add_group(const Cohort<T>& cohort, std::size_t first, const PartPositions& positions, double* total) {
  __shared__ Group<T> group;
  const SentMessage<T>* message = cohort.message + first;
  const MessageDetails<T>* details = cohort.details + first;
  for (std::size_t i = threadIdx.x; i < kPositions; i += kAddThreads) total[i] = 0;
  open_group(cohort, first, positions, group);
  const unsigned num_present = group.num_present;
  for (unsigned from = 0, to = 0; from < num_present; from = to) {
    const Form form = group.incoming[group.present[from]].form;
    while (to < num_present && group.incoming[group.present[to]].form == form) ++to;
    if (from > 0) __syncthreads();  // another thread may have written these sums
    switch (form) {
      case Form::nothing: break;
      case Form::vector: add_all<T>(group, from, to, positions, total); break;
      case Form::linear8: add_all<std::int8_t>(group, from, to, positions, total); break;
      case Form::linear16: add_all<std::int16_t>(group, from, to, positions, total); break;
      case Form::linear32: add_all<std::int32_t>(group, from, to, positions, total); break;
      case Form::signs:
      case Form::two_values: add_all<std::uint8_t>(group, from, to, positions, total); break;
      case Form::levels: add_levels(details, group, from, to, positions, total); break;
      case Form::list: add_lists(message, group, from, to, positions.begin, total); break;
      case Form::level_list: add_level_lists(details, group, from, to, positions, total); break;
    }
  }
  __syncthreads();
}

// Returns the storage of a block's group sums. It is recomputed where needed, so that it takes no registers in between.
template <class T>
[[nodiscard]] __device__ GroupSums sums_of(const Cohort<T>& cohort, double* total) {
  return {total + kPositions, cohort.num_near, cohort.far + blockIdx.x * cohort.num_far * kPositions, kPositions};
}

// Returns the clients of one run. Each run has `clients` of them, and the last one may have fewer.
template <class T>
[[nodiscard]] __device__ Cohort<T> run_of(const Cohort<T>& cohort, std::size_t run, std::size_t clients) {
  const std::size_t first = run * clients, left = cohort.num_messages - first;
  Cohort<T> own = cohort;
  own.message += first;
  own.details += first;
  own.num_messages = left < clients ? left : clients;
  return own;
}

// Sums the parts from first_part on, over each run of clients. sum: [runs,L]
template <class T>
__global__ void __launch_bounds__(kAddThreads, kBlocksAtOnce)
    add_messages(ScopePlan plan, Cut cut, std::size_t first_part, Cohort<T> cohort, std::size_t clients_of_run, std::size_t L,
                 double* sum) {
  FL_SHARED_MEMORY(double, total);
  __shared__ PartPositions positions;
  const std::size_t parts = cut.num_parts - first_part, runs = (cohort.num_messages + clients_of_run - 1) / clients_of_run;
  for (std::size_t piece = blockIdx.x; piece < parts * runs; piece += gridDim.x) {
    const std::size_t run = piece / parts;
    const Cohort<T> own = run_of(cohort, run, clients_of_run);
    if (threadIdx.x == 0) positions = positions_of_part(plan, cut, first_part + (piece - run * parts));
    __syncthreads();
    for (std::size_t first = 0; first < own.num_messages; first += kSumGroup) {
      add_group(own, first, positions, total);
      if (own.num_messages - first <= kSumGroup) break;
      const GroupSums sums = sums_of(own, total);
      for (std::size_t i = threadIdx.x; i < positions.count; i += kAddThreads) sums.add(i, first / kSumGroup, total[i]);
    }
    const GroupSums sums = sums_of(own, total);
    for (std::size_t i = threadIdx.x; i < positions.count; i += kAddThreads)
      sum[run * L + positions.begin + i] = sums.with_last(i, (own.num_messages - 1) / kSumGroup, total[i]);
    __syncthreads();  // before shared memory is reused for the next positions
  }
}

}  // namespace detail
}  // namespace fl::cuda
