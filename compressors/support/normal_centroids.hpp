// The 2^b levels with the smallest mean squared error for normal numbers of variance 1 (Lloyd-Max). They are symmetric, so only the
// positive ones are stored.
//
//   boundary_i = (c_i + c_(i+1)) / 2,   c_i = E[z | boundary_(i-1) <= z < boundary_i] = (phi(l) - phi(u)) / (Phi(u) - Phi(l))
// The iteration starts from the levels of the companding law, the quantiles of N(0, 3). It converges to rounding for b <= 4 and to 1e-4 of
// the error for b = 8. J. Max, "Quantizing for minimum distortion", 1960.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace fl {

struct NormalCentroids {
  std::int32_t count = 0;     // 2^(b-1)
  double centroid[128] = {};  // ascending
  double boundary[128] = {};  // boundary[i] lies between centroid i and i+1, for i < count-1
};

namespace detail {

[[nodiscard]] inline NormalCentroids compute_normal_centroids(int bits) {
  const auto density = [](double z) { return std::exp(-z * z / 2) * 0.39894228040143268; };
  const auto above = [](double z) { return std::erfc(z * 0.70710678118654752) / 2; };
  NormalCentroids table;
  table.count = 1 << (bits - 1);
  for (std::int32_t i = 0; i < table.count; ++i) {  // finds the quantile by bisection: P(N(0,3) > c) = share
    const double share = 0.5 * (1 - (i + 0.5) / table.count);
    double low = 0, high = 20;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (above(middle / 1.7320508075688773) > share ? low : high) = middle;
    }
    table.centroid[i] = low;
  }
  constexpr int kSteps = 2000;
  for (int step = 0; step < kSteps; ++step) {
    for (std::int32_t i = 0; i + 1 < table.count; ++i) table.boundary[i] = (table.centroid[i] + table.centroid[i + 1]) / 2;
    double moved = 0;
    for (std::int32_t i = 0; i < table.count; ++i) {
      const double low = i == 0 ? 0 : table.boundary[i - 1];
      const bool is_last = i + 1 == table.count;
      const double mass = above(low) - (is_last ? 0 : above(table.boundary[i]));
      const double mean = (density(low) - (is_last ? 0 : density(table.boundary[i]))) / mass;
      moved = std::fmax(moved, std::fabs(mean - table.centroid[i]));
      table.centroid[i] = mean;
    }
    if (moved < 1e-13) break;
  }
  return table;
}

}  // namespace detail

// Returns the table for b = 1 .. 8. Each table is computed once; b = 8 takes a tenth of a second.
[[nodiscard]] inline const NormalCentroids& normal_centroids(int bits) {
  static std::array<NormalCentroids, 8> known;
  static std::array<std::once_flag, 8> is_known;
  const auto i = static_cast<std::size_t>(bits - 1);
  std::call_once(is_known[i], [&] { known[i] = detail::compute_normal_centroids(bits); });
  return known[i];
}

}  // namespace fl
