// The largest entries of large segments after one pass over memory.
//
//   1. a sample of a segment gives a bound that at least k of its entries most likely reach, and not many more
//   2. one pass evaluates the input, leaves p in the state row and lists the entries that reach the bound: the candidates
//   3. among these the k-th key is found by radix selection, the last of equal ones by its position, and what is kept is marked
// The pass takes 4 bytes per element and term, 4 for the state row and 8 for each candidate, usually 1.5 to 2.5 k of them (float).
// Where fewer than k entries reach the bound, or more than the list has room for, nothing is marked and Found says so; whoever calls
// selects in the whole segment then. Neither the sample nor the order of the list has a say in what is marked.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/cuda/plan.cuh"

namespace fl::cuda {

// What became of one segment of one client.
enum class Way : std::uint32_t {
  not_listed,  // is small, or k is 0 or not small: the input is not evaluated yet
  candidates,  // is marked
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

// Marks the largest entries of the segments of which it lists candidates, and leaves the marks of others as they are. k: [S] on the host;
// mark: [K, num_tiles, kMarkWords] (marks.cuh). Returns [K,S] on the device, or null where nothing is listed. For every segment that is
// listed the state row holds p.
template <class T>
[[nodiscard]] FL_API const Found* mark_candidates(const Exec& exec, const Affine<T>& input, const Scope& scope, const ScopePlan& plan,
                                                  std::span<const std::uint32_t> k, TieRule ties, const StateWrite<T>& state,
                                                  std::uint32_t* mark, Workspace::Frame& frame);
extern template const Found* mark_candidates<float>(const Exec&, const Affine<float>&, const Scope&, const ScopePlan&,
                                                    std::span<const std::uint32_t>, TieRule, const StateWrite<float>&, std::uint32_t*,
                                                    Workspace::Frame&);
extern template const Found* mark_candidates<double>(const Exec&, const Affine<double>&, const Scope&, const ScopePlan&,
                                                     std::span<const std::uint32_t>, TieRule, const StateWrite<double>&, std::uint32_t*,
                                                     Workspace::Frame&);

}  // namespace fl::cuda
