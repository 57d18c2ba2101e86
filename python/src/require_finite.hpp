// Refuses vectors that are not finite, with the place of the first such number.
#pragma once

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
  if (is_finite(vector.data(), vector.size())) return;
  std::size_t first = 0;
  while (std::isfinite(vector[first])) ++first;
  throw Error(std::string(what) + " is not finite at place " + std::to_string(first));
}

}  // namespace fl::python
