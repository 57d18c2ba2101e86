#include "clients/nn/losses.hpp"

#include <algorithm>
#include <cmath>

#include "clients/nn/elementwise.hpp"

namespace fl::nn {

template <class T>
double softmax_cross_entropy(std::size_t R, std::size_t C, const T* z, const std::int32_t* label, double scale, T* d_z, T* room,
                             std::uint64_t* correct) {
  double total = 0;
  for (std::size_t r = 0; r < R; ++r) {
    const T* row = z + r * C;
    const auto right = static_cast<std::size_t>(label[r]);
    const T* largest = std::max_element(row, row + C);
    T* powers = d_z == nullptr ? room : d_z + r * C;
    for (std::size_t c = 0; c < C; ++c) powers[c] = row[c] - *largest;
    exp_of(C, powers, powers);
    double sum = 0;
    for (std::size_t c = 0; c < C; ++c) sum += static_cast<double>(powers[c]);
    if (d_z != nullptr) {
      const T factor = static_cast<T>(scale / sum);
      for (std::size_t c = 0; c < C; ++c) powers[c] *= factor;
      powers[right] -= static_cast<T>(scale);
    }
    total += std::log(sum) + static_cast<double>(*largest - row[right]);
    if (correct != nullptr && largest == row + right) ++*correct;
  }
  return total;
}

template <class T>
double squared_error(std::size_t R, std::size_t C, const T* z, const double* target, double scale, T* d_z) {
  double total = 0;
  const double share = 1 / static_cast<double>(C);
  const auto off = [=](std::size_t r, std::size_t c) { return static_cast<double>(z[r * C + c]) - target[r]; };
  // The sum has a loop of its own, so that it is rounded alike with and without the derivative.
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t c = 0; c < C; ++c) total += share * off(r, c) * off(r, c);
  for (std::size_t r = 0; d_z != nullptr && r < R; ++r)
    for (std::size_t c = 0; c < C; ++c) d_z[r * C + c] = static_cast<T>(scale * share * 2 * off(r, c));
  return total;
}

template <class T>
double logistic(std::size_t R, const T* z, const double* target, double scale, T* d_z, std::uint64_t* correct) {
  double total = 0;
  for (std::size_t r = 0; r < R; ++r) {
    const auto margin = static_cast<double>(z[r]);
    total += std::log1p(std::exp(-std::fabs(margin))) + std::max(margin, 0.0) - target[r] * margin;
    if (d_z != nullptr) d_z[r] = static_cast<T>(scale * (1 / (1 + std::exp(-margin)) - target[r]));
    if (correct != nullptr && (margin > 0) == (target[r] > 0.5)) ++*correct;
  }
  return total;
}

template double softmax_cross_entropy(std::size_t, std::size_t, const float*, const std::int32_t*, double, float*, float*, std::uint64_t*);
template double softmax_cross_entropy(std::size_t, std::size_t, const double*, const std::int32_t*, double, double*, double*,
                                      std::uint64_t*);
template double squared_error(std::size_t, std::size_t, const float*, const double*, double, float*);
template double squared_error(std::size_t, std::size_t, const double*, const double*, double, double*);
template double logistic(std::size_t, const float*, const double*, double, float*, std::uint64_t*);
template double logistic(std::size_t, const double*, const double*, double, double*, std::uint64_t*);

}  // namespace fl::nn
