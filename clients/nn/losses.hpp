// Losses of a network's last activations, with their derivatives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl::nn {

enum class Loss {
  softmax_cross_entropy,  // log sum_c exp(z_c) - z_label
  squared_error,          // mean over outputs of (z - target)^2
  logistic,               // log(1 + exp(z)) - target z, targets in [0,1] or two classes (binary cross-entropy of the sigmoid)
};

// Returns the sum of the losses of R rows z [R,C]. d_z [R,C], unless null, receives scale times the derivative of the sum (room [C] is used
// instead if it is null). `correct`, unless null, grows by the number of rows whose largest entry (the first of equal ones) is the label.
template <class T>
FL_API double softmax_cross_entropy(std::size_t R, std::size_t C, const T* z, const std::int32_t* label, double scale, T* d_z, T* room,
                                    std::uint64_t* correct);
// Returns the same for one target per row [R]. squared_error compares each of C outputs with it.
template <class T>
FL_API double squared_error(std::size_t R, std::size_t C, const T* z, const double* target, double scale, T* d_z);
// Requires C = 1. Rows on their target's side of zero are correct.
template <class T>
FL_API double logistic(std::size_t R, const T* z, const double* target, double scale, T* d_z, std::uint64_t* correct);

}  // namespace fl::nn
