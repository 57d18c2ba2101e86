#include "clients/nn/window_gradient.hpp"

#include <algorithm>

#include "clients/nn/register_tile.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn {

namespace {

constexpr std::size_t kImageBytes = 384 << 10;  // of images, in the second-level cache
constexpr std::size_t kOutputsOfGroup = 1024;   // terms of a sum between two visits to memory
constexpr std::size_t kChannelsOfTurn = 64;     // channels of images that all rows of tiles read in turn

// Bands of rows of images stored [row, column, channel] with zeros around them.
struct Bands {
  std::size_t rows, count;                 // outputs' rows of a band, bands of an image
  std::size_t height, width, size, group;  // of a band's input: rows, pixels of a row, numbers; bands that are stored at once
  template <class T>
  static Bands of(const Convolution& c, std::size_t B) {
    Bands b{};
    b.width = (c.out_width() - 1) * c.S + c.K;
    const std::size_t room = kImageBytes / sizeof(T), row = b.width * c.C;
    const std::size_t fitting = std::max(2 * room / row, c.K) - c.K;  // input rows beside the last window
    b.rows = std::clamp<std::size_t>(std::min(fitting / c.S + 1, kOutputsOfGroup / c.out_width()), 1, c.out_height());
    b.count = (c.out_height() + b.rows - 1) / b.rows;
    b.rows = (c.out_height() + b.count - 1) / b.count;
    b.height = (b.rows - 1) * c.S + c.K;
    b.size = b.height * row;
    b.group = std::clamp<std::size_t>(std::min(room / b.size, kOutputsOfGroup / (b.rows * c.out_width())), 1, B * b.count);
    return b;
  }
};

// Writes the pixels of a band: output row `first` begins at its first row.
template <class T>
void store_band(const Convolution& c, const Bands& bands, std::size_t first, const T* image, T* to) {
  constexpr std::size_t kSide = 16;
  const std::size_t from_x = c.P, to_x = std::min(bands.width, c.P + c.W);
  for (std::size_t r = 0; r < bands.height; ++r, to += bands.width * c.C) {
    const std::size_t y = first * c.S + r;
    if (y < c.P || y >= c.P + c.H) {
      std::fill_n(to, bands.width * c.C, T(0));
      continue;
    }
    std::fill_n(to, std::min(from_x, bands.width) * c.C, T(0));
    const T* row = image + (y - c.P) * c.W;
    for (std::size_t channel = 0; channel < c.C; channel += kSide)
      for (std::size_t x = from_x; x < to_x; ++x)
        for (std::size_t i = channel; i < std::min(c.C, channel + kSide); ++i) to[x * c.C + i] = row[i * c.H * c.W + x - c.P];
    if (to_x < bands.width) std::fill_n(to + std::max(to_x, from_x) * c.C, (bands.width - std::max(to_x, from_x)) * c.C, T(0));
  }
}

// Writes slopes of some rows of an image as tiles read them: [tiles' rows of channels][output, channel], `all` outputs in each.
template <class T>
void pack_slopes(const Convolution& c, std::size_t outputs, const T* d_out, std::size_t all, std::size_t first, T* packed) {
  const std::size_t plane = c.out_height() * c.out_width();
  evenly<kTileRows>(c.OC, [&]<int kR>(std::size_t o) {
    T* to = packed + o * all + first * kR;
    const T* from = d_out + o * plane;
    for (std::size_t p = 0; p < outputs; ++p, to += kR)
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) to[r] = from[static_cast<std::size_t>(r) * plane + p];
  });
}

// The vectors of the weights' gradient: vector q of window row i, those of the same channels one after another.
struct RowVectors {
  std::size_t per_row, count;
  std::size_t *at, *to;  // in a band, and in the sums
};
template <class T>
RowVectors row_vectors(Workspace::Frame& frame, const Convolution& c, const Bands& bands) {
  RowVectors v{(c.K * c.C + kLanes<T> - 1) / kLanes<T>, 0, nullptr, nullptr};
  v.count = c.K * v.per_row;
  v.at = frame.take<std::size_t>(v.count);
  v.to = frame.take<std::size_t>(v.count);
  const std::size_t turn = c.C % kLanes<T> == 0 ? std::min(c.C, kChannelsOfTurn) / kLanes<T> : v.per_row;
  const std::size_t column = c.C % kLanes<T> == 0 ? c.C / kLanes<T> : v.per_row;  // vectors of a pixel
  std::size_t n = 0;
  for (std::size_t first = 0; first < column; first += turn)
    for (std::size_t i = 0; i < c.K; ++i)
      for (std::size_t q = 0; q < v.per_row; ++q)
        if (q % column >= first && q % column < first + turn) {
          v.at[n] = i * bands.width * c.C + q * kLanes<T>;
          v.to[n++] = (i * v.per_row + q) * kLanes<T>;
        }
  return v;
}

// From sums [OC, K, row of channels] to d_w [OC,C,K,K].
template <class T>
void place_gradient(const Convolution& c, const RowVectors& v, const T* sums, bool add, T* d_w) {
  const std::size_t row = v.per_row * kLanes<T>;
  for (std::size_t o = 0; o < c.OC; ++o, sums += c.K * row, d_w += c.C * c.K * c.K)
    for (std::size_t i = 0; i < c.K; ++i)
      for (std::size_t j = 0; j < c.K; ++j) {
        const T* from = sums + i * row + j * c.C;
        T* to = d_w + i * c.K + j;
        if (add)
          for (std::size_t channel = 0; channel < c.C; ++channel) to[channel * c.K * c.K] += from[channel];
        else
          for (std::size_t channel = 0; channel < c.C; ++channel) to[channel * c.K * c.K] = from[channel];
      }
}

}  // namespace

template <class T>
void multiply_slopes(const Exec& exec, const Convolution& c, std::size_t B, const T* in, const T* d_out, bool add, T* d_w) {
  Workspace::Frame frame(*exec.workspace);
  const Bands bands = Bands::of<T>(c, B);
  const std::size_t OW = c.out_width(), most = bands.group * bands.rows * OW;
  T *x = frame.take<T>(bands.group * bands.size + kLanes<T>), *packed = frame.take<T>(c.OC * most);
  auto* offset = frame.take<std::uint32_t>(most);
  const RowVectors vectors = row_vectors<T>(frame, c, bands);
  const std::size_t sums_of = vectors.count * kLanes<T>;
  T* sums = frame.take<T>(c.OC * sums_of);
  const std::size_t turn =
      std::max<std::size_t>(1, c.C % kLanes<T> == 0 ? vectors.count * std::min(c.C, kChannelsOfTurn) / c.C : vectors.count);
  for (std::size_t begin = 0; begin < B * bands.count; begin += bands.group) {
    const std::size_t end = std::min(B * bands.count, begin + bands.group);
    std::size_t terms = 0;
    for (std::size_t band = begin; band < end; ++band) terms += std::min(bands.rows, c.out_height() - band % bands.count * bands.rows) * OW;
    for (std::size_t band = begin, l = 0; band < end; ++band) {
      const std::size_t b = band / bands.count, first = band % bands.count * bands.rows;
      const std::size_t rows = std::min(bands.rows, c.out_height() - first);
      store_band(c, bands, first, in + b * c.C * c.H * c.W, x + (band - begin) * bands.size);
      pack_slopes(c, rows * OW, d_out + b * c.OC * c.out_height() * OW + first * OW, terms, l, packed);
      for (std::size_t p = 0; p < rows * OW; ++p, ++l)
        offset[l] = static_cast<std::uint32_t>((band - begin) * bands.size + (p / OW * bands.width + p % OW) * c.S * c.C);
    }
    for (std::size_t v = 0; v < vectors.count; v += turn)
      evenly<kTileRows>(c.OC, [&]<int kR>(std::size_t o) {
        register_tiles<T, kR>({terms, packed + o * terms, x, offset}, std::min(turn, vectors.count - v), vectors.at + v,
                              {sums + o * sums_of, sums_of, begin > 0, nullptr}, vectors.to + v);
      });
  }
  place_gradient(c, vectors, sums, add, d_w);
}

template void multiply_slopes(const Exec&, const Convolution&, std::size_t, const float*, const float*, bool, float*);
template void multiply_slopes(const Exec&, const Convolution&, std::size_t, const double*, const double*, bool, double*);

}  // namespace fl::nn
