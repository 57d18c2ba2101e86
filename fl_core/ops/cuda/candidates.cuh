// The largest entries of large segments after one pass over memory.
//
//   1. a sample of a segment gives a bound that at least k of its entries most likely reach, and not many more
//   2. one pass evaluates the input, leaves p in the state row and lists the entries that reach the bound: the candidates, tile by tile
//   3. among these the k-th key is found by radix selection in shared memory, and each tile learns how many of its candidates are kept
//   4. the message is written from the lists: the vector is not read again (chosen.cuh)
// The pass takes 4 bytes per element and term, 4 for the state row and 6 for each candidate, usually 1.5 to 2.5 k of them (float).
// Where fewer than k entries reach the bound, or more than the list has room for, nothing is chosen and Found says so; the caller
// then selects in the whole segment. Neither the sample nor the order of the tiles in the list changes what is chosen.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {

// The outcome of listing candidates in one segment of one client.
enum class Way : std::uint32_t {
  not_listed,  // is small, or k is 0 or not small: the input is not evaluated yet
  candidates,  // is chosen from the list
  and_zeros,   // all that is not zero is listed, and it is fewer than k: zeros are sent too
  too_few,     // fewer than k reach the bound
  too_many,    // more reach the bound than the list has room for
};
struct Found {
  std::uint32_t num_candidates = 0;  // that reach the bound
  Way way = Way::not_listed;
};

// Segments of up to this many elements are selected in as a whole: what they read again lies in a cache.
inline constexpr std::size_t kMostUnlisted = 16384;
[[nodiscard]] inline bool lists_candidates(std::size_t size, std::size_t k) { return size > kMostUnlisted && k > 0 && k <= size / 8; }

// The places of a segment that are looked at: num_runs runs of kSampleRun neighbours, one in every `step` elements, where in them differs
// from run to run so that no period of the segment meets it.
inline constexpr unsigned kSampleRun = 16;
struct Sample {
  unsigned num_runs, step;
  unsigned rank;       // of the k-th key, as expected in the sample
  unsigned most_rank;  // that the bound may have there
  unsigned capacity;   // candidates that there is room for
  // Where a run begins, from the segment's first element.
  [[nodiscard]] FL_HD std::size_t place(unsigned run) const {
    constexpr std::uint32_t kGolden = 2654435769u, kAligned = ~7u;  // 2^32 over the golden ratio; multiples of 32 bytes
    const std::uint64_t within = std::uint64_t{run * kGolden} * (step - kSampleRun + 1) >> 32;
    return std::size_t{run} * step + (static_cast<std::uint32_t>(within) & kAligned);
  }
};
[[nodiscard]] FL_API Sample sample_of(std::size_t size, std::size_t k);

// |p| as an integer (radix_select.cuh).
template <class T>
using MagnitudeKey = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// The choice among the candidates of listed segments, on the device. A tile's candidates lie behind each other, ascending; the tile keeps
// those above the k-th key and the first `quota` of those equal to it.
template <class T>
struct Chosen {
  const Found* found = nullptr;                                              // [K,S], or null where nothing is listed
  const MagnitudeKey<T>* kth = nullptr;                                      // [K,S]
  std::size_t num_slots = 0;                                                 // of a client's list
  const T* value = nullptr;                                                  // [K,num_slots] p
  const std::uint16_t* place = nullptr;                                      // [K,num_slots], from the tile's first element
  const std::uint32_t *slot = nullptr, *listed = nullptr, *quota = nullptr;  // [K,num_tiles]; slot: the first one, of the client's
  std::uint32_t* kept = nullptr;  // [K,num_tiles], entries that are kept; of all tiles where found is null
  bool lists_few = false;         // tiles of few have a list in the room of their marks (marks.cuh)
};

// Lists candidates of the large segments and chooses among them. k: [S] on the host. For every segment that is listed the state row holds
// p. What is returned lies in the frame.
template <class T>
[[nodiscard]] FL_API Chosen<T> choose_candidates(const Exec& exec, const Affine<T>& input, const Scope& scope, const ScopePlan& plan,
                                                 std::span<const std::uint32_t> k, TieRule ties, const StateWrite<T>& state,
                                                 Workspace::Frame& frame);
extern template Chosen<float> choose_candidates<float>(const Exec&, const Affine<float>&, const Scope&, const ScopePlan&,
                                                       std::span<const std::uint32_t>, TieRule, const StateWrite<float>&,
                                                       Workspace::Frame&);
extern template Chosen<double> choose_candidates<double>(const Exec&, const Affine<double>&, const Scope&, const ScopePlan&,
                                                         std::span<const std::uint32_t>, TieRule, const StateWrite<double>&,
                                                         Workspace::Frame&);

}  // namespace fl::cuda
