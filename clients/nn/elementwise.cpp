#include "clients/nn/elementwise.hpp"

#include <Eigen/Core>
#include <algorithm>

namespace fl::nn {

namespace {

// Pieces of a fixed size, the last one padded: Eigen then takes the same vector instructions for every number.
constexpr std::size_t kPiece = 16;
template <class T>
using Piece = Eigen::Array<T, kPiece, 1>;

template <class T, class Function>
void apply(std::size_t n, const T* from, T* to, const Function& f) {
  std::size_t j = 0;
  for (; j + kPiece <= n; j += kPiece) {
    Piece<T> x = Eigen::Map<const Piece<T>>(from + j);
    x = f(x).eval();
    Eigen::Map<Piece<T>>(to + j) = x;
  }
  if (j == n) return;
  Piece<T> x = Piece<T>::Zero();
  std::copy(from + j, from + n, x.data());
  x = f(x).eval();
  std::copy_n(x.data(), n - j, to + j);
}

}  // namespace

template <class T>
void exp_of(std::size_t n, const T* from, T* to) {
  apply(n, from, to, [](const Piece<T>& x) { return x.exp(); });
}
template <class T>
void tanh_of(std::size_t n, const T* from, T* to) {
  apply(n, from, to, [](const Piece<T>& x) { return x.tanh(); });
}
template <class T>
void logistic_of(std::size_t n, const T* from, T* to) {
  apply(n, from, to, [](const Piece<T>& x) { return (T(1) + (-x).exp()).inverse(); });
}

template <class T>
T sum_of(std::size_t n, const T* from) {
  Piece<T> sums = Piece<T>::Zero();
  std::size_t j = 0;
  for (; j + kPiece <= n; j += kPiece) sums += Eigen::Map<const Piece<T>>(from + j);
  for (std::size_t l = 0; j + l < n; ++l) sums[static_cast<Eigen::Index>(l)] += from[j + l];
  for (Eigen::Index half = kPiece / 2; half > 0; half /= 2)
    for (Eigen::Index l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}
template float sum_of(std::size_t, const float*);
template double sum_of(std::size_t, const double*);

template void exp_of(std::size_t, const float*, float*);
template void exp_of(std::size_t, const double*, double*);
template void tanh_of(std::size_t, const float*, float*);
template void tanh_of(std::size_t, const double*, double*);
template void logistic_of(std::size_t, const float*, float*);
template void logistic_of(std::size_t, const double*, double*);

}  // namespace fl::nn
