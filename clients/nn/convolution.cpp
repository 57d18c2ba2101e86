#include "clients/nn/convolution.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "clients/nn/onednn.hpp"
#include "clients/nn/sparse_convolution.hpp"
#include "clients/nn/vectors.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn {

namespace {

constexpr int kChannels = kTileRows, kVectors = kTileVectors;
constexpr std::size_t kGroup = 8;  // images whose part of the weights' gradient is summed in registers

// Planes of height x width with zeros around them; vectors may be loaded from every column of the inside.
struct Packing {
  std::size_t planes, height, width, pad;
  std::size_t stride, plane;  // between rows, between planes
  template <class T>
  static Packing of(std::size_t planes, std::size_t height, std::size_t width, std::size_t pad, std::size_t columns) {
    // `columns` are read by whole vectors, from the left edge and up to 2*pad further.
    const std::size_t stride = std::max(width + 2 * pad, (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T> + 2 * pad);
    return {planes, height, width, pad, stride, (height + 2 * pad) * stride};
  }
  [[nodiscard]] std::size_t size() const { return planes * plane + 64; }  // and what a last vector may read past the end
  // The zeros, once; every image that is packed into the same place leaves them alone.
  template <class T>
  void clear(T* to) const {
    std::fill_n(to, size(), T(0));
  }
  template <class T>
  void pack(const T* from, T* to) const {
    for (std::size_t p = 0; p < planes; ++p)
      for (std::size_t y = 0; y < height; ++y)
        std::copy_n(from + (p * height + y) * width, width, to + p * plane + (y + pad) * stride + pad);
  }
};

// Where the vectors of a plane of outputs lie.
struct Rows {
  std::size_t height, vectors, in_stride, out_stride, lanes;
  [[nodiscard]] std::size_t count() const { return height * vectors; }
  [[nodiscard]] std::size_t in(std::size_t v) const { return v / vectors * in_stride + v % vectors * lanes; }
  [[nodiscard]] std::size_t out(std::size_t v) const { return v / vectors * out_stride + v % vectors * lanes; }
};

// out[o][v] = sum over channels and window entries of w * in, for kO output channels and kV vectors; w [C,K,K,kO].
template <class T, int kO, int kV>
[[gnu::noinline]] void tile(const T* in, const Packing& packing, std::size_t C, std::size_t K, const T* w, const Rows& rows,
                            std::size_t first, T* out, std::size_t out_plane) {
  Vec<T> sum[kO][kV] = {};
  std::size_t at[kV];
  for (int v = 0; v < kV; ++v) at[v] = rows.in(first + static_cast<std::size_t>(v));
  for (std::size_t c = 0; c < C; ++c)
    for (std::size_t i = 0; i < K; ++i) {
      const T* row = in + c * packing.plane + i * packing.stride;
      for (std::size_t j = 0; j < K; ++j, w += kO) {
        Vec<T> x[kV];
#pragma GCC unroll 3
        for (int v = 0; v < kV; ++v) x[v] = load(row + at[v] + j);
#pragma GCC unroll 8
        for (int o = 0; o < kO; ++o)
#pragma GCC unroll 3
          for (int v = 0; v < kV; ++v) sum[o][v] += w[o] * x[v];
      }
    }
  for (int o = 0; o < kO; ++o)
    for (int v = 0; v < kV; ++v)
      store(out + static_cast<std::size_t>(o) * out_plane + rows.out(first + static_cast<std::size_t>(v)), sum[o][v]);
}

template <class T, int kO>
void tiles(const T* in, const Packing& packing, std::size_t C, std::size_t K, const T* w, const Rows& rows, T* out, std::size_t out_plane) {
  std::size_t v = 0;
  for (; v + kVectors <= rows.count(); v += kVectors) tile<T, kO, kVectors>(in, packing, C, K, w, rows, v, out, out_plane);
  if (rows.count() - v == 2) tile<T, kO, 2>(in, packing, C, K, w, rows, v, out, out_plane);
  if (rows.count() - v == 1) tile<T, kO, 1>(in, packing, C, K, w, rows, v, out, out_plane);
}

// Calls f(first, count) for output channels in blocks of kChannels, then 4, 2 and 1.
template <class F>
void blocks_of(std::size_t channels, const F& f) {
  std::size_t first = 0;
  for (std::size_t count = kChannels; count > 0; count /= 2)
    for (; channels - first >= count; first += count) f(first, count);
}

// Weights as tiles read them. Entry (o, c, i, j) is entry(o, c, i, j) of the caller's.
template <class T, class Entry>
void pack_weights(std::size_t O, std::size_t C, std::size_t K, const Entry& entry, T* to) {
  blocks_of(O, [&](std::size_t first, std::size_t count) {
    for (std::size_t c = 0; c < C; ++c)
      for (std::size_t i = 0; i < K; ++i)
        for (std::size_t j = 0; j < K; ++j)
          for (std::size_t o = 0; o < count; ++o) *to++ = entry(first + o, c, i, j);
  });
}

// One packed image with packed weights; out [O,height,out_stride].
template <class T>
void convolve_packed(const T* in, const Packing& packing, std::size_t O, std::size_t C, std::size_t K, const T* w, const Rows& rows,
                     T* out) {
  const std::size_t plane = rows.height * rows.out_stride;
  blocks_of(O, [&](std::size_t first, std::size_t count) {
    T* to = out + first * plane;
    const T* block = w + first * C * K * K;
    if (count == 8) tiles<T, 8>(in, packing, C, K, block, rows, to, plane);
    if (count == 4) tiles<T, 4>(in, packing, C, K, block, rows, to, plane);
    if (count == 2) tiles<T, 2>(in, packing, C, K, block, rows, to, plane);
    if (count == 1) tiles<T, 1>(in, packing, C, K, block, rows, to, plane);
  });
}

template <class T>
Rows rows_of(std::size_t height, std::size_t width, std::size_t in_stride) {
  const std::size_t vectors = (width + kLanes<T> - 1) / kLanes<T>;
  return {height, vectors, in_stride, vectors * kLanes<T>, kLanes<T>};
}

// The gradient of the window row (c, i) of kO output channels, over `images` packed images; added to d_w [kO, C K K] at its place.
template <class T, int kO, int kK>
[[gnu::noinline]] void weights_row(const T* in, const Packing& inside, const T* d, const Packing& outside, std::size_t images,
                                   std::size_t OW, std::size_t OH, T* d_w, std::size_t window) {
  Vec<T> sum[kO][kK] = {};
  for (std::size_t b = 0; b < images; ++b)
    for (std::size_t y = 0; y < OH; ++y)
      for (std::size_t x = 0; x < OW; x += kLanes<T>) {
        const T* row = in + b * inside.size() + y * inside.stride + x;
        const T* slope = d + b * outside.size() + y * outside.stride + x;
        Vec<T> g[kO];
#pragma GCC unroll 8
        for (int o = 0; o < kO; ++o) g[o] = load(slope + static_cast<std::size_t>(o) * outside.plane);
#pragma GCC unroll 8
        for (int j = 0; j < kK; ++j) {
          const Vec<T> shifted = load(row + j);
#pragma GCC unroll 8
          for (int o = 0; o < kO; ++o) sum[o][j] += g[o] * shifted;
        }
      }
  for (int o = 0; o < kO; ++o)
    for (int j = 0; j < kK; ++j) d_w[static_cast<std::size_t>(o) * window + static_cast<std::size_t>(j)] += sum_of_lanes<T>(sum[o][j]);
}

template <class T, int kK>
void weights_of_group(const Convolution& c, const T* in, const Packing& inside, const T* d, const Packing& outside, std::size_t images,
                      T* d_w) {
  constexpr int kO = kChannels == 8 ? (kK == 3 ? 8 : kK == 5 ? 4 : 3) : 2;
  const std::size_t window = c.C * c.K * c.K;
  // The first output of each plane, past the zeros around it.
  const T* first_out = d + outside.pad * outside.stride + outside.pad;
  std::size_t o = 0;
  const auto each_row = [&](auto&& row) {
    for (std::size_t channel = 0; channel < c.C; ++channel)
      for (std::size_t i = 0; i < c.K; ++i)
        row(in + channel * inside.plane + i * inside.stride, first_out + o * outside.plane, d_w + o * window + (channel * c.K + i) * c.K);
  };
  for (; o + kO <= c.OC; o += kO)
    each_row([&](const T* from, const T* slope, T* to) {
      weights_row<T, kO, kK>(from, inside, slope, outside, images, c.out_width(), c.out_height(), to, window);
    });
  for (; o < c.OC; ++o)
    each_row([&](const T* from, const T* slope, T* to) {
      weights_row<T, 1, kK>(from, inside, slope, outside, images, c.out_width(), c.out_height(), to, window);
    });
}

// The same for many output channels, which then are the vectors' entries: slopes [OH OW,stride] hold them side by side, and each input
// entry is one number times them. Adds to sums [kK,stride], kV vectors of each row.
template <class T, int kK, int kV>
[[gnu::noinline]] void weights_row_of_channels(const T* in, std::size_t in_stride, const T* slopes, std::size_t stride, std::size_t OH,
                                               std::size_t OW, T* sums) {
  Vec<T> sum[kK][kV];
  for (int j = 0; j < kK; ++j)
    for (int v = 0; v < kV; ++v) sum[j][v] = load(sums + static_cast<std::size_t>(j) * stride + static_cast<std::size_t>(v) * kLanes<T>);
  for (std::size_t y = 0; y < OH; ++y) {
    const T* row = in + y * in_stride;
    for (std::size_t x = 0; x < OW; ++x, slopes += stride) {
      Vec<T> g[kV];
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) g[v] = load(slopes + static_cast<std::size_t>(v) * kLanes<T>);
#pragma GCC unroll 8
      for (int j = 0; j < kK; ++j)
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) sum[j][v] += row[x + static_cast<std::size_t>(j)] * g[v];
    }
  }
  for (int j = 0; j < kK; ++j)
    for (int v = 0; v < kV; ++v) store(sums + static_cast<std::size_t>(j) * stride + static_cast<std::size_t>(v) * kLanes<T>, sum[j][v]);
}

// to [n,stride] from [m,n], in squares whose rows and columns both stay in the first-level cache.
template <class T>
void transpose(std::size_t m, std::size_t n, const T* __restrict from, std::size_t stride, T* __restrict to) {
  constexpr std::size_t kSide = 16;
  for (std::size_t i = 0; i < m; i += kSide)
    for (std::size_t j = 0; j < n; j += kSide)
      for (std::size_t y = j; y < std::min(n, j + kSide); ++y)
        for (std::size_t x = i; x < std::min(m, i + kSide); ++x) to[y * stride + x] = from[x * n + y];
}

// Output channels from which on vectors run along them.
template <class T>
constexpr std::size_t kManyChannels = 2 * kLanes<T>;

// Sums of the weights' gradient [C,K,K,stride], output channels side by side.
template <class T>
struct ChannelSums {
  std::size_t stride;
  T *sums, *slopes;
  ChannelSums(Workspace::Frame& frame, const Convolution& c) : stride((c.OC + kLanes<T> - 1) / kLanes<T> * kLanes<T>) {
    sums = frame.take<T>(c.C * c.K * c.K * stride);
    slopes = frame.take<T>(c.out_height() * c.out_width() * stride);
    std::fill_n(sums, c.C * c.K * c.K * stride, T(0));
    std::fill_n(slopes, c.out_height() * c.out_width() * stride, T(0));
  }
  template <int kK>
  void add_image(const Convolution& c, const T* in, const Packing& inside, const T* d_out) {
    const std::size_t pixels = c.out_height() * c.out_width();
    transpose(c.OC, pixels, d_out, stride, slopes);
    constexpr int kMost = kChannels == 8 && kK < 7 ? 4 : 2;
    for (std::size_t first = 0; first < stride;) {
      const std::size_t left = (stride - first) / kLanes<T>;
      const std::size_t vectors = left >= kMost ? kMost : left >= 2 ? 2 : 1;
      for (std::size_t channel = 0; channel < c.C; ++channel)
        for (std::size_t i = 0; i < c.K; ++i) {
          const T* row = in + channel * inside.plane + i * inside.stride;
          T* to = sums + (channel * c.K + i) * c.K * stride + first;
          if (vectors == kMost)
            weights_row_of_channels<T, kK, kMost>(row, inside.stride, slopes + first, stride, c.out_height(), c.out_width(), to);
          else if (vectors == 2)
            weights_row_of_channels<T, kK, 2>(row, inside.stride, slopes + first, stride, c.out_height(), c.out_width(), to);
          else
            weights_row_of_channels<T, kK, 1>(row, inside.stride, slopes + first, stride, c.out_height(), c.out_width(), to);
        }
      first += vectors * kLanes<T>;
    }
  }
  void add_to(const Convolution& c, T* d_w) const {
    const std::size_t window = c.C * c.K * c.K;
    for (std::size_t o = 0; o < c.OC; ++o)
      for (std::size_t j = 0; j < window; ++j) d_w[o * window + j] += sums[j * stride + o];
  }
};

}  // namespace

template <class T>
void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out) {
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) return onednn::convolve(exec, c, B, w, bias, in, out);
#endif
  Workspace::Frame frame(*exec.workspace);
  const std::size_t OH = c.out_height(), OW = c.out_width();
  const Packing packing = Packing::of<T>(c.C, c.H, c.W, c.P, OW);
  const Rows rows = rows_of<T>(OH, OW, packing.stride);
  T *packed = frame.take<T>(packing.size()), *weights = frame.take<T>(c.OC * c.C * c.K * c.K),
    *raw = frame.take<T>(c.OC * OH * rows.out_stride);
  pack_weights(
      c.OC, c.C, c.K, [&](std::size_t o, std::size_t ch, std::size_t i, std::size_t j) { return w[((o * c.C + ch) * c.K + i) * c.K + j]; },
      weights);
  packing.clear(packed);
  for (std::size_t b = 0; b < B; ++b) {
    packing.pack(in + b * c.C * c.H * c.W, packed);
    convolve_packed(packed, packing, c.OC, c.C, c.K, weights, rows, raw);
    for (std::size_t o = 0; o < c.OC; ++o) {
      const T shift = bias == nullptr ? T(0) : bias[o];
      for (std::size_t y = 0; y < OH; ++y) {
        const T* from = raw + (o * OH + y) * rows.out_stride;
        T* to = out + ((b * c.OC + o) * OH + y) * OW;
        for (std::size_t x = 0; x < OW; ++x) to[x] = from[x] + shift;
      }
    }
  }
}

template <class T>
void convolve_back(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* in, const T* d_out, bool add, T* d_in,
                   T* d_w) {
  if (is_mostly_zero(c, B, d_out)) return sparse_convolve_back(exec, c, B, w, in, d_out, add, d_in, d_w);
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>) return onednn::convolve_back(exec, c, B, w, in, d_out, add, d_in, d_w);
#endif
  Workspace::Frame frame(*exec.workspace);
  const std::size_t OH = c.out_height(), OW = c.out_width(), Q = c.K - 1 - c.P;
  const Packing inside = Packing::of<T>(c.C, c.H, c.W, c.P, OW), outside = Packing::of<T>(c.OC, OH, OW, Q, std::max(OW, c.W));
  const Rows rows = rows_of<T>(c.H, c.W, outside.stride);
  const bool runs_along_channels = c.OC >= kManyChannels<T>;
  const std::size_t group = runs_along_channels ? 1 : std::min(kGroup, B);
  T *packed = frame.take<T>(group * inside.size()), *slopes = frame.take<T>(group * outside.size());
  T *weights = frame.take<T>(c.OC * c.C * c.K * c.K), *raw = frame.take<T>(c.C * c.H * rows.out_stride);
  if (d_in != nullptr)  // by the input: a convolution with the windows turned around, channels exchanged
    pack_weights(
        c.C, c.OC, c.K,
        [&](std::size_t o, std::size_t ch, std::size_t i, std::size_t j) {
          return w[((ch * c.C + o) * c.K + c.K - 1 - i) * c.K + c.K - 1 - j];
        },
        weights);
  if (!add) std::fill_n(d_w, c.OC * c.C * c.K * c.K, T(0));
  std::optional<ChannelSums<T>> many;
  if (runs_along_channels) many.emplace(frame, c);
  const bool packs_slopes = !many || d_in != nullptr;
  for (std::size_t b = 0; b < group; ++b) {
    inside.clear(packed + b * inside.size());
    if (packs_slopes) outside.clear(slopes + b * outside.size());
  }
  for (std::size_t first = 0; first < B; first += group) {
    const std::size_t images = std::min(group, B - first);
    for (std::size_t b = 0; b < images; ++b) {
      inside.pack(in + (first + b) * c.C * c.H * c.W, packed + b * inside.size());
      if (packs_slopes) outside.pack(d_out + (first + b) * c.OC * OH * OW, slopes + b * outside.size());
    }
    for (std::size_t b = 0; many && b < images; ++b) {
      const T *from = packed + b * inside.size(), *by_out = d_out + (first + b) * c.OC * OH * OW;
      if (c.K == 3) many->template add_image<3>(c, from, inside, by_out);
      if (c.K == 5) many->template add_image<5>(c, from, inside, by_out);
      if (c.K == 7) many->template add_image<7>(c, from, inside, by_out);
    }
    if (!many && c.K == 3) weights_of_group<T, 3>(c, packed, inside, slopes, outside, images, d_w);
    if (!many && c.K == 5) weights_of_group<T, 5>(c, packed, inside, slopes, outside, images, d_w);
    if (!many && c.K == 7) weights_of_group<T, 7>(c, packed, inside, slopes, outside, images, d_w);
    for (std::size_t b = 0; d_in != nullptr && b < images; ++b) {
      convolve_packed(slopes + b * outside.size(), outside, c.C, c.OC, c.K, weights, rows, raw);
      for (std::size_t p = 0; p < c.C * c.H; ++p) std::copy_n(raw + p * rows.out_stride, c.W, d_in + ((first + b) * c.C * c.H + p) * c.W);
    }
  }
  if (many) many->add_to(c, d_w);
}

template void convolve(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, float*);
template void convolve(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, double*);
template void convolve_back(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, bool, float*, float*);
template void convolve_back(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, bool, double*,
                            double*);

}  // namespace fl::nn
