#include "clients/nn/sparse_convolution.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "clients/nn/vectors.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn {

namespace {

// Sums that stay in registers while slopes go by: all rows of a window times this many vectors of each.
template <int kK>
inline constexpr int kMostVectors = (kTileRows == 8 ? 25 : 12) / kK;

// Output channels whose weights, of one piece of the window, share the first-level cache with an image.
constexpr std::size_t kChannelBlock = 32;

// A slope of one pixel and its output channel in the block.
template <class T>
struct Slope {
  std::uint32_t channel;
  T value;
};

// Windows of an image stored [H+2P, W+2P, C] and of weights stored [OC, K, row], `row` a whole number of vectors.
template <class T>
struct Layout {
  std::size_t width, stride, row, vectors;  // of the image in pixels and in numbers, of a window's row in numbers and in vectors
  std::size_t window, image, outputs;       // numbers of a window and of an image, pixels at which windows begin
  explicit Layout(const Convolution& c)
      : width(c.W + 2 * c.P),
        stride(width * c.C),
        row((c.K * c.C + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        vectors(row / kLanes<T>),
        window(c.K * row),
        image((c.H + 2 * c.P) * stride + row),  // and what a last vector may read past the end
        outputs(c.out_height() * width) {}
};

// to [column, channel] of one row of the image, from planes of channels, and back.
template <class T>
void gather_row(std::size_t C, std::size_t W, std::size_t plane, const T* __restrict from, T* __restrict to) {
  for (std::size_t first = 0; first < C; first += kLanes<T>) {
    const std::size_t last = std::min(C, first + kLanes<T>);
    for (std::size_t x = 0; x < W; ++x)
      for (std::size_t c = first; c < last; ++c) to[x * C + c] = from[c * plane + x];
  }
}
template <class T>
void scatter_row(std::size_t C, std::size_t W, std::size_t plane, const T* __restrict from, T* __restrict to) {
  for (std::size_t c = 0; c < C; ++c)
    for (std::size_t x = 0; x < W; ++x) to[c * plane + x] = from[x * C + c];
}

// Slopes that are not zero and the pixels at which their windows begin.
template <class T>
struct List {
  std::uint32_t* at;
  T* value;
};

// A row of slopes whose first window begins at pixel `first`. Returns how many were listed; writes up to a vector more.
template <class T>
std::size_t list_row(const T* slope, std::size_t count, std::uint32_t first, const List<T>& list) {
  std::size_t found = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (std::size_t x = 0; x < count; x += 16) {
      const auto inside = static_cast<__mmask16>(count - x < 16 ? (1u << (count - x)) - 1 : 0xffffu);
      const __m512 values = _mm512_maskz_loadu_ps(inside, slope + x);
      const __mmask16 kept = _mm512_mask_cmp_ps_mask(inside, values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
      const __m512i pixels = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first + x)), lanes);
      _mm512_storeu_ps(list.value + found, _mm512_maskz_compress_ps(kept, values));
      _mm512_storeu_si512(list.at + found, _mm512_maskz_compress_epi32(kept, pixels));
      found += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(kept)));
    }
    return found;
  }
#endif
  for (std::size_t x = 0; x < count; ++x) {
    list.at[found] = first + static_cast<std::uint32_t>(x);
    list.value[found] = slope[x];
    found += slope[x] != T(0) ? 1 : 0;
  }
  return found;
}

// The derivative by a piece of the weights of one channel: window [kK,row], kV vectors of each row, from the slopes of that channel.
template <class T, int kK, int kV>
[[gnu::noinline]] void add_by_weights(const T* in, std::size_t C, std::size_t stride, const List<T>& slopes, std::size_t count, T* d_w,
                                      std::size_t row) {
  Vec<T> sum[kK][kV];
  for (int i = 0; i < kK; ++i)
    for (int v = 0; v < kV; ++v) sum[i][v] = load(d_w + static_cast<std::size_t>(i) * row + static_cast<std::size_t>(v) * kLanes<T>);
  for (std::size_t n = 0; n < count; ++n) {
    const T* window = in + slopes.at[n] * C;
    const T value = slopes.value[n];
#pragma GCC unroll 8
    for (int i = 0; i < kK; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v)
        sum[i][v] += value * load(window + static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(v) * kLanes<T>);
  }
  for (int i = 0; i < kK; ++i)
    for (int v = 0; v < kV; ++v) store(d_w + static_cast<std::size_t>(i) * row + static_cast<std::size_t>(v) * kLanes<T>, sum[i][v]);
}

// The derivative by a piece of one window of the image, from the slopes of all channels of a block there.
template <class T, int kK, int kV>
[[gnu::always_inline]] inline void add_by_input(const T* w, std::size_t window, std::size_t row, const Slope<T>* slopes, std::size_t count,
                                                T* d_in, std::size_t stride) {
  Vec<T> sum[kK][kV];
#pragma GCC unroll 8
  for (int i = 0; i < kK; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) sum[i][v] = load(d_in + static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(v) * kLanes<T>);
  for (std::size_t n = 0; n < count; ++n) {
    const T* weights = w + slopes[n].channel * window;
    const T value = slopes[n].value;
#pragma GCC unroll 8
    for (int i = 0; i < kK; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v)
        sum[i][v] += value * load(weights + static_cast<std::size_t>(i) * row + static_cast<std::size_t>(v) * kLanes<T>);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kK; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) store(d_in + static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(v) * kLanes<T>, sum[i][v]);
}

// Slopes of a block of channels, by the pixel at which their window begins: those of pixel p are slope[p * kChannelBlock .. + count[p]].
template <class T>
struct ByPixel {
  Slope<T>* slope;
  std::uint32_t* count;
};

template <class T, int kK, int kV>
[[gnu::noinline]] void add_by_inputs(const Layout<T>& layout, std::size_t C, const T* w, const ByPixel<T>& by_pixel, T* d_in) {
  for (std::size_t p = 0; p < layout.outputs; ++p)
    if (by_pixel.count[p] > 0)
      add_by_input<T, kK, kV>(w, layout.window, layout.row, by_pixel.slope + p * kChannelBlock, by_pixel.count[p], d_in + p * C,
                              layout.stride);
}

// Calls f.operator()<kV>(first number of the piece) for pieces of a window's row, all of about the same length.
template <int kMost, class F>
void each_piece(std::size_t vectors, std::size_t lanes, const F& f) {
  const auto call = [&]<int kV>(const auto& self, std::size_t size, std::size_t first) {
    if (size == kV) return f.template operator()<kV>(first * lanes);
    if constexpr (kV > 1) self.template operator()<kV - 1>(self, size, first);
  };
  const std::size_t pieces = (vectors + kMost - 1) / kMost;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t first = piece * vectors / pieces, end = (piece + 1) * vectors / pieces;
    call.template operator()<kMost>(call, end - first, first);
  }
}

// The layout and the buffers for one image.
template <class T>
struct Sparse {
  const Convolution& c;
  Layout<T> layout;
  T *in, *d_in, *weights, *d_weights;  // [image], [image], [OC,window] twice
  List<T> by_channel;                  // [OC,outputs]: those of channel o begin at o * outputs
  std::size_t* count;                  // [OC]
  ByPixel<T> by_pixel;                 // [outputs,kChannelBlock], [outputs]

  Sparse(Workspace::Frame& frame, const Convolution& convolution, bool needs_input) : c(convolution), layout(convolution) {
    in = frame.take<T>(layout.image);
    std::fill_n(in, layout.image, T(0));
    d_weights = frame.take<T>(c.OC * layout.window);
    std::fill_n(d_weights, c.OC * layout.window, T(0));
    const std::size_t room = c.OC * layout.outputs + kLanes<T>;
    by_channel = {frame.take<std::uint32_t>(room), frame.take<T>(room)};
    count = frame.take<std::size_t>(c.OC);
    d_in = needs_input ? frame.take<T>(layout.image) : nullptr;
    weights = needs_input ? frame.take<T>(c.OC * layout.window) : nullptr;
    if (!needs_input) return;
    by_pixel.slope = frame.take<Slope<T>>(layout.outputs * kChannelBlock);
    by_pixel.count = frame.take<std::uint32_t>(layout.outputs);
  }
  // Calls f(entry of [OC,C,K,K], entry of [OC,K,row]).
  template <class F>
  void each_weight(const F& f) const {
    for (std::size_t o = 0; o < c.OC; ++o)
      for (std::size_t channel = 0; channel < c.C; ++channel)
        for (std::size_t i = 0; i < c.K; ++i)
          for (std::size_t j = 0; j < c.K; ++j)
            f(((o * c.C + channel) * c.K + i) * c.K + j, o * layout.window + i * layout.row + j * c.C + channel);
  }
  void read_image(const T* from) const {
    for (std::size_t y = 0; y < c.H; ++y) gather_row(c.C, c.W, c.H * c.W, from + y * c.W, in + (y + c.P) * layout.stride + c.P * c.C);
  }
  [[nodiscard]] List<T> list_of(std::size_t o) const { return {by_channel.at + o * layout.outputs, by_channel.value + o * layout.outputs}; }
  void list_slopes(const T* d_out) const {
    const std::size_t OH = c.out_height(), OW = c.out_width();
    for (std::size_t o = 0; o < c.OC; ++o) {
      const List<T> list = list_of(o);
      std::size_t found = 0;
      for (std::size_t y = 0; y < OH; ++y)
        found +=
            list_row<T>(d_out + (o * OH + y) * OW, OW, static_cast<std::uint32_t>(y * layout.width), {list.at + found, list.value + found});
      count[o] = found;
    }
  }
  // Channels first .. first+channels-1 of the lists, by pixel.
  void sort_slopes(std::size_t first, std::size_t channels) const {
    std::fill_n(by_pixel.count, layout.outputs, 0u);
    for (std::size_t o = 0; o < channels; ++o) {
      const List<T> list = list_of(first + o);
      for (std::size_t n = 0; n < count[first + o]; ++n) {
        const std::size_t p = list.at[n];
        by_pixel.slope[p * kChannelBlock + by_pixel.count[p]++] = {static_cast<std::uint32_t>(o), list.value[n]};
      }
    }
  }
  template <int kK>
  void add_weights() const {
    each_piece<kMostVectors<kK>>(layout.vectors, kLanes<T>, [&]<int kV>(std::size_t first) {
      for (std::size_t o = 0; o < c.OC; ++o)
        add_by_weights<T, kK, kV>(in + first, c.C, layout.stride, list_of(o), count[o], d_weights + o * layout.window + first, layout.row);
    });
  }
  template <int kK>
  void find_input() const {
    std::fill_n(d_in, layout.image, T(0));
    for (std::size_t first = 0; first < c.OC; first += kChannelBlock) {
      sort_slopes(first, std::min(kChannelBlock, c.OC - first));
      each_piece<kMostVectors<kK>>(layout.vectors, kLanes<T>, [&]<int kV>(std::size_t piece) {
        add_by_inputs<T, kK, kV>(layout, c.C, weights + first * layout.window + piece, by_pixel, d_in + piece);
      });
    }
  }
  void write_image(T* to) const {
    for (std::size_t y = 0; y < c.H; ++y) scatter_row(c.C, c.W, c.H * c.W, d_in + (y + c.P) * layout.stride + c.P * c.C, to + y * c.W);
  }
};

template <class T, int kK>
void back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in, T* d_w) {
  Workspace::Frame frame(*exec.workspace);
  const Sparse<T> sparse(frame, c, d_in != nullptr);
  if (d_in != nullptr) {
    std::fill_n(sparse.weights, c.OC * sparse.layout.window, T(0));
    sparse.each_weight([&](std::size_t from, std::size_t to) { sparse.weights[to] = w[from]; });
  }
  for (std::size_t b = 0; b < B; ++b) {
    sparse.list_slopes(d_out + b * c.OC * c.out_height() * c.out_width());
    sparse.read_image(in + b * c.C * c.H * c.W);
    sparse.template add_weights<kK>();
    if (d_in == nullptr) continue;
    sparse.template find_input<kK>();
    sparse.write_image(d_in + b * c.C * c.H * c.W);
  }
  sparse.each_weight([&](std::size_t to, std::size_t from) { d_w[to] = (add ? d_w[to] : T(0)) + sparse.d_weights[from]; });
}

}  // namespace

template <class T>
bool is_mostly_zero(const Convolution& c, std::size_t B, const T* d_out) {
  if (c.S != 1 || c.P >= c.K || (c.K != 3 && c.K != 5 && c.K != 7)) return false;
  const std::size_t size = c.OC * c.out_height() * c.out_width();
  if (B == 0 || size > UINT32_MAX / 2) return false;
  const auto zeros = static_cast<std::size_t>(std::count(d_out, d_out + size, T(0)));
  // A window's row is a whole number of vectors, however few its channels are.
  const double filled = static_cast<double>(c.K * c.C) / static_cast<double>(Layout<T>(c).row);
  return static_cast<double>(size - zeros) < 0.35 * filled * static_cast<double>(size);
}

template <class T>
void sparse_convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                          T* d_w) {
  if (c.K == 3) return back<T, 3>(exec, c, B, w, in, d_out, add, d_in, d_w);
  if (c.K == 5) return back<T, 5>(exec, c, B, w, in, d_out, add, d_in, d_w);
  back<T, 7>(exec, c, B, w, in, d_out, add, d_in, d_w);
}

template bool is_mostly_zero(const Convolution&, std::size_t, const float*);
template bool is_mostly_zero(const Convolution&, std::size_t, const double*);
template void sparse_convolve_back(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, bool, float*,
                                   float*);
template void sparse_convolve_back(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, bool, double*,
                                   double*);

}  // namespace fl::nn
