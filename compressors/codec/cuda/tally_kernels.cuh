// Kernels that count messages in GPU memory: magnitudes, levels, and the gaps between positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/message/small_float.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::codec::cuda {

using fl::cuda::kAllLanes;
using fl::cuda::kBlockThreads;
using fl::cuda::kWarp;
using fl::cuda::num_threads;
using fl::cuda::thread_index;

constexpr unsigned kWarps = kBlockThreads / kWarp;
constexpr unsigned kGapsPerLane = kGapsPerBlock / kWarp;
static_assert(kLargestRiceParameter == kWarp - 1, "a lane for every parameter");

// A range of one message's levels. Counts go to table[0 .. num_levels]; the last entry counts levels outside the format.
struct LevelPiece {
  const std::byte* levels;
  LevelWidth width;
  std::int32_t min_level;
  std::uint32_t num_levels;
  std::size_t first, count;
  std::size_t table;  // start within the array of all tables
};

// The positions that describe one segment: the kept ones, or the others if they are fewer. GapCosts holds the sums over their gaps.
struct PositionPiece {
  const std::uint32_t* kept;  // [num_kept]
  std::size_t num_kept, begin, end;
  std::size_t count;      // number of positions described
  std::uint32_t* others;  // [count] positions that are not kept; null if the kept ones are described
  std::uint32_t divisor;  // of Golomb's code, 0 = not tried
  [[nodiscard]] FL_HD const std::uint32_t* index() const { return others != nullptr ? others : kept; }
};
struct GapCosts {
  std::uint64_t rice, blocks;       // including their parameters
  std::uint64_t exponents;          // sum floor(log2(g + 1))
  std::uint32_t zeros, long_words;  // Golomb: sum g / d, and the number of remainders of full width
  std::uint32_t ascending;          // positions ascend and lie inside the segment
};

// A range of one message's values, scales or excluded values. The largest magnitude goes to largest[slot], as the bits of a T.
template <class T>
struct NumberPiece {
  const T* numbers;
  std::size_t count, slot;
};

// ---- magnitudes ----

[[nodiscard]] inline __device__ std::uint64_t warp_most(std::uint64_t x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const auto other = static_cast<std::uint64_t>(__shfl_xor_sync(kAllLanes, static_cast<unsigned long long>(x), width));
    x = other > x ? other : x;
  }
  return x;
}

// Finds the largest magnitude of each slot. The bits of magnitudes have the same order as the magnitudes, with infinity and NaN above all
// numbers. `largest` starts as zeros.
template <class T>
static __global__ void find_largest(const NumberPiece<T>* pieces, std::size_t num_pieces, unsigned long long* largest) {
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

// Returns the number of columns of a table. Small tables have one column per lane, so that lanes with the same level do not collide.
[[nodiscard]] inline __device__ unsigned columns_of(std::uint32_t num_levels) {
  return (num_levels + 1) * kWarp <= kMostDirect ? kWarp : 1;
}

// Calls visit(level) for every level of a piece. The threads of a block read sixteen bytes each at a time.
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

// Counts formats with two levels, 0 and 1, in registers. Other levels are detected but not counted; the host then counts the message.
inline __device__ void count_bits(const LevelPiece& piece, std::uint32_t* table) {
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

static __global__ void count_pieces(const LevelPiece* pieces, std::size_t num_pieces, std::uint32_t* tables) {
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

[[nodiscard]] inline __device__ unsigned floor_log2(std::uint32_t x) {
  for (unsigned width = 1; width < 32; width *= 2) x |= x >> width;
  return x == 0 ? 0U : static_cast<unsigned>(__popc(x)) - 1;
}

[[nodiscard]] inline __device__ std::uint64_t warp_least(std::uint64_t x) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const auto other = static_cast<std::uint64_t>(__shfl_xor_sync(kAllLanes, static_cast<unsigned long long>(x), width));
    x = other < x ? other : x;
  }
  return x;
}

// The sums of one warp. Lane k holds the sum of g >> k.
struct WarpSums {
  std::uint64_t shifted, exponents, blocks;
  std::uint32_t zeros, long_words, disorder;
};

// Adds the gaps from .. from+127 of a piece, four per lane.
inline __device__ void add_run_of_gaps(const PositionPiece& piece, std::size_t from, WarpSums& sums) {
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

// Fills `others`. i kept positions lie below kept position i, so the positions before it that are not kept know their places. disorder:
// [pieces], starts as zeros
static __global__ void list_others(const PositionPiece* pieces, std::size_t num_pieces, std::uint32_t* disorder) {
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

// Writes the last position of every piece, on which Golomb's divisor depends.
static __global__ void find_last(const PositionPiece* pieces, std::size_t num_pieces, std::uint32_t* last) {
  for (std::size_t p = thread_index(); p < num_pieces; p += num_threads()) last[p] = pieces[p].index()[pieces[p].count - 1];
}

// Adds the gaps with one block per piece. The first warp finds the least sum over Rice's parameters.
static __global__ void add_gaps(const PositionPiece* pieces, std::size_t num_pieces, GapCosts* costs) {
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

}  // namespace fl::codec::cuda
