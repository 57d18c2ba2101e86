// Convolutions of images on one core and their derivatives.
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"

namespace fl::nn {

// A convolution. Windows are K x K, S apart, with P zeros around the image; outputs {OC, (H+2P-K)/S+1, (W+2P-K)/S+1}.
struct Convolution {
  std::size_t C = 0, H = 0, W = 0;  // input
  std::size_t OC = 0, K = 0, P = 0, S = 1;
  [[nodiscard]] std::size_t out_height() const { return (H + 2 * P - K) / S + 1; }
  [[nodiscard]] std::size_t out_width() const { return (W + 2 * P - K) / S + 1; }
};

// Computes out [B,OC,OH,OW] from in [B,C,H,W], w [OC,C,K,K] and bias [OC] (null: none). Windows of 3 x 3 and 5 x 5 that are side by side
// are multiplied by Winograd's algorithm if the shape suits it (winograd.hpp). Otherwise every sum runs over (channel, row, column) in
// order, in blocks of channels that depend on C and K alone.
template <class T>
FL_API void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out);

// Computes d_w [OC,C,K,K], added to its previous value if `add`, and d_in [B,C,H,W], unless null, from d_out [B,OC,OH,OW].
template <class T>
FL_API void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                          T* d_w);

// Returns the temporary entries of both for B images, if these grow with B.
[[nodiscard]] FL_API std::size_t convolution_room(const Convolution& c, std::size_t B);

}  // namespace fl::nn
