// Random subsets by Floyd's algorithm, on both devices: k of n elements take k draws. The draw for j selects j itself if the drawn number
// is already selected. J. Bentley and R. Floyd, "A sample of brilliance", Communications of the ACM 30, 1987.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The draws of one subset, in order. Draw i uses words 2i and 2i+1 of the stream.
class SubsetDraws {
 public:
  FL_HD explicit SubsetDraws(const RandomStream& stream) : stream_(stream) {}
  // Returns a uniform number in 0 .. bound-1; the bias of a probability is below 2^-32.
  FL_HD std::uint32_t below(std::uint64_t bound) {
    if (used_ == 4) {
      stream_.quad(quad_++, word_);
      used_ = 0;
    }
    const std::uint32_t word0 = used_ == 0 ? word_[0] : word_[2], word1 = used_ == 0 ? word_[1] : word_[3];  // in registers of a GPU
    used_ += 2;
    return below(word0, word1, bound);
  }
  // Returns number `i` of the draws alone.
  [[nodiscard]] static FL_HD std::uint32_t at(const RandomStream& stream, std::size_t i, std::uint64_t bound) {
    std::uint32_t word[4];
    stream.quad(static_cast<std::uint32_t>(i / 2), word);
    return i % 2 == 0 ? below(word[0], word[1], bound) : below(word[2], word[3], bound);
  }
  // Returns the number that two words make: floor(pair * bound / 2^64) in 64-bit steps; bound <= 2^32.
  [[nodiscard]] static FL_HD std::uint32_t below(std::uint32_t word0, std::uint32_t word1, std::uint64_t bound) {
    const std::uint64_t high = word0 * bound, low = word1 * bound;
    return static_cast<std::uint32_t>((high + (low >> 32)) >> 32);
  }

 private:
  RandomStream stream_;
  std::uint32_t quad_ = 0, word_[4] = {};
  int used_ = 4;
};

// Returns whether the complement is drawn instead, for subsets of more than half.
[[nodiscard]] FL_HD inline bool draws_the_others(std::size_t n, std::size_t k) { return k > n / 2; }

// Draws a subset, or its complement if the subset has more than half of the elements. Calls take(t), which marks t in 0 .. n-1 and returns
// whether t is new.
template <class Take>
FL_HD void draw_subset(const RandomStream& stream, std::size_t n, std::size_t k, const Take& take) {
  const std::size_t drawn = draws_the_others(n, k) ? n - k : k;
  SubsetDraws draws(stream);
  for (std::size_t j = n - drawn; j < n; ++j)
    if (!take(static_cast<std::size_t>(draws.below(j + 1)))) take(j);
}

}  // namespace fl
