// Functions of many numbers at once, vectorised. A result never depends on where numbers lie in memory.
#pragma once

#include <cstddef>

#include "fl_core/config/device.hpp"

namespace fl::nn {

// to[j] = f(from[j]) for j < n; `to` may be `from`.
template <class T>
FL_API void exp_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void tanh_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void logistic_of(std::size_t n, const T* from, T* to);  // 1 / (1 + exp(-x))

// The sum of n numbers, 16 running sums taken in turn and then joined in a tree.
template <class T>
[[nodiscard]] FL_API T sum_of(std::size_t n, const T* from);

}  // namespace fl::nn
