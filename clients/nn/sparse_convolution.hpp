// Derivatives of a convolution whose outputs' slopes are mostly zero: behind 2x2 max pooling three of four are, behind a ReLU still more.
//
// Only the slopes that are not zero are multiplied, so the work is theirs. Vectors run along the channels of a window's row, which lie side
// by side once an image is stored [row,column,channel].
#pragma once

#include "clients/nn/convolution.hpp"

namespace fl::nn {

// Whether the functions below take less time than dense ones, by the zeros among the slopes d_out [B,OC,OH,OW] of the first image.
template <class T>
[[nodiscard]] bool is_mostly_zero(const Convolution& c, std::size_t B, const T* d_out);

// As convolve_back(). Every sum runs over images, then over the outputs in order, or over output channels in order, zeros left out.
template <class T>
void sparse_convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                          T* d_w);

}  // namespace fl::nn
