// The number of entries that a sparsifier keeps: k, or a ratio of each segment.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/message/layer_table.hpp"

namespace fl {

struct Sparsity {
  std::int64_t k = 0;   // entries per segment; 0 = use the ratio
  double ratio = 0.01;  // fraction of each segment, at least one entry
};

inline void describe_sparsity(Schema& s, Sparsity& o) {
  s.field("k", o.k, "entries kept in each segment; without it the ratio decides").at_least(1).at_most(4294967295.0);
  s.field("ratio", o.ratio, "fraction kept: max(1, floor(ratio * size)) entries of each segment").above(0).at_most(1);
}

inline void validate_sparsity(const Sparsity& o, Problems& problems) {
  if (o.k < 0) problems.push_back({"k", "must be at least 1, is " + std::to_string(o.k)});
  if (!(o.ratio > 0 && o.ratio <= 1)) problems.push_back({"ratio", "must be above 0 and at most 1, is " + std::to_string(o.ratio)});
  if (o.k > 0 && o.ratio != Sparsity{}.ratio) problems.push_back({"k", "k and ratio are both given; keep one of them"});
}

// Returns the number of entries kept in a segment of n elements.
[[nodiscard]] inline std::uint32_t kept_entries(const Sparsity& o, std::size_t n) {
  if (o.k > 0) return static_cast<std::uint32_t>(std::min<std::size_t>(static_cast<std::size_t>(o.k), n));
  return static_cast<std::uint32_t>(std::max(1.0, std::floor(o.ratio * static_cast<double>(n))));
}

inline void check_sparsity(const std::string& name, const Sparsity& o, const Scope& scope) {
  for (const Segment& segment : scope.segments)
    if (o.k > 0 && static_cast<std::size_t>(o.k) > segment.size())
      throw key_error("k", name + ": k = " + std::to_string(o.k) + " is more than the " + std::to_string(segment.size()) +
                               " parameters of the segment that begins at parameter " + std::to_string(segment.begin) +
                               "; lower k, give a ratio instead, or use scope = \"model\"");
}

// Returns min over the segments of k_l / size_l, the contraction delta of an operator that keeps k_l entries.
[[nodiscard]] inline double kept_fraction(const Sparsity& o, const Scope& scope) {
  double fraction = 1;
  for (const Segment& segment : scope.segments)
    fraction = std::min(fraction, kept_entries(o, segment.size()) / static_cast<double>(segment.size()));
  return fraction;
}

// Returns ceil(log2 P), the bits of an index as papers count them.
[[nodiscard]] inline int published_index_bits(std::size_t P) { return P > 1 ? static_cast<int>(std::bit_width(P - 1)) : 0; }

// A number for every segment [S]. Up to 64 segments need no heap, so that compressing a small model allocates nothing.
template <class U>
class PerSegment {
 public:
  template <class F>
  PerSegment(const Scope& scope, F f) : size_(scope.segments.size()) {
    if (size_ > few_.size()) many_.resize(size_);
    U* value = size_ > few_.size() ? many_.data() : few_.data();
    for (std::size_t s = 0; s < size_; ++s) value[s] = f(scope.segments[s].size());
  }
  [[nodiscard]] std::span<const U> span() const { return {size_ > few_.size() ? many_.data() : few_.data(), size_}; }

 private:
  std::size_t size_;
  std::array<U, 64> few_;
  std::vector<U> many_;
};

[[nodiscard]] inline PerSegment<std::uint32_t> kept_per_segment(const Sparsity& o, const Scope& scope) {
  return {scope, [&o](std::size_t n) { return kept_entries(o, n); }};
}

}  // namespace fl
