// Functions of many numbers at once, vectorised. A result depends on its own number alone, never on where it lies.
#pragma once

#include <cstddef>

#include "fl_core/device.hpp"

namespace fl::nn {

// to[j] = f(from[j]) for j < n; `to` may be `from`.
template <class T>
FL_API void exp_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void tanh_of(std::size_t n, const T* from, T* to);
template <class T>
FL_API void logistic_of(std::size_t n, const T* from, T* to);  // 1 / (1 + exp(-x))

}  // namespace fl::nn
