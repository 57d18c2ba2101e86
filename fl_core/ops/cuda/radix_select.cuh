// The rank-th largest of a block's keys, and magnitudes as keys.
//
// A key is read 8 bits at a time, from the top: the block counts in shared memory how many keys have which digit, the digit that holds the
// rank-th is found, and the next pass counts only the keys that begin like it. A pass reads every key once; 32 bits take four of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/ops/cuda/scan.cuh"

namespace fl::cuda {

// |p| as an integer: ordered like the magnitude, NaN above infinity.
[[nodiscard]] __device__ inline std::uint32_t magnitude_key(float p) { return __float_as_uint(p) & 0x7FFFFFFFu; }
[[nodiscard]] __device__ inline std::uint64_t magnitude_key(double p) {
  return static_cast<std::uint64_t>(__double_as_longlong(p)) & 0x7FFFFFFFFFFFFFFFull;
}
[[nodiscard]] __device__ inline float magnitude_of(std::uint32_t key) { return __uint_as_float(key); }
[[nodiscard]] __device__ inline double magnitude_of(std::uint64_t key) { return __longlong_as_double(static_cast<long long>(key)); }
template <class T>
using Key = decltype(magnitude_key(T()));

inline constexpr int kDigitBits = 8;

// Which bits of a key are looked at: digits from the one at `top` down to the one at `bottom`, multiples of kDigitBits.
struct DigitRange {
  int top, bottom;
};
// The leading `count` digits of a key, or all of them.
template <class K>
[[nodiscard]] FL_HD constexpr DigitRange leading_digits(int count = static_cast<int>(sizeof(K))) {
  constexpr int kTop = static_cast<int>(8 * sizeof(K)) - kDigitBits;
  return {kTop, kTop - (count - 1) * kDigitBits};
}

// The shared memory of a block.
struct RadixRoom {
  static constexpr unsigned kDigits = 1u << kDigitBits, kCopies = 4;
  unsigned count[kCopies][kDigits];
  unsigned digit, rank, equal;
  unsigned warp_sum[kWarp];
};

// `equal` keys have these digits, and `rank` of them belong to the rank-th largest and what is above it. Bits below the digits are 0.
template <class K>
struct Selected {
  K key;
  unsigned rank, equal;
};

// The digit that holds the rank-th largest, and the rank inside it. One warp; lane l has the digits 8l .. 8l+7, descending.
__device__ inline void find_digit(RadixRoom& room, unsigned rank) {
  constexpr unsigned kOwn = RadixRoom::kDigits / kWarp;
  const unsigned lane = threadIdx.x % kWarp, first = (kWarp - 1 - lane) * kOwn;
  unsigned own = 0;
  for (unsigned d = 0; d < kOwn; ++d) own += room.count[0][first + d];
  const unsigned above = warp_inclusive_sum(own) - own;
  if (above >= rank || above + own < rank) return;
  unsigned left = rank - above, d = kOwn;
  while (room.count[0][first + d - 1] < left) left -= room.count[0][first + --d];
  room.digit = first + d - 1;
  room.rank = left;
  room.equal = room.count[0][first + d - 1];
}

// The rank-th largest of `size` keys, 1 <= rank <= size. All threads of the block; the room is free again when the call returns.
// key_at(i, is_first): key i, in the first pass or a later one. Every pass asks the same thread for it, so that what a thread leaves behind
// in the first one it finds in the others.
// kBatch: keys that a thread fetches before it counts them, where registers allow for more than one.
template <class K, unsigned kBatch, class KeyAt>
__device__ Selected<K> select_key(std::size_t size, unsigned rank, DigitRange digits, RadixRoom& room, const KeyAt& key_at) {
  unsigned* count = room.count[threadIdx.x / kWarp % RadixRoom::kCopies];
  K prefix = 0, known = 0;
  for (int shift = digits.top; shift >= digits.bottom; shift -= kDigitBits) {
    for (unsigned i = threadIdx.x; i < RadixRoom::kCopies * RadixRoom::kDigits; i += blockDim.x)
      room.count[i / RadixRoom::kDigits][i % RadixRoom::kDigits] = 0;
    __syncthreads();
    for (std::size_t base = threadIdx.x; base < size; base += kBatch * blockDim.x) {
      K key[kBatch];
      FL_UNROLL
      for (unsigned u = 0; u < kBatch; ++u) key[u] = base + u * blockDim.x < size ? key_at(base + u * blockDim.x, known == 0) : K(0);
      FL_UNROLL
      for (unsigned u = 0; u < kBatch; ++u)
        if (base + u * blockDim.x < size && (key[u] & known) == prefix) atomicAdd(&count[key[u] >> shift & (RadixRoom::kDigits - 1)], 1u);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < RadixRoom::kDigits; i += blockDim.x)
      for (unsigned c = 1; c < RadixRoom::kCopies; ++c) room.count[0][i] += room.count[c][i];
    __syncthreads();
    if (threadIdx.x < kWarp) find_digit(room, rank);
    __syncthreads();
    prefix |= static_cast<K>(room.digit) << shift;
    known |= static_cast<K>(RadixRoom::kDigits - 1) << shift;
    rank = room.rank;
  }
  return {prefix, rank, room.equal};
}

}  // namespace fl::cuda
