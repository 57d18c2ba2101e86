// Derivatives of a convolution whose outputs' slopes are mostly zero: three of four before 2x2 max pooling, and more before a ReLU.
//
// Only nonzero slopes are multiplied, so the work is proportional to their number. Vectors run along the channels of a window's row, which
// are adjacent in memory once an image is stored [row,column,channel].
#pragma once

#include "clients/nn/convolution.hpp"

namespace fl::nn {

// Returns whether sparse_convolve_back() has windows of this form (3, 5 or 7, side by side) and is faster than dense sums, judged by the
// zeros among the slopes d_out [B,OC,OH,OW] of the first image.
template <class T>
[[nodiscard]] bool is_mostly_zero(const Convolution& c, std::size_t B, const T* d_out);

// Computes the same as convolve_back(). Every sum runs over images and then over the outputs in order, or over output channels in order,
// skipping zeros.
template <class T>
void sparse_convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                          T* d_w);

}  // namespace fl::nn
