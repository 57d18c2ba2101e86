// Convolutions with 3 x 3 windows side by side by Winograd's algorithm on one core: 36 products for 16 outputs, or 16 for 4, instead of 9
// each.
//
// Tiles of the image and the weights are transformed (winograd_transform.hpp) with channels in the lanes of vectors. For each position of a
// transformed tile, a product of matrices [tiles, C] [C, OC] remains. Weights are transformed once per call. docs/decisions/0020 has the
// measured rounding errors.
#pragma once

#include "clients/nn/convolution.hpp"

namespace fl::nn::winograd {

// Returns whether the form of a convolution allows the algorithm and it takes less time than the direct sums. Depends on the shape and the
// number of images alone.
[[nodiscard]] FL_API bool suits(const Convolution& c, std::size_t B);

// Returns an upper bound of the entries that a call takes from the workspace.
[[nodiscard]] std::size_t room_size(const Convolution& c, std::size_t B);

// Computes the same as nn::convolve.
template <class T>
FL_API void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out);

// Computes d_in [B,C,H,W] from d_out [B,OC,OH,OW].
template <class T>
FL_API void convolve_back_to_input(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* d_out, T* d_in);

// Computes d_w [OC,C,K,K], added to its previous value if `add`. Sums run over tiles in order, in blocks that depend on the shape and on B
// alone.
template <class T>
FL_API void convolve_back_to_weights(const Exec& exec, const Convolution& c, std::size_t B, const T* in, const T* d_out, bool add, T* d_w);

}  // namespace fl::nn::winograd
