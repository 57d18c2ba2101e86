// Sums over windows of images on one core, for any window and stride: what a convolution computes, and its derivative by the input.
//
// Blocks of channels of some images are copied to the second-level cache, once for each column of the window, so that a vector of outputs
// always reads adjacent numbers, also where rows are shorter than vectors or windows are apart. There is no matrix of windows.
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"

namespace fl::nn {

// A place of a window: output (y, x) reads entry (y*stride + dy, x*stride + dx) of the input, 0 outside, and multiplies it by a weight.
struct Tap {
  std::ptrdiff_t dy, dx;
  std::size_t weight;
};

// Computes, for b < B and o < O, out[b,o,y,x] = start[o] + sum over c < C and taps t of
//   w[o*w_output + c*w_input + t.weight] * in[b,c,y*stride + t.dy,x*stride + t.dx].
// Sums run over the taps and then over the channels in order, in blocks of channels that depend on the numbers of channels and taps alone.
template <class T>
struct WindowProduct {
  std::size_t C, H, W;    // of in [B,C,H,W]
  std::size_t O, OH, OW;  // outputs
  std::size_t stride;     // between windows
  const Tap* taps;
  std::size_t num_taps;
  std::size_t w_output, w_input;          // between weights of neighbouring outputs and inputs
  std::size_t image, plane, row, column;  // between neighbouring outputs: images, channels, rows and columns
};
template <class T>
void multiply_windows(const Exec& exec, const WindowProduct<T>& p, std::size_t B, const T* w, const T* start, const T* in, T* out);

}  // namespace fl::nn
