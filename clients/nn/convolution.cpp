#include "clients/nn/convolution.hpp"

#include <algorithm>
#include <type_traits>

#include "clients/nn/onednn.hpp"
#include "clients/nn/sparse_convolution.hpp"
#include "clients/nn/window_gradient.hpp"
#include "clients/nn/window_product.hpp"
#include "clients/nn/winograd.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn {

namespace {

std::ptrdiff_t signed_of(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

// The derivative by the input at pixels (y0 + S y, x0 + S x): a sum over windows of slopes with the entries that meet these pixels.
template <class T>
void convolve_back_at(const Exec& exec, const Convolution& c, std::size_t B, std::size_t y0, std::size_t x0, const T* w, const T* d_out,
                      T* d_in) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t height = (c.H - y0 + c.S - 1) / c.S, width = (c.W - x0 + c.S - 1) / c.S;
  Tap* taps = frame.take<Tap>(c.K * c.K);
  std::size_t count = 0;
  for (std::size_t i = (y0 + c.P) % c.S; i < c.K; i += c.S)
    for (std::size_t j = (x0 + c.P) % c.S; j < c.K; j += c.S)
      taps[count++] = {(signed_of(y0 + c.P) - signed_of(i)) / signed_of(c.S), (signed_of(x0 + c.P) - signed_of(j)) / signed_of(c.S),
                       i * c.K + j};
  T* to = d_in + y0 * c.W + x0;
  if (count == 0) return;  // no window meets these pixels, which are 0 already
  const std::size_t square = c.K * c.K;
  const WindowProduct<T> product{.C = c.OC,
                                 .H = c.out_height(),
                                 .W = c.out_width(),
                                 .O = c.C,
                                 .OH = height,
                                 .OW = width,
                                 .stride = 1,
                                 .taps = taps,
                                 .num_taps = count,
                                 .w_output = square,
                                 .w_input = c.C * square,
                                 .image = c.C * c.H * c.W,
                                 .plane = c.H * c.W,
                                 .row = c.S * c.W,
                                 .column = c.S};
  multiply_windows<T>(exec, product, B, w, nullptr, d_out, to);
}

// The derivative by the weights. Windows of one pixel leave out the pixels between them, and then so does the image that is read.
template <class T>
void convolve_back_to_weights(const Exec& exec, const Convolution& c, std::size_t B, const T* in, const T* d_out, bool add, T* d_w) {
  if (c.K > 1 || c.S == 1 || c.P > 0) return multiply_slopes(exec, c, B, in, d_out, add, d_w);
  Workspace::Frame frame(*exec.workspace);
  const std::size_t OH = c.out_height(), OW = c.out_width();
  T* read = frame.take<T>(B * c.C * OH * OW);
  for (std::size_t p = 0; p < B * c.C; ++p)
    for (std::size_t y = 0; y < OH; ++y)
      for (std::size_t x = 0; x < OW; ++x) read[(p * OH + y) * OW + x] = in[(p * c.H + y * c.S) * c.W + x * c.S];
  multiply_slopes(exec, {c.C, OH, OW, c.OC, 1, 0, 1}, B, read, d_out, add, d_w);
}

// Returns whether Winograd's algorithm computes a convolution.
template <class T>
bool takes_tiles(const Convolution& c, std::size_t B) {
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) return false;
#endif
  return winograd::suits(c, B);
}

}  // namespace

template <class T>
void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out) {
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) return onednn::convolve(exec, c, B, w, bias, in, out);
#endif
  if (takes_tiles<T>(c, B)) return winograd::convolve(exec, c, B, w, bias, in, out);
  Workspace::Frame frame(*exec.workspace);
  Tap* taps = frame.take<Tap>(c.K * c.K);
  for (std::size_t t = 0; t < c.K * c.K; ++t) taps[t] = {signed_of(t / c.K) - signed_of(c.P), signed_of(t % c.K) - signed_of(c.P), t};
  const std::size_t OH = c.out_height(), OW = c.out_width(), square = c.K * c.K;
  const WindowProduct<T> product{.C = c.C,
                                 .H = c.H,
                                 .W = c.W,
                                 .O = c.OC,
                                 .OH = OH,
                                 .OW = OW,
                                 .stride = c.S,
                                 .taps = taps,
                                 .num_taps = square,
                                 .w_output = c.C * square,
                                 .w_input = square,
                                 .image = c.OC * OH * OW,
                                 .plane = OH * OW,
                                 .row = OW,
                                 .column = 1};
  multiply_windows(exec, product, B, w, bias, in, out);
}

template <class T>
void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                   T* d_w) {
  // For windows of 3 x 3, Winograd's algorithm takes less time than the nonzero slopes alone.
  const bool by_tiles = takes_tiles<T>(c, B);
  if (!(by_tiles && c.K == 3) && is_mostly_zero(c, B, d_out)) return sparse_convolve_back(exec, c, B, w, in, d_out, add, d_in, d_w);
  if (by_tiles) {
    winograd::convolve_back_to_weights(exec, c, B, in, d_out, add, d_w);
    if (d_in != nullptr) winograd::convolve_back_to_input(exec, c, B, w, d_out, d_in);
    return;
  }
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) return onednn::convolve_back(exec, c, B, w, in, d_out, add, d_in, d_w);
#endif
  convolve_back_to_weights(exec, c, B, in, d_out, add, d_w);
  if (d_in != nullptr && c.K < c.S) std::fill_n(d_in, B * c.C * c.H * c.W, T(0));
  for (std::size_t y = 0; d_in != nullptr && y < std::min(c.S, c.H); ++y)
    for (std::size_t x = 0; x < std::min(c.S, c.W); ++x) convolve_back_at(exec, c, B, y, x, w, d_out, d_in);
}

std::size_t convolution_room(const Convolution& c, std::size_t B) { return winograd::room_size(c, B); }

template void convolve(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, float*);
template void convolve(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, double*);
template void convolve_back(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, bool, float*, float*);
template void convolve_back(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, bool, double*,
                            double*);

}  // namespace fl::nn
