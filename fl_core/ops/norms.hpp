// Sums of squares in one fixed order: eight partial sums in double, joined pairwise. They serve measures, never decisions of operators.
// is_finite tests a vector.
#pragma once

#include <cstddef>

namespace fl {

// Returns sum_j (factor * v_j)^2 over v [n], with each product first rounded in T.
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

// Returns whether no entry of v [n] is NaN or infinite.
template <class T>
[[nodiscard]] inline bool is_finite(const T* v, std::size_t n) {
  constexpr std::size_t kLanes = 64 / sizeof(T);
  T lane[kLanes] = {};  // sums of zeros; NaN if any entry times zero is NaN
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] += v[j + l] * T(0);
  for (; j < n; ++j) lane[0] += v[j] * T(0);
  T sum = 0;
  for (const T zero : lane) sum += zero;
  return sum == T(0);
}

}  // namespace fl
