// "conv2d": products with matrices of windows that are never written to memory. All of a client's images are one product.
//
//   forward    out_k [channels, (b,y,x)]    = W [channels, (c,i,j)] windows [(c,i,j), (b,y,x)]
//   weights    d_W   [channels, (c,i,j)]    = d_out [channels, (b,y,x)] windows^T
//   input      d_in  [c, (b,row,column)]    = W^T [c, (channel,i,j)] slopes [(channel,i,j), (b,row,column)]: the slope of the output whose
//                                             window has this pixel at (i,j), 0 if there is no such output
#include <bit>
#include <string>

#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/bias.cuh"
#include "clients/cuda/tiled_product.cuh"
#include "fl_core/ops/cuda/measured_choice.hpp"

namespace fl::cuda {
namespace {

// The divisors of the kernels.
struct Divisors {
  Divisor kernels, squares, out_widths, out_heights, out_planes, widths, heights, strides;
};

// The sizes of a convolution, and the divisors of its kernels.
struct Geometry {
  std::uint32_t channels, height, width, out_channels, out_height, out_width, kernel, padding, stride;
  Divisors by;
  explicit Geometry(const LayerForm& form)
      : channels(of(form, "channels")),
        height(of(form, "height")),
        width(of(form, "width")),
        out_channels(of(form, "out_channels")),
        out_height(of(form, "out_height")),
        out_width(of(form, "out_width")),
        kernel(of(form, "kernel")),
        padding(of(form, "padding")),
        stride(of(form, "stride")),
        by{Divisor(kernel),
           Divisor(std::size_t{kernel} * kernel),
           Divisor(out_width),
           Divisor(out_height),
           Divisor(std::size_t{out_height} * out_width),
           Divisor(width),
           Divisor(height),
           Divisor(stride)} {}
  [[nodiscard]] static std::uint32_t of(const LayerForm& form, const char* number) { return static_cast<std::uint32_t>(form.size(number)); }
  [[nodiscard]] FL_HD std::uint32_t window() const { return channels * by.squares.divisor; }
  [[nodiscard]] FL_HD std::uint32_t pixels() const { return by.out_planes.divisor; }
  [[nodiscard]] FL_HD std::uint32_t image() const { return channels * height * width; }
};

// An address in a client's memory, or an offset from one, with a row and a column. Both may have wrapped around below zero.
struct Corner {
  std::uint32_t at, row, column;
};
struct Inside {
  std::uint32_t at;
  std::uint16_t i, j;
};

// The windows of client k's images: entry (c,i,j) of the window at (b,y,x).
template <class T>
struct WindowsView {
  Geometry g;
  const T* images;
  [[nodiscard]] __device__ Corner corner(std::uint32_t place) const {
    std::uint32_t b = place;
    const std::uint32_t x = g.by.out_widths.split(b), y = g.by.out_heights.split(b);
    const std::uint32_t row = y * g.stride - g.padding, column = x * g.stride - g.padding;
    return {b * g.image() + row * g.width + column, row, column};
  }
  [[nodiscard]] __device__ Inside inside(std::uint32_t number) const {
    std::uint32_t c = number;
    const std::uint32_t j = g.by.kernels.split(c), i = g.by.kernels.split(c);
    return {(c * g.height + i) * g.width + j, static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)};
  }
  [[nodiscard]] __device__ Located<T> entry(const Corner& corner, const Inside& inside) const {
    return {images + (corner.at + inside.at), corner.row + inside.i < g.height && corner.column + inside.j < g.width};
  }
};
template <class T>
struct ByInside : WindowsView<T> {
  static constexpr bool kRunsInward = false, kTakesLong = true;
  [[nodiscard]] __device__ Corner line(std::uint32_t place) const { return this->corner(place); }
  [[nodiscard]] __device__ Inside deep(std::uint32_t number) const { return this->inside(number); }
  [[nodiscard]] __device__ Located<T> find(const Corner& corner, const Inside& inside) const { return this->entry(corner, inside); }
};
template <class T>
struct ByPlace : WindowsView<T> {
  static constexpr bool kRunsInward = true, kTakesLong = true;  // neighbouring positions are neighbours in memory
  [[nodiscard]] __device__ Inside line(std::uint32_t number) const { return this->inside(number); }
  [[nodiscard]] __device__ Corner deep(std::uint32_t place) const { return this->corner(place); }
  [[nodiscard]] __device__ Located<T> find(const Inside& inside, const Corner& corner) const { return this->entry(corner, inside); }
};
template <class T, class View>
struct Windows {
  static constexpr bool kRunsInward = View::kRunsInward, kTakesLong = View::kTakesLong;
  Geometry g;
  const T* images;
  std::size_t per_client;
  [[nodiscard]] __device__ View open(std::size_t k) const { return {{g, images + k * per_client}}; }
};

// A matrix [lines, (outer,inner)] whose memory layout is [outer,lines,inner].
template <class T>
struct TurnedView {
  const T* data;
  std::uint32_t lines;
  Divisor inner;
  [[nodiscard]] __device__ std::uint32_t line(std::uint32_t i) const { return i * inner.divisor; }
  [[nodiscard]] __device__ std::uint32_t deep(std::uint32_t e) const {
    std::uint32_t outer = e;
    const std::uint32_t within = inner.split(outer);
    return outer * lines * inner.divisor + within;
  }
  [[nodiscard]] __device__ Located<T> find(std::uint32_t line, std::uint32_t deep) const { return {data + (line + deep)}; }
};
template <class T>
struct Turned {
  static constexpr bool kRunsInward = true, kTakesLong = false;
  const T* data;
  std::size_t stride;  // of clients
  std::uint32_t lines;
  Divisor inner;
  [[nodiscard]] __device__ TurnedView<T> open(std::size_t k) const { return {data + k * stride, lines, inner}; }
};

// The slope of output (channel, y, x) whose window at (y, x) has pixel (row, column) at (i, j).
template <class T>
struct OutputsOfPixelsView {
  Geometry g;
  const T* d;
  [[nodiscard]] __device__ Corner line(std::uint32_t place) const {
    std::uint32_t b = place;
    const std::uint32_t column = g.by.widths.split(b), row = g.by.heights.split(b);
    return {b * g.out_channels * g.pixels(), row + g.padding, column + g.padding};
  }
  [[nodiscard]] __device__ Inside deep(std::uint32_t inside) const {
    std::uint32_t channel = inside;
    const std::uint32_t j = g.by.kernels.split(channel), i = g.by.kernels.split(channel);
    return {channel * g.pixels(), static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)};
  }
  [[nodiscard]] __device__ Located<T> find(const Corner& pixel, const Inside& inside) const {
    std::uint32_t y = pixel.row - inside.i, x = pixel.column - inside.j;  // wrapped around where there is no such output
    bool is_there = true;
    if (g.stride > 1) {
      is_there = pixel.row >= inside.i && pixel.column >= inside.j;
      is_there = g.by.strides.split(y) == 0 && is_there;
      is_there = g.by.strides.split(x) == 0 && is_there;
    }
    return {d + (pixel.at + inside.at + y * g.out_width + x), is_there && y < g.out_height && x < g.out_width};
  }
};
template <class T>
struct OutputsOfPixels {
  static constexpr bool kRunsInward = false, kTakesLong = true;
  Geometry g;
  const T* d;
  std::size_t per_client;
  [[nodiscard]] __device__ OutputsOfPixelsView<T> open(std::size_t k) const { return {g, d + k * per_client}; }
};

// Stores element (channel, (b, place)) into images [B,channels,plane].
template <class T>
struct StoreImages {
  T* images;
  std::size_t per_client;
  std::uint32_t channels;
  Divisor plane;
  const T* bias = nullptr;
  std::size_t bias_stride = 0;
  using Before = T;
  struct Client {
    T* images;
    const T* bias;
    std::uint32_t channels;
    Divisor plane;
    [[nodiscard]] __device__ Before before(std::uint32_t channel, std::uint32_t /*place*/) const {
      return bias != nullptr ? bias[channel] : T(0);
    }
    __device__ void operator()(std::uint32_t channel, std::uint32_t place, T value, T of_channel) const {
      std::uint32_t b = place;
      const std::uint32_t within = plane.split(b);
      if (bias != nullptr) value += of_channel;
      images[(b * channels + channel) * plane.divisor + within] = value;
    }
  };
  [[nodiscard]] __device__ Client open(std::size_t k) const {
    return {images + k * per_client, bias != nullptr ? bias + k * bias_stride : nullptr, channels, plane};
  }
};

template <class T>
class ConvolutionLayer final : public DeviceLayer<T> {
 public:
  explicit ConvolutionLayer(const NetworkForm::Layer& layer) : g_(layer.form), has_bias_(layer.form.size("bias") > 0) {}
  [[nodiscard]] std::size_t num_kernels() const override { return 10; }

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t places = pass.B * g_.pixels(), window = g_.window();
    const T* bias = has_bias_ ? w.data + window * g_.out_channels : nullptr;
    multiply(pass, "convolution", g_.out_channels, places, window, LeftMatrix<T>{w.data, w.stride, window},
             Windows<T, ByInside<T>>{g_, in, pass.B * g_.image()},
             StoreImages<T>{out, places * g_.out_channels, g_.out_channels, Divisor(g_.pixels()), bias, w.stride});
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    const std::size_t places = pass.B * g_.pixels(), window = g_.window(), slopes = places * g_.out_channels;
    if (d_in != nullptr) {
      const std::size_t plane = std::size_t{g_.height} * g_.width;
      multiply(pass, "convolution_by_input", g_.channels, pass.B * plane, std::size_t{g_.out_channels} * g_.kernel * g_.kernel,
               Turned<T>{w.data, w.stride, g_.channels, g_.by.squares}, OutputsOfPixels<T>{g_, d_out, slopes},
               StoreImages<T>{d_in, pass.B * g_.image(), g_.channels, Divisor(plane)});
    }
    const auto aside = [&](Workspace::Frame& frame) {
      if (by_weights.may_repeat()) return StoreGradient<T>{by_weights, window};
      const std::size_t size = window * g_.out_channels;
      return StoreGradient<T>{GradientStore<T>::set(frame.take<T>(pass.clients * size), size), window};
    };
    multiply(pass, "convolution_by_weights", g_.out_channels, window, places, Turned<T>{d_out, slopes, g_.out_channels, g_.by.out_planes},
             Windows<T, ByPlace<T>>{g_, in, pass.B * g_.image()}, StoreGradient<T>{by_weights, window}, aside);
    if (has_bias_) bias_slopes<T>(pass, g_.out_channels, 1, g_.pixels(), d_out, by_weights.from(window * g_.out_channels));
  }

 private:
  // Multiplies with windows that are computed on access, or laid out before (im2col): whichever is faster for the shape. Both give the same
  // bits. Timed products are repeated, and their results go to aside(frame).
  template <class A, class B, class Store, class Aside>
  void multiply(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const A& a, const B& b,
                const Store& store, const Aside& aside) const {
    const auto do_it = [&](std::size_t way, const Store& to) {
      if (way == 0)
        tiled_product<T>(pass.exec, pass.products, name, pass.clients, m, n, d, a, b, to);
      else
        laid_out_product<T>(pass.exec, pass.products, name, pass.clients, m, n, d, a, b, to);
    };
    const auto rehearse = [&](std::size_t way) {
      Workspace::Frame frame(*pass.exec.workspace);
      do_it(way, aside(frame));
    };
    static constexpr const char* kWays[] = {"windows found on the way", "windows laid out before"};
    const bool fits = n * d * sizeof(T) <= kMostLaidOutBytes;
    do_it(fits ? fastest_way(pass.exec, name_of(pass, name, m, n, d), kWays, rehearse) : 0, store);
  }
  template <class A, class B, class Store>
  void multiply(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const A& a, const B& b,
                const Store& store) const {
    multiply(pass, name, m, n, d, a, b, store, [&](Workspace::Frame&) { return store; });
  }
  // Returns the name of a shape for the measurements. Numbers of clients and of positions are rounded up to a power of two, because
  // otherwise minibatches of many sizes would all be measured.
  [[nodiscard]] std::string name_of(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d) const {
    const auto number = [](std::size_t x) { return std::to_string(x); };
    return std::string(name) + " " + number(m) + " x " + number(std::bit_ceil(n)) + " x " + number(std::bit_ceil(d)) + ", window " +
           number(g_.kernel) + " every " + number(g_.stride) + ", clients up to " + number(std::bit_ceil(pass.clients)) +
           (sizeof(T) == sizeof(double) ? ", float64" : std::string(", ") + to_string(pass.products));
  }
  Geometry g_;
  bool has_bias_;
};

FL_REGISTER_CUDA_LAYER(ConvolutionLayer, "conv2d");

}  // namespace
}  // namespace fl::cuda
