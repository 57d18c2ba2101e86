// Direct convolutions of images on one core: there is no matrix of windows, and vectors run along the rows of the image.
//
// Images are packed with zeros around them, so that every window of a row of outputs is one load from memory. A tile of outputs (channels x
// vectors) stays in registers during the loop over all input channels and window entries. For the gradient of the weights, a tile is
// (channels x the window's columns), summed over all rows of some images.
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"

namespace fl::nn {

// A convolution with stride 1. Windows are K x K with P zeros around the image, outputs {OC, H+2P-K+1, W+2P-K+1}.
struct Convolution {
  std::size_t C = 0, H = 0, W = 0;  // input
  std::size_t OC = 0, K = 0, P = 0;
  [[nodiscard]] std::size_t out_height() const { return H + 2 * P - K + 1; }
  [[nodiscard]] std::size_t out_width() const { return W + 2 * P - K + 1; }
  // Returns whether the functions below have tiles for it: windows of 3, 5 or 7 and P < K.
  [[nodiscard]] bool has_tiles() const { return (K == 3 || K == 5 || K == 7) && P < K; }
};

// Computes out [B,OC,OH,OW] from in [B,C,H,W], w [OC,C,K,K] and bias [OC] (null: none). Every sum is in the order (channel, row, column).
template <class T>
FL_API void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out);

// Computes d_w [OC,C,K,K], added to its previous value if `add`, and d_in [B,C,H,W], unless null, from d_out [B,OC,OH,OW].
template <class T>
FL_API void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                          T* d_w);

}  // namespace fl::nn
