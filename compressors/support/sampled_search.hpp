// The thresholds that dgc_sampled searches for: they are estimated from a sample and then corrected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fl {

// Parameters of the threshold search in every segment.
struct SampledSearch {
  std::vector<double> wanted;  // [S] number of entries to send
  double sample, tolerance;
  std::int64_t rounds;
};
[[nodiscard]] inline std::size_t sample_size(const SampledSearch& search, std::size_t n) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(search.sample * static_cast<double>(n)));
}
// Returns the rank of the first threshold among the sample's magnitudes, counted from the largest one.
[[nodiscard]] inline std::size_t sample_rank(const SampledSearch& search, std::size_t s, std::size_t size) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(search.sample * search.wanted[s]), 1, size);
}

}  // namespace fl
