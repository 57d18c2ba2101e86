#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "compressors/codec/cuda/tally.hpp"
#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/message/small_float.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::codec::cuda {
namespace {

using fl::cuda::blocks_for;
using fl::cuda::kAllLanes;
using fl::cuda::kBlockThreads;
using fl::cuda::kWarp;
using fl::cuda::Launch;
using fl::cuda::num_threads;
using fl::cuda::thread_index;
using fl::cuda::upload;

constexpr std::size_t kLevelsPerPiece = std::size_t{1} << 16, kNumbersPerPiece = std::size_t{1} << 14;
constexpr unsigned kWarps = kBlockThreads / kWarp;
constexpr unsigned kGapsPerLane = kGapsPerBlock / kWarp;
static_assert(kLargestRiceParameter == kWarp - 1, "a lane for every parameter");

// A stretch of one message's levels; what is counted goes to table[0 .. num_levels], the last for levels outside the format.
struct LevelPiece {
  const std::byte* levels;
  LevelWidth width;
  std::int32_t min_level;
  std::uint32_t num_levels;
  std::size_t first, count;
  std::size_t table;  // where it begins among all tables
};

// The positions that describe one segment: those that are kept, or the others, where they are fewer. And the sums over their gaps.
struct PositionPiece {
  const std::uint32_t* kept;  // [num_kept]
  std::size_t num_kept, begin, end;
  std::size_t count;      // of the positions described
  std::uint32_t* others;  // [count] those that are not kept; null where the kept ones are described
  std::uint32_t divisor;  // of Golomb's code, 0 = not tried
  [[nodiscard]] FL_HD const std::uint32_t* index() const { return others != nullptr ? others : kept; }
};
struct GapCosts {
  std::uint64_t rice, blocks;       // with their parameters
  std::uint64_t exponents;          // sum floor(log2(g + 1))
  std::uint32_t zeros, long_words;  // Golomb: sum g / d, and remainders of full width
  std::uint32_t ascending;          // and inside the segment
};

// A stretch of one message's values, scales or excluded values; the largest magnitude goes to largest[slot], as the bits of a T.
template <class T>
struct NumberPiece {
  const T* numbers;
  std::size_t count, slot;
};

// ---- magnitudes ----

[[nodiscard]] __device__ std::uint64_t warp_most(std::uint64_t x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const auto other = static_cast<std::uint64_t>(__shfl_xor_sync(kAllLanes, static_cast<unsigned long long>(x), width));
    x = other > x ? other : x;
  }
  return x;
}

// The bits of magnitudes are in their order, infinity and NaN behind all numbers. largest: zeros
template <class T>
__global__ void find_largest(const NumberPiece<T>* pieces, std::size_t num_pieces, unsigned long long* largest) {
  constexpr auto kSign = std::uint64_t{1} << (8 * sizeof(T) - 1);
  for (std::size_t p = blockIdx.x; p < num_pieces; p += gridDim.x) {
    const NumberPiece<T> piece = pieces[p];
    std::uint64_t most = 0;
    for (std::size_t i = threadIdx.x; i < piece.count; i += blockDim.x) {
      const std::uint64_t magnitude = std::uint64_t{small_float_detail::bits(piece.numbers[i])} & ~kSign;
      most = magnitude > most ? magnitude : most;
    }
    most = warp_most(most);
    if (threadIdx.x % kWarp == 0) atomicMax(&largest[piece.slot], static_cast<unsigned long long>(most));
  }
}

// ---- levels ----

// Small tables have a column for each lane, so that lanes that meet the same level do not meet.
[[nodiscard]] __device__ unsigned columns_of(std::uint32_t num_levels) { return (num_levels + 1) * kWarp <= kMostDirect ? kWarp : 1; }

// visit(level) for every level of a piece by the threads of a block, sixteen bytes of a thread at a time.
template <class L, class Visit>
__device__ void visit_levels(const LevelPiece& piece, Visit visit) {
  struct alignas(16) Sixteen {
    std::uint32_t word[4];
  };
  constexpr std::size_t kPerWord = 4 / sizeof(L), kAtOnce = 4 * kPerWord;
  const L* level = reinterpret_cast<const L*>(piece.levels) + piece.first;
  const std::size_t before = (16 - reinterpret_cast<std::uintptr_t>(level) % 16) % 16 / sizeof(L);
  const std::size_t head = before < piece.count ? before : piece.count, middle = (piece.count - head) / kAtOnce;
  const auto* sixteen = reinterpret_cast<const Sixteen*>(level + head);
  for (std::size_t i = threadIdx.x; i < head; i += blockDim.x) visit(std::int32_t{level[i]});
  for (std::size_t i = threadIdx.x; i < middle; i += blockDim.x) {
    const Sixteen here = sixteen[i];
    FL_UNROLL
    for (std::size_t l = 0; l < kAtOnce; ++l)
      visit(std::int32_t{static_cast<L>(here.word[l / kPerWord] >> (8 * sizeof(L) * (l % kPerWord)))});
  }
  for (std::size_t i = head + middle * kAtOnce + threadIdx.x; i < piece.count; i += blockDim.x) visit(std::int32_t{level[i]});
}
template <class Visit>
__device__ void visit_levels(const LevelPiece& piece, Visit visit) {
  switch (piece.width) {
    case LevelWidth::w8: return visit_levels<std::int8_t>(piece, visit);
    case LevelWidth::w16: return visit_levels<std::int16_t>(piece, visit);
    case LevelWidth::w32: return visit_levels<std::int32_t>(piece, visit);
  }
}

// Two levels, 0 and 1, are added up in registers. What else there is, is found but not counted: the message is the host's then.
__device__ void count_bits(const LevelPiece& piece, std::uint32_t* table) {
  std::uint32_t all = 0, ones = 0, beyond = 0;
  visit_levels(piece, [&](std::int32_t level) {
    ++all;
    ones += static_cast<std::uint32_t>(level);
    beyond |= static_cast<std::uint32_t>(level) & ~1U;
  });
  const std::uint32_t sum[3] = {__reduce_add_sync(kAllLanes, all - ones), __reduce_add_sync(kAllLanes, ones),
                                __reduce_add_sync(kAllLanes, beyond != 0 ? 1U : 0U)};
  if (threadIdx.x % kWarp == 0)
    for (unsigned row = 0; row < 3; ++row)
      if (sum[row] > 0) atomicAdd(&table[row], sum[row]);
}

__global__ void count_pieces(const LevelPiece* pieces, std::size_t num_pieces, std::uint32_t* tables) {
  __shared__ std::uint32_t count[kMostDirect + 1];
  for (std::size_t p = blockIdx.x; p < num_pieces; p += gridDim.x) {
    const LevelPiece piece = pieces[p];
    const std::uint32_t num_levels = piece.num_levels, min_level = static_cast<std::uint32_t>(piece.min_level);
    if (num_levels == 2 && min_level == 0) {
      count_bits(piece, tables + piece.table);
      continue;
    }
    const unsigned columns = columns_of(num_levels), column = threadIdx.x % columns, rows = num_levels + 1;
    for (unsigned i = threadIdx.x; i < rows * columns; i += blockDim.x) count[i] = 0;
    __syncthreads();
    visit_levels(piece, [&](std::int32_t level) {
      const std::uint32_t code = static_cast<std::uint32_t>(level) - min_level;
      atomicAdd(&count[(code < num_levels ? code : num_levels) * columns + column], 1U);
    });
    __syncthreads();
    for (unsigned row = threadIdx.x; row < rows; row += blockDim.x) {
      std::uint32_t sum = 0;
      for (unsigned c = 0; c < columns; ++c) sum += count[row * columns + (c + column) % columns];
      if (sum > 0) atomicAdd(&tables[piece.table + row], sum);
    }
    __syncthreads();
  }
}

// ---- positions ----

[[nodiscard]] __device__ unsigned floor_log2(std::uint32_t x) {
  for (unsigned width = 1; width < 32; width *= 2) x |= x >> width;
  return x == 0 ? 0U : static_cast<unsigned>(__popc(x)) - 1;
}

[[nodiscard]] __device__ std::uint64_t warp_least(std::uint64_t x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const auto other = static_cast<std::uint64_t>(__shfl_xor_sync(kAllLanes, static_cast<unsigned long long>(x), width));
    x = other < x ? other : x;
  }
  return x;
}

// What one warp has added up. Lane k has the sum of g >> k.
struct WarpSums {
  std::uint64_t shifted, exponents, blocks;
  std::uint32_t zeros, long_words, disorder;
};

// The gaps from .. from+127 of a piece, four to a lane.
__device__ void add_run_of_gaps(const PositionPiece& piece, std::size_t from, WarpSums& sums) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::uint32_t width = piece.divisor == 0 ? 0 : floor_log2(piece.divisor - 1) + 1;
  const std::uint32_t short_ones = piece.divisor == 0 ? 0 : static_cast<std::uint32_t>((std::uint64_t{1} << width) - piece.divisor);
  std::uint32_t gap[kGapsPerLane] = {}, exponents = 0, zeros = 0, long_words = 0, disorder = 0;
  FL_UNROLL
  for (unsigned j = 0; j < kGapsPerLane; ++j) {
    const std::size_t i = from + j * kWarp + lane;
    if (i >= piece.count) continue;
    const std::uint64_t here = piece.index()[i], least = i == 0 ? piece.begin : std::uint64_t{piece.index()[i - 1]} + 1;
    disorder |= here < least || here >= piece.end ? 1 : 0;
    gap[j] = static_cast<std::uint32_t>(here - least);
    exponents += floor_log2(gap[j] + 1);
    if (piece.divisor == 0) continue;
    const std::uint32_t quotient = gap[j] / piece.divisor;
    zeros += quotient;
    long_words += gap[j] - quotient * piece.divisor >= short_ones ? 1 : 0;
  }
  std::uint32_t mine = 0;
  for (unsigned k = 0; k < kWarp; ++k) {
    std::uint32_t shifted = 0;
    FL_UNROLL
    for (unsigned j = 0; j < kGapsPerLane; ++j) shifted += gap[j] >> k;
    const std::uint32_t all = __reduce_add_sync(kAllLanes, shifted);
    if (k == lane) mine = all;
  }
  const std::size_t left = piece.count - from, count = left < kGapsPerBlock ? left : kGapsPerBlock;
  sums.shifted += mine;
  sums.blocks += warp_least(mine + count * (lane + 1)) + kRiceParameterBits;
  sums.exponents += __reduce_add_sync(kAllLanes, exponents);
  sums.zeros += __reduce_add_sync(kAllLanes, zeros);
  sums.long_words += __reduce_add_sync(kAllLanes, long_words);
  sums.disorder += __reduce_add_sync(kAllLanes, disorder);
}

// Fills `others`. Kept position i has i kept ones below it, hence those before it that are not kept know their places. disorder: [pieces],
// zeros
__global__ void list_others(const PositionPiece* pieces, std::size_t num_pieces, std::uint32_t* disorder) {
  for (std::size_t p = blockIdx.x; p < num_pieces; p += gridDim.x) {
    const PositionPiece& piece = pieces[p];
    if (piece.others == nullptr) continue;
    for (std::size_t i = threadIdx.x; i <= piece.num_kept; i += blockDim.x) {
      const std::size_t from = i == 0 ? piece.begin : std::size_t{piece.kept[i - 1]} + 1;
      const std::size_t to = i == piece.num_kept ? piece.end : piece.kept[i];
      if (from < piece.begin + i || to < from || to > piece.begin + i + piece.count) {
        disorder[p] = 1;
        continue;
      }
      for (std::size_t j = from; j < to; ++j) piece.others[j - piece.begin - i] = static_cast<std::uint32_t>(j);
    }
  }
}

// The last position of every piece, which Golomb's divisor depends on.
__global__ void find_last(const PositionPiece* pieces, std::size_t num_pieces, std::uint32_t* last) {
  for (std::size_t p = thread_index(); p < num_pieces; p += num_threads()) last[p] = pieces[p].index()[pieces[p].count - 1];
}

// One block per piece; the least sum over Rice's parameters by the first warp.
__global__ void add_gaps(const PositionPiece* pieces, std::size_t num_pieces, GapCosts* costs) {
  __shared__ WarpSums of_warp[kWarps];
  __shared__ std::uint64_t shifted[kWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (std::size_t p = blockIdx.x; p < num_pieces; p += gridDim.x) {
    const PositionPiece piece = pieces[p];
    WarpSums sums{};
    for (std::size_t from = warp * kGapsPerBlock; from < piece.count; from += kWarps * kGapsPerBlock) add_run_of_gaps(piece, from, sums);
    shifted[warp][lane] = sums.shifted;
    if (lane == 0) of_warp[warp] = sums;
    __syncthreads();
    if (warp == 0) {
      std::uint64_t all = 0;
      for (unsigned w = 0; w < kWarps; ++w) all += shifted[w][lane];
      const std::uint64_t least = warp_least(all + piece.count * (lane + 1));
      GapCosts cost{.rice = least + kRiceParameterBits, .blocks = 0, .exponents = 0, .zeros = 0, .long_words = 0, .ascending = 1};
      for (unsigned w = 0; w < kWarps; ++w) {
        cost.blocks += of_warp[w].blocks;
        cost.exponents += of_warp[w].exponents;
        cost.zeros += of_warp[w].zeros;
        cost.long_words += of_warp[w].long_words;
        if (of_warp[w].disorder != 0) cost.ascending = 0;
      }
      if (lane == 0) costs[p] = cost;
    }
    __syncthreads();
  }
}

// ---- the host's side ----

// What the piece's positions take, all codes compared.
[[nodiscard]] std::uint64_t bits_of_piece(const PositionPiece& piece, const GapCosts& sums) {
  const Segment segment{.begin = piece.begin, .end = piece.end, .rows = piece.end - piece.begin, .cols = 1};
  if (piece.num_kept == segment.size()) return gamma_bits(piece.num_kept + 1);
  PositionCosts costs;
  costs.of(PositionCode::rice) = sums.rice;
  costs.of(PositionCode::gamma) = 2 * sums.exponents + piece.count;
  if (piece.count >= kBlocksFrom) costs.of(PositionCode::blocks) = sums.blocks;
  if (piece.divisor != 0) {
    costs.of(PositionCode::golomb) = gamma_bits(piece.divisor) + sums.zeros + sums.long_words +
                                     piece.count * static_cast<std::uint64_t>(std::bit_width(piece.divisor - 1));
  }
  add_plain_costs(piece.count, segment, costs);
  return shortest_plan(piece.num_kept, costs).bits;
}

template <class U>
[[nodiscard]] std::vector<U> download(const Exec& exec, const U* from, std::size_t count) {
  std::vector<U> there(count);
  ::fl::copy_bytes(there.data(), Device::cpu, from, Device::cuda, count * sizeof(U), exec.stream);
  return there;
}

template <class U>
[[nodiscard]] bool is_reachable(const Buffer<U>& buffer) {
  return !buffer.empty() && buffer.device() != Device::cpu;
}

// A magnitude from its bits; infinite for NaN too.
template <class T>
[[nodiscard]] double magnitude_of(std::uint64_t bits) {
  using Bits = decltype(small_float_detail::bits(T(0)));
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return bits < small_float_detail::bits(kInfinity) ? static_cast<double>(small_float_detail::from_bits(static_cast<Bits>(bits)))
                                                    : std::numeric_limits<double>::infinity();
}

template <class T>
class Counter final : public DeviceTally<T> {
 public:
  Counter() {
    exec_.device = Device::cuda;
    exec_.stream = stream_.get();
    exec_.workspace = &workspace_;
  }

  void count(std::span<Channel<T>> messages) override {
    for (Channel<T>& message : messages) message.tally = {};
    find_magnitudes(messages);
    count_levels(messages);
    count_positions(messages);
  }

 private:
  // Where the tables of one message begin; its tally, once they are here.
  struct Counted {
    std::size_t message, first, size;
  };

  // Three slots of a message: its values, its scales, its excluded values.
  void find_magnitudes(std::span<Channel<T>> messages) {
    constexpr std::size_t kKinds = 3;
    std::vector<NumberPiece<T>> pieces;
    std::vector<std::size_t> counted;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const Payload<T>& message = *messages[m].payload;
      const Buffer<T>* const numbers[kKinds] = {&message.value, &message.scale, &message.excluded};
      const bool there = std::ranges::all_of(numbers, [](const Buffer<T>* n) { return n->empty() || is_reachable(*n); });
      if (message.silent || message.rest != nullptr || !there) continue;
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        for (std::size_t first = 0; first < numbers[kind]->size(); first += kNumbersPerPiece)
          pieces.push_back(
              {numbers[kind]->data() + first, std::min(kNumbersPerPiece, numbers[kind]->size() - first), counted.size() * kKinds + kind});
      counted.push_back(m);
    }
    if (pieces.empty()) return;
    Workspace::Frame frame(workspace_);
    auto* largest = frame.take<unsigned long long>(counted.size() * kKinds);
    FL_CUDA_CHECK(cudaMemsetAsync(largest, 0, counted.size() * kKinds * sizeof *largest, fl::cuda::stream_of(exec_)));
    Launch(exec_, "find_largest", pieces.size())(find_largest<T>, upload(exec_, std::span<const NumberPiece<T>>(pieces), frame),
                                                 pieces.size(), largest);
    const std::vector<unsigned long long> found = download(exec_, largest, counted.size() * kKinds);
    for (std::size_t i = 0; i < counted.size(); ++i) {
      Tally& tally = messages[counted[i]].tally;
      tally.has_magnitudes = true;
      tally.largest_value = magnitude_of<T>(found[i * kKinds]);
      tally.largest_scale = magnitude_of<T>(found[i * kKinds + 1]);
      tally.largest_excluded = magnitude_of<T>(found[i * kKinds + 2]);
    }
  }

  void count_levels(std::span<Channel<T>> messages) {
    std::vector<LevelPiece> pieces;
    std::vector<Counted> counted;
    std::size_t total = 0;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const Payload<T>& message = *messages[m].payload;
      const LevelFormat& format = message.level_format;
      const bool whole = message.level_bytes.size() == message.num_sent * static_cast<std::size_t>(message.level_width);
      if (message.silent || message.values != WireValue::levels || message.rest != nullptr || !whole) continue;
      if (!is_reachable(message.level_bytes) || !check_format(format).empty() || num_levels(format) > kMostDirect) continue;
      const auto size = static_cast<std::uint32_t>(num_levels(format));
      for (std::size_t first = 0; first < message.num_sent; first += kLevelsPerPiece)
        pieces.push_back({message.level_bytes.data(), message.level_width, format.min_level, size, first,
                          std::min(kLevelsPerPiece, message.num_sent - first), total});
      counted.push_back({m, total, size});
      total += size + 1;
    }
    if (pieces.empty()) return;
    Workspace::Frame frame(workspace_);
    auto* tables = frame.take<std::uint32_t>(total);
    FL_CUDA_CHECK(cudaMemsetAsync(tables, 0, total * sizeof *tables, fl::cuda::stream_of(exec_)));
    Launch(exec_, "count_levels", pieces.size())(count_pieces, upload(exec_, std::span<const LevelPiece>(pieces), frame), pieces.size(),
                                                 tables);
    levels_ = download(exec_, tables, total);
    for (const Counted& one : counted)
      if (levels_[one.first + one.size] == 0) messages[one.message].tally.levels = std::span(levels_).subspan(one.first, one.size);
  }

  // The pieces of a message, or nothing where it is the host's.
  [[nodiscard]] static bool add_pieces(const Payload<T>& message, const Scope& scope, std::vector<PositionPiece>& pieces) {
    if (message.silent || message.positions != Positions::list || message.rest != nullptr || !is_reachable(message.index)) return false;
    Segment plain;
    const auto segments = message_segments(scope, has_own_shape(message, scope), message.length, plain);
    if (message.counts.size() != segments.size() || message.index.size() != message.num_sent) return false;
    const std::size_t before = pieces.size();
    std::size_t sent = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::size_t count = message.counts[s], size = segments[s].size();
      if (count > size || segments[s].end > 0xffffffffULL || sent + count > message.num_sent) {
        pieces.resize(before);
        return false;
      }
      if (count > 0) {
        const std::size_t described = count < size ? std::min(count, size - count) : count;
        pieces.push_back({message.index.data() + sent, count, segments[s].begin, segments[s].end, described, nullptr, 0});
      }
      sent += count;
    }
    if (sent == message.num_sent) return true;
    pieces.resize(before);
    return false;
  }

  void count_positions(std::span<Channel<T>> messages) {
    std::vector<PositionPiece> pieces;
    std::vector<Counted> counted;  // pieces of each message
    std::size_t total = 0;         // segments
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const std::size_t first = pieces.size();
      if (!add_pieces(*messages[m].payload, *messages[m].scope, pieces)) continue;
      counted.push_back({m, first, pieces.size() - first});
      total += messages[m].payload->counts.size();
    }
    if (pieces.empty()) return;
    const std::vector<GapCosts> costs = costs_of(pieces);
    positions_.clear();
    positions_.reserve(total);  // tallies point into it
    for (const Counted& one : counted) add_tally(messages[one.message], pieces.data() + one.first, costs.data() + one.first);
  }

  // Appends the bits of the message's segments, unless a piece is out of order.
  void add_tally(Channel<T>& message, const PositionPiece* piece, const GapCosts* costs) {
    const std::size_t first = positions_.size();
    for (const std::uint32_t count : message.payload->counts) {
      if (count == 0) {
        positions_.push_back(gamma_bits(1));
        continue;
      }
      if (costs->ascending == 0) {
        positions_.resize(first);
        return;
      }
      positions_.push_back(bits_of_piece(*piece++, *costs++));
    }
    message.tally.positions = std::span(positions_).subspan(first);
  }

  [[nodiscard]] std::vector<GapCosts> costs_of(std::vector<PositionPiece>& pieces) {
    Workspace::Frame frame(workspace_);
    const std::vector<std::uint32_t> disorder = list_other_positions(pieces, frame);
    auto* last = frame.take<std::uint32_t>(pieces.size());
    Launch(exec_, "find_last", blocks_for(pieces.size()))(find_last, upload(exec_, std::span<const PositionPiece>(pieces), frame),
                                                          pieces.size(), last);
    const std::vector<std::uint32_t> ends = download(exec_, last, pieces.size());
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      PositionPiece& piece = pieces[p];
      if (piece.count >= kGolombFrom && ends[p] >= piece.begin + piece.count - 1)
        piece.divisor = golomb_divisor(ends[p] - piece.begin - (piece.count - 1), piece.count);
    }
    auto* costs = frame.take<GapCosts>(pieces.size());
    Launch(exec_, "add_gaps", pieces.size())(add_gaps, upload(exec_, std::span<const PositionPiece>(pieces), frame), pieces.size(), costs);
    std::vector<GapCosts> sums = download(exec_, costs, pieces.size());
    for (std::size_t p = 0; p < disorder.size(); ++p)
      if (disorder[p] != 0) sums[p].ascending = 0;
    return sums;
  }

  // Lists the positions that are not kept where these are described. Which pieces were out of order; empty where there is nothing to list.
  [[nodiscard]] std::vector<std::uint32_t> list_other_positions(std::vector<PositionPiece>& pieces, Workspace::Frame& frame) {
    std::size_t total = 0;
    for (const PositionPiece& piece : pieces) total += piece.count < piece.num_kept ? piece.count : 0;
    if (total == 0) return {};
    auto* others = frame.take<std::uint32_t>(total);
    auto* disorder = frame.take<std::uint32_t>(pieces.size());
    FL_CUDA_CHECK(cudaMemsetAsync(disorder, 0, pieces.size() * sizeof *disorder, fl::cuda::stream_of(exec_)));
    for (PositionPiece& piece : pieces) {
      if (piece.count == piece.num_kept) continue;
      piece.others = others;
      others += piece.count;
    }
    Launch(exec_, "list_others", pieces.size())(list_others, upload(exec_, std::span<const PositionPiece>(pieces), frame), pieces.size(),
                                                disorder);
    return download(exec_, disorder, pieces.size());
  }

  DeviceStream stream_{Device::cuda};
  Workspace workspace_{Device::cuda};
  Exec exec_;
  std::vector<std::uint32_t> levels_;     // tables of all messages
  std::vector<std::uint64_t> positions_;  // bits of all segments of all messages
};

}  // namespace

template <class T>
std::unique_ptr<DeviceTally<T>> make_tally() {
  return std::make_unique<Counter<T>>();
}
template std::unique_ptr<DeviceTally<float>> make_tally();
template std::unique_ptr<DeviceTally<double>> make_tally();

}  // namespace fl::codec::cuda
