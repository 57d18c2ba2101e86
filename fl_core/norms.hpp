// Sums of squares in one fixed order: eight partial sums in double, joined pairwise. For measures, never for decisions of operators.
#pragma once

#include <cstddef>

namespace fl {

// sum_j (factor * v_j)^2 over v [n], each product rounded in T first.
template <class T>
[[nodiscard]] inline double sum_of_squares(const T* v, std::size_t n, T factor = T(1)) {
  double lane[8] = {};
  std::size_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (std::size_t l = 0; l < 8; ++l) {
      const auto x = static_cast<double>(factor * v[j + l]);
      lane[l] += x * x;
    }
  for (; j < n; ++j) {
    const auto x = static_cast<double>(factor * v[j]);
    lane[j % 8] += x * x;
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

}  // namespace fl
