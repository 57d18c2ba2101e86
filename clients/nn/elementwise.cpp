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

template void exp_of(std::size_t, const float*, float*);
template void exp_of(std::size_t, const double*, double*);
template void tanh_of(std::size_t, const float*, float*);
template void tanh_of(std::size_t, const double*, double*);
template void logistic_of(std::size_t, const float*, float*);
template void logistic_of(std::size_t, const double*, double*);

}  // namespace fl::nn
