// Sums of many numbers in double, in as many parts as a vector's loop needs; their number does not depend on the machine's vectors.
#pragma once

#include <cstddef>

namespace fl::nn {

inline constexpr std::size_t kParts = 32;

// Returns the sum of f(j) over j < n: part l adds up the terms j with j % kParts == l in order, and halves of the parts are added until one
// is left.
template <class F>
[[gnu::always_inline]] inline double sum_in_double(std::size_t n, const F& f) {
  double part[kParts] = {};
  std::size_t j = 0;
  for (; j + kParts <= n; j += kParts)
    for (std::size_t l = 0; l < kParts; ++l) part[l] += static_cast<double>(f(j + l));
  for (std::size_t l = 0; j + l < n; ++l) part[l] += static_cast<double>(f(j + l));
  for (std::size_t half = kParts / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

}  // namespace fl::nn
