// Products and convolutions of floats by oneDNN, on the calling thread alone; in builds with FL_ONEDNN only.
//
// The contracts are those of gemm.hpp and convolution.hpp, which call these functions. oneDNN holds images and weights in blocks of
// channels: they are reordered before and after a call, weights once per call.
#pragma once

#include "clients/nn/convolution.hpp"
#include "clients/nn/gemm.hpp"

namespace fl::nn::onednn {

// Returns whether a product is large enough to pay for the call and, if our own tiles suit it, for packing.
[[nodiscard]] bool is_worth_it(Op op_b, std::size_t m, std::size_t n, std::size_t k, bool suits_tiles);

// Computes C [m,n] = op(A) op(B), added to C if `add`; arguments as in nn::gemm.
void gemm(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k, const float* A, std::size_t lda, const float* B, std::size_t ldb,
          bool add, float* C, std::size_t ldc);

// Compute the same as nn::convolve and nn::convolve_back, with the same arguments.
void convolve(const Exec& exec, const Convolution& c, std::size_t B, const float* w, const float* bias, const float* in, float* out);
void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const float* w, const float* in, const float* d_out, bool add,
                   float* d_in, float* d_w);

}  // namespace fl::nn::onednn
