#include "clients/nn/winograd.hpp"

#include <algorithm>

#include "clients/nn/tiles.hpp"
#include "clients/nn/transpose.hpp"
#include "clients/nn/winograd_transform.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::nn::winograd {

namespace {

constexpr std::size_t kChannelsOfBlock =
    64;                                    // inputs and outputs of a block of transformed weights, which fits into the second-level cache
constexpr std::size_t kTilesOfBlock = 64;  // tiles that are transformed before the products use them
constexpr std::size_t kWindowsTogether = 16;  // windows of weights that are transposed at once
constexpr std::size_t kLeastChannels = 16, kLeastTiles = 4;

std::size_t pieces_of(std::size_t total, std::size_t most) { return (total + most - 1) / most; }

// The products of an output channel and an input channel on an image: at all positions of its tiles.
std::size_t products_of(std::size_t height, std::size_t width, std::size_t window, std::size_t tile) {
  const std::size_t side = tile + window - 1;
  return pieces_of(height, tile) * pieces_of(width, tile) * side * side;
}
std::size_t best_tile(std::size_t height, std::size_t width, std::size_t window) {
  return window == 5 || products_of(height, width, window, 2) < products_of(height, width, window, 4) ? 2 : 4;
}

// Images [B,C,H,W] with P zeros around them, and outputs {O,OH,OW} of K x K windows.
struct Images {
  std::size_t B, C, H, W, P, O, OH, OW, K;
};
Images outputs_of(const Convolution& c, std::size_t B) { return {B, c.C, c.H, c.W, c.P, c.OC, c.out_height(), c.out_width(), c.K}; }
// The derivative by the input is a convolution of the slopes with the turned windows.
Images inputs_of(const Convolution& c, std::size_t B) {
  return {B, c.OC, c.out_height(), c.out_width(), c.K - 1 - c.P, c.C, c.H, c.W, c.K};
}

// Tiles of outputs. A strip is a row of tiles of one image; blocks of whole strips are computed one after another.
struct Tiling {
  std::size_t across, down, strips, blocks;
  static Tiling of(const Images& images, std::size_t tile) {
    Tiling t{pieces_of(images.OW, tile), pieces_of(images.OH, tile), 0, 1};
    t.strips = images.B * t.down;
    // If tiles are fewer than outputs, all of them take less memory than the transformed weights, which then need not be kept.
    if (t.strips * t.across > std::max(images.O, kTilesOfBlock))
      t.blocks = std::min(t.strips, pieces_of(t.strips * t.across, std::max(kTilesOfBlock, t.across)));
    return t;
  }
  [[nodiscard]] std::size_t first(std::size_t block) const { return strips * block / blocks; }
  [[nodiscard]] std::size_t most_tiles() const { return pieces_of(strips, blocks) * across; }
};
struct Strips {
  std::size_t first, last;
};
// Channels [first, last).
struct Channels {
  std::size_t first, last;
  [[nodiscard]] std::size_t count() const { return last - first; }
};
// Calls f(number, channels) for blocks of channels.
template <class F>
void each_block(std::size_t channels, const F& f) {
  for (std::size_t first = 0; first < channels; first += kChannelsOfBlock)
    f(first / kChannelsOfBlock, Channels{first, std::min(channels, first + kChannelsOfBlock)});
}

// A matrix for each position of a transformed tile. Rows are whole vectors; neither rows nor matrices begin a power of two apart, which
// would map them to the same lines of the first-level cache.
template <class T>
struct Matrices {
  std::size_t row = 0, matrix = 0, positions = 0;  // distances between rows and between matrices
  T* data = nullptr;
  Matrices(std::size_t side, std::size_t rows, std::size_t columns) : row(pieces_of(columns, kLanes<T>) * kLanes<T>) {
    if (row >= 4 * kChannelsOfBlock) row += kLanes<T>;
    matrix = rows * row + kLanes<T>;
    positions = side * side;
  }
  [[nodiscard]] std::size_t size() const { return positions * matrix; }
  [[nodiscard]] T* at(std::size_t position) const { return data + position * matrix; }
};

// Copies rows [y, y + rows) of some channels of an image to `to` [rows, width, lane], `left` pixels from the left edge. Rows outside the
// image are 0; pixels beside it stay as they are.
template <class T>
void copy_strip(const Images& images, const T* image, std::size_t channels, std::ptrdiff_t y, std::size_t rows, std::size_t left,
                std::size_t width, T* to) {
  const auto height = static_cast<std::ptrdiff_t>(images.H), count = static_cast<std::ptrdiff_t>(rows);
  const auto first = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(-y, 0, count));
  const auto last = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(height - y, static_cast<std::ptrdiff_t>(first), count));
  const std::size_t row = width * kLanes<T>;
  std::fill_n(to, first * row, T(0));
  std::fill_n(to + last * row, (rows - last) * row, T(0));
  if (first == last) return;
  T* at = to + first * row + left * kLanes<T>;
  std::size_t x = 0;
  const auto put = [&](Vec<T> v) __attribute__((always_inline)) {
    store(at, v);
    at += kLanes<T>;
    if (++x < images.W) return;
    x = 0;
    at += row - images.W * kLanes<T>;
  };
  const T* from = image + static_cast<std::size_t>(y + static_cast<std::ptrdiff_t>(first)) * images.W;
  for_each_column(from, images.H * images.W, channels, (last - first) * images.W, put);
}

// Transforms tiles of kIn x kIn pixels that begin F::kTile apart: v [position][tile, channel].
template <class F, class T, std::size_t kIn, void (*kFunction)(const Vec<T> (&)[kIn], Vec<T> (&)[F::kSide])>
void read_tiles(const Exec& exec, const Images& images, const Tiling& tiling, Strips strips, const T* in, const Matrices<T>& v) {
  const std::size_t width = (tiling.across - 1) * F::kTile + kIn;
  Workspace::Frame frame(*exec.workspace);
  T* strip = frame.take<T>(kIn * width * kLanes<T>);
  std::fill_n(strip, kIn * width * kLanes<T>, T(0));
  for (std::size_t c = 0; c < images.C; c += kLanes<T>) {
    T* to = v.data + c;
    for (std::size_t s = strips.first; s < strips.last; ++s) {
      const std::size_t image = (s / tiling.down * images.C + c) * images.H * images.W;
      const auto y = static_cast<std::ptrdiff_t>(s % tiling.down * F::kTile) - static_cast<std::ptrdiff_t>(images.P);
      copy_strip(images, in + image, std::min(kLanes<T>, images.C - c), y, kIn, images.P, width, strip);
      for (std::size_t t = 0; t < tiling.across; ++t, to += v.row) {
        const T* from = strip + t * F::kTile * kLanes<T>;
        transform_square<T, kIn, F::kSide, kFunction>(
            [&](std::size_t i, std::size_t j) __attribute__((always_inline)) { return load(from + (i * width + j) * kLanes<T>); },
            [&](std::size_t i, std::size_t j, Vec<T> value)
                __attribute__((always_inline)) { store(to + (i * F::kSide + j) * v.matrix, value); });
      }
    }
  }
}
template <class F, class T = typename F::T>
void read_images(const Exec& exec, const Images& images, const Tiling& tiling, Strips strips, const T* in, const Matrices<T>& v) {
  read_tiles<F, T, F::kSide, F::image>(exec, images, tiling, strips, in, v);
}
template <class F, class T = typename F::T>
void read_slopes(const Exec& exec, const Images& images, const Tiling& tiling, Strips strips, const T* d_out, const Matrices<T>& v) {
  const Images slopes{images.B, images.O, images.OH, images.OW, 0, images.C, images.H, images.W, images.K};
  read_tiles<F, T, F::kTile, F::slopes>(exec, slopes, tiling, strips, d_out, v);
}

// Weights [O,C,K,K] as stored, or turned: then they lead from O to C, and windows are read from their end.
template <class T>
struct Weights {
  const T* data;
  std::size_t C;
  bool turned;
};
// Transforms the weights from some inputs to some outputs: u [position][input, output].
template <class F, class T = typename F::T>
void transform_weights(const Weights<T>& w, Channels inputs, Channels outputs, const Matrices<T>& u) {
  constexpr std::size_t kWeights = F::kWindow * F::kWindow;
  alignas(kVectorBytes) T windows[kWindowsTogether * kWeights * kLanes<T>];
  for (std::size_t o = outputs.first; o < outputs.last; o += kLanes<T>) {
    const std::size_t rows = std::min(kLanes<T>, outputs.last - o);
    for (std::size_t first = inputs.first; first < inputs.last; first += kWindowsTogether) {
      const std::size_t count = std::min(kWindowsTogether, inputs.last - first);
      T* at = windows;
      const auto put = [&at](Vec<T> v) __attribute__((always_inline)) {
        store(at, v);
        at += kLanes<T>;
      };
      if (w.turned)
        for (std::size_t c = 0; c < count; ++c) for_each_column(w.data + ((first + c) * w.C + o) * kWeights, kWeights, rows, kWeights, put);
      else
        for_each_column(w.data + (o * w.C + first) * kWeights, w.C * kWeights, rows, count * kWeights, put);
      for (std::size_t c = 0; c < count; ++c) {
        const T* from = windows + c * kWeights * kLanes<T>;
        T* to = u.data + (first - inputs.first + c) * u.row + (o - outputs.first);
        transform_square<T, F::kWindow, F::kSide, F::weights>(
            [&](std::size_t i, std::size_t j) __attribute__((always_inline)) {
              return load(from + (w.turned ? kWeights - 1 - (F::kWindow * i + j) : F::kWindow * i + j) * kLanes<T>);
            },
            [&](std::size_t i, std::size_t j, Vec<T> value)
                __attribute__((always_inline)) { store(to + (i * F::kSide + j) * u.matrix, value); });
      }
    }
  }
}

// From products m [position][tile, output] to some channels of out [B,O,OH,OW].
template <class F, class T = typename F::T>
void write_outputs(const Exec& exec, const Images& images, const Tiling& tiling, Strips strips, const Matrices<T>& m, Channels outputs,
                   const T* bias, T* out) {
  const std::size_t plane = images.OH * images.OW, width = tiling.across * F::kTile;
  Workspace::Frame frame(*exec.workspace);
  T* strip = frame.take<T>(F::kTile * width * kLanes<T>);
  for (std::size_t o = outputs.first; o < outputs.last; o += kLanes<T>) {
    const std::size_t channels = std::min(kLanes<T>, outputs.last - o);
    const Vec<T> start = bias == nullptr ? Vec<T>{} : load_some(bias + o, channels);
    const T* from = m.data + (o - outputs.first);
    for (std::size_t s = strips.first; s < strips.last; ++s) {
      for (std::size_t t = 0; t < tiling.across; ++t, from += m.row)
        transform_square<T, F::kSide, F::kTile, F::outputs>(
            [&](std::size_t i, std::size_t j) __attribute__((always_inline)) { return load(from + (i * F::kSide + j) * m.matrix); },
            [&](std::size_t i, std::size_t j, Vec<T> value)
                __attribute__((always_inline)) { store(strip + (i * width + t * F::kTile + j) * kLanes<T>, value + start); });
      const std::size_t y = s % tiling.down * F::kTile, rows = std::min(F::kTile, images.OH - y);
      const T* at = strip;
      std::size_t x = 0;
      const auto get = [&]() __attribute__((always_inline)) {
        const Vec<T> v = load(at);
        at += kLanes<T>;
        if (++x == images.OW) x = 0, at += (width - images.OW) * kLanes<T>;
        return v;
      };
      T* to = out + (s / tiling.down * images.O + o) * plane + y * images.OW;
      store_columns(channels, rows * images.OW, get, false, to, plane);
    }
  }
}

// out [B,O,OH,OW] from in [B,C,H,W].
template <class F, class T = typename F::T>
void multiply_tiles(const Exec& exec, const Images& images, const Weights<T>& w, const T* bias, const T* in, T* out) {
  Workspace::Frame frame(*exec.workspace);
  const Tiling tiling = Tiling::of(images, F::kTile);
  const std::size_t input_blocks = pieces_of(images.C, kChannelsOfBlock), output_blocks = pieces_of(images.O, kChannelsOfBlock);
  Matrices<T> v(F::kSide, tiling.most_tiles(), images.C), m(F::kSide, tiling.most_tiles(), std::min(images.O, kChannelsOfBlock));
  Matrices<T> u(F::kSide, std::min(images.C, kChannelsOfBlock), std::min(images.O, kChannelsOfBlock));
  v.data = frame.take<T>(v.size());
  m.data = frame.take<T>(m.size());
  T* weights = frame.take<T>(u.size() * (tiling.blocks > 1 ? input_blocks * output_blocks : 1));
  for (std::size_t block = 0; block < tiling.blocks; ++block) {
    const Strips strips{tiling.first(block), tiling.first(block + 1)};
    const std::size_t tiles = (strips.last - strips.first) * tiling.across;
    read_images<F>(exec, images, tiling, strips, in, v);
    each_block(images.O, [&](std::size_t o, Channels outputs) {
      each_block(images.C, [&](std::size_t c, Channels inputs) {
        u.data = weights + (tiling.blocks > 1 ? o * input_blocks + c : 0) * u.size();
        if (block == 0) transform_weights<F>(w, inputs, outputs, u);
        const std::size_t columns = pieces_of(outputs.count(), kLanes<T>) * kLanes<T>;
        for (std::size_t p = 0; p < u.positions; ++p)
          tiles::multiply(tiles, columns, inputs.count(), v.at(p) + inputs.first, v.row, std::size_t{1}, u.at(p), u.row, c > 0, m.at(p),
                          m.row);
      });
      write_outputs<F>(exec, images, tiling, strips, m, outputs, bias, out);
    });
  }
}

// From u [position][output, input] to d_w [O,C,K,K].
template <class F, class T = typename F::T>
void place_weights(const Matrices<T>& u, std::size_t C, Channels outputs, Channels inputs, bool add, T* d_w) {
  constexpr std::size_t kWeights = F::kWindow * F::kWindow;
  for (std::size_t o = outputs.first; o < outputs.last; ++o)
    for (std::size_t c = inputs.first; c < inputs.last; c += kLanes<T>) {
      const T* from = u.data + (o - outputs.first) * u.row + (c - inputs.first);
      Vec<T> window[kWeights];
      transform_square<T, F::kSide, F::kWindow, F::gradient>(
          [&](std::size_t i, std::size_t j) __attribute__((always_inline)) { return load(from + (i * F::kSide + j) * u.matrix); },
          [&](std::size_t i, std::size_t j, Vec<T> value) __attribute__((always_inline)) { window[F::kWindow * i + j] = value; });
      const Vec<T>* at = window;
      store_columns<T>(
          std::min(kLanes<T>, inputs.last - c), kWeights, [&at]() { return *at++; }, add, d_w + (o * C + c) * kWeights, kWeights);
    }
}

// d_w [O,C,K,K] from in [B,C,H,W] and d_out [B,O,OH,OW].
template <class F, class T = typename F::T>
void multiply_transformed_slopes(const Exec& exec, const Images& images, const T* in, const T* d_out, bool add, T* d_w) {
  Workspace::Frame frame(*exec.workspace);
  const Tiling tiling = Tiling::of(images, F::kTile);
  const std::size_t input_blocks = pieces_of(images.C, kChannelsOfBlock), output_blocks = pieces_of(images.O, kChannelsOfBlock);
  Matrices<T> v(F::kSide, tiling.most_tiles(), images.C), slopes(F::kSide, tiling.most_tiles(), images.O);
  Matrices<T> u(F::kSide, std::min(images.O, kChannelsOfBlock), std::min(images.C, kChannelsOfBlock));
  v.data = frame.take<T>(v.size());
  slopes.data = frame.take<T>(slopes.size());
  T* gradient = frame.take<T>(u.size() * (tiling.blocks > 1 ? input_blocks * output_blocks : 1));
  for (std::size_t block = 0; block < tiling.blocks; ++block) {
    const Strips strips{tiling.first(block), tiling.first(block + 1)};
    const std::size_t tiles = (strips.last - strips.first) * tiling.across;
    read_images<F>(exec, images, tiling, strips, in, v);
    read_slopes<F>(exec, images, tiling, strips, d_out, slopes);
    each_block(images.O, [&](std::size_t o, Channels outputs) {
      each_block(images.C, [&](std::size_t c, Channels inputs) {
        u.data = gradient + (tiling.blocks > 1 ? o * input_blocks + c : 0) * u.size();
        const std::size_t columns = pieces_of(inputs.count(), kLanes<T>) * kLanes<T>;
        for (std::size_t p = 0; p < u.positions; ++p)
          tiles::multiply(outputs.count(), columns, tiles, slopes.at(p) + outputs.first, std::size_t{1}, slopes.row, v.at(p) + inputs.first,
                          v.row, block > 0, u.at(p), u.row);
        if (block + 1 == tiling.blocks) place_weights<F>(u, images.C, outputs, inputs, add, d_w);
      });
    });
  }
}

// Entries of multiply_tiles() and multiply_transformed_slopes(), with room for the ends of rows.
std::size_t room_of(const Images& images) {
  const std::size_t tile = best_tile(images.OH, images.OW, images.K), side = tile + images.K - 1;
  const Tiling tiling = Tiling::of(images, tile);
  const auto padded = [](std::size_t channels) { return channels + 2 * kLanes<float>; };
  const std::size_t kept = tiling.blocks > 1 ? padded(images.C) * padded(images.O) : padded(kChannelsOfBlock) * padded(kChannelsOfBlock);
  return side * side * (tiling.most_tiles() * (padded(images.C) + padded(images.O)) + kept);
}

// Calls f<Transform>() for the transform of some outputs.
template <class T, class F>
void with_transform(const Images& images, const F& f) {
  if (images.K == 5) return f.template operator()<Transform<T, 2, 5>>();
  if (best_tile(images.OH, images.OW, images.K) == 2) return f.template operator()<Transform<T, 2, 3>>();
  f.template operator()<Transform<T, 4, 3>>();
}

}  // namespace

bool suits(const Convolution& c, std::size_t B) {
  if ((c.K != 3 && c.K != 5) || c.S != 1 || c.P >= c.K || std::min(c.C, c.OC) < kLeastChannels) return false;
  const std::size_t height = c.out_height(), width = c.out_width(), tile = best_tile(height, width, c.K);
  return B * pieces_of(height, tile) * pieces_of(width, tile) >= kLeastTiles &&
         3 * products_of(height, width, c.K, tile) <= 2 * c.K * c.K * height * width;
}

std::size_t room_size(const Convolution& c, std::size_t B) {
  return suits(c, B) ? std::max(room_of(outputs_of(c, B)), room_of(inputs_of(c, B))) : 0;
}

template <class T>
void convolve(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* bias, const T* in, T* out) {
  const Images images = outputs_of(c, B);
  with_transform<T>(images, [&]<class F>() { multiply_tiles<F>(exec, images, {w, c.C, false}, bias, in, out); });
}

template <class T>
void convolve_back_to_input(const Exec& exec, const Convolution& c, std::size_t B, const T* w, const T* d_out, T* d_in) {
  const Images images = inputs_of(c, B);
  with_transform<T>(images, [&]<class F>() { multiply_tiles<F, T>(exec, images, {w, c.C, true}, nullptr, d_out, d_in); });
}

template <class T>
void convolve_back_to_weights(const Exec& exec, const Convolution& c, std::size_t B, const T* in, const T* d_out, bool add, T* d_w) {
  const Images images = outputs_of(c, B);
  with_transform<T>(images, [&]<class F>() { multiply_transformed_slopes<F>(exec, images, in, d_out, add, d_w); });
}

template void convolve(const Exec&, const Convolution&, std::size_t, const float*, const float*, const float*, float*);
template void convolve(const Exec&, const Convolution&, std::size_t, const double*, const double*, const double*, double*);
template void convolve_back_to_input(const Exec&, const Convolution&, std::size_t, const float*, const float*, float*);
template void convolve_back_to_input(const Exec&, const Convolution&, std::size_t, const double*, const double*, double*);
template void convolve_back_to_weights(const Exec&, const Convolution&, std::size_t, const float*, const float*, bool, float*);
template void convolve_back_to_weights(const Exec&, const Convolution&, std::size_t, const double*, const double*, bool, double*);

}  // namespace fl::nn::winograd
