// Refuses vectors that are not finite, with the place of the first such number.
//
// The vector is read from its end in pieces of some megabytes, so that its beginning is in the cache when an operator reads it next.
// Smaller pieces take longer, because the processor foresees reads only in ascending order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include "fl_core/config/error.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl::python {

// Throws Error for a NaN or an infinity.
template <class T>
void require_finite(std::span<const T> vector, const char* what) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  bool all = true;
  for (std::size_t end = vector.size(); all && end > 0;) {
    const std::size_t begin = end - std::min(kPiece, end);
    all = is_finite(vector.data() + begin, end - begin);
    end = begin;
  }
  if (all) return;
  std::size_t first = 0;
  while (first < vector.size() && std::isfinite(vector[first])) ++first;
  if (first == vector.size()) throw Error(std::string(what) + " was not finite, and another thread has written to it since");
  throw Error(std::string(what) + " is not finite at place " + std::to_string(first));
}

}  // namespace fl::python
