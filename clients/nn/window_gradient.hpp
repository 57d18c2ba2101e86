// The derivative of a convolution by its weights on one core, for any window and stride.
//
// Vectors run along the channels of a window's row, which are adjacent once an image is stored [row, column, channel]; the slopes of some
// output channels are the tiles' rows, and every sum runs over the outputs of all images in order.
#pragma once

#include "clients/nn/convolution.hpp"

namespace fl::nn {

// Computes d_w [OC,C,K,K], added to its previous value if `add`, from in [B,C,H,W] and d_out [B,OC,OH,OW].
template <class T>
void multiply_slopes(const Exec& exec, const Convolution& c, std::size_t B, const T* in, const T* d_out, bool add, T* d_w);

}  // namespace fl::nn
