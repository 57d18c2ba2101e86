// Vectorised functions of many numbers at once. A result never depends on the memory address of the numbers.
#pragma once

#include <cstddef>

#include "fl_core/config/device.hpp"

namespace fl::nn {

// Computes to[j] = f(from[j]) for j < n; `to` may be `from`.
template <class T>
FL_API void exp_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void tanh_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void logistic_of(std::size_t n, const T* from, T* to);  // 1 / (1 + exp(-x))

// Returns the sum of n numbers, with 16 running sums that are joined in a tree.
template <class T>
[[nodiscard]] FL_API T sum_of(std::size_t n, const T* from);

}  // namespace fl::nn
