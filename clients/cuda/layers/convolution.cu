// form::Convolution: products with matrices of windows that are never written. All of a client's images are one product.
//
//   forward    out_k [channels, (b,y,x)]    = W [channels, (c,i,j)] windows [(c,i,j), (b,y,x)]
//   weights    d_W   [channels, (c,i,j)]    = d_out [channels, (b,y,x)] windows^T
//   input      d_in  [c, (b,row,column)]    = W^T [c, (channel,i,j)] slopes [(channel,i,j), (b,row,column)]: the slope of the output whose
//                                             window has this pixel at (i,j), 0 where there is none
#include <bit>
#include <string>

#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/bias.cuh"
#include "clients/cuda/tiled_product.cuh"
#include "fl_core/cuda/measured_choice.hpp"

namespace fl::cuda {
namespace {

// The numbers of a form::Convolution that kernels divide by.
struct Geometry {
  std::uint32_t channels, height, width, out_channels, out_height, out_width, kernel, padding, stride;
  Divisor kernels, out_widths, out_heights, widths, heights, strides;
  explicit Geometry(const form::Convolution& c)
      : channels(static_cast<std::uint32_t>(c.channels)),
        height(static_cast<std::uint32_t>(c.height)),
        width(static_cast<std::uint32_t>(c.width)),
        out_channels(static_cast<std::uint32_t>(c.out_channels)),
        out_height(static_cast<std::uint32_t>(c.out_height)),
        out_width(static_cast<std::uint32_t>(c.out_width)),
        kernel(static_cast<std::uint32_t>(c.kernel)),
        padding(static_cast<std::uint32_t>(c.padding)),
        stride(static_cast<std::uint32_t>(c.stride)),
        kernels(c.kernel),
        out_widths(c.out_width),
        out_heights(c.out_height),
        widths(c.width),
        heights(c.height),
        strides(c.stride) {}
  [[nodiscard]] std::uint32_t window() const { return channels * kernel * kernel; }
  [[nodiscard]] std::uint32_t pixels() const { return out_height * out_width; }
  [[nodiscard]] std::size_t image() const { return std::size_t{channels} * height * width; }
};

// The windows of client k's images: entry (c,i,j) of the window at (b,y,x).
template <class T>
struct WindowsView {
  Geometry g;
  const T* images;
  [[nodiscard]] __device__ T entry(std::uint32_t inside, std::uint32_t place) const {
    std::uint32_t c = inside, b = place;
    const std::uint32_t j = g.kernels.split(c), i = g.kernels.split(c), x = g.out_widths.split(b), y = g.out_heights.split(b);
    const std::uint32_t row = y * g.stride + i - g.padding, column = x * g.stride + j - g.padding;  // wraps around below zero
    if (row >= g.height || column >= g.width) return T(0);
    return images[((std::size_t{b} * g.channels + c) * g.height + row) * g.width + column];
  }
};
template <class T>
struct ByInside : WindowsView<T> {
  static constexpr bool kRunsInward = false;
  [[nodiscard]] __device__ T at(std::uint32_t inside, std::uint32_t place) const { return this->entry(inside, place); }
};
template <class T>
struct ByPlace : WindowsView<T> {
  static constexpr bool kRunsInward = true;  // neighbouring places are neighbours in memory
  [[nodiscard]] __device__ T at(std::uint32_t place, std::uint32_t inside) const { return this->entry(inside, place); }
};
template <class T, class View>
struct Windows {
  static constexpr bool kRunsInward = View::kRunsInward;
  Geometry g;
  const T* images;
  std::size_t per_client;
  [[nodiscard]] __device__ View open(std::size_t k) const { return {{g, images + k * per_client}}; }
};

// Slopes of the outputs as a matrix [channels, (b,y,x)].
template <class T>
struct SlopesView {
  Geometry g;
  const T* d;
  [[nodiscard]] __device__ T at(std::uint32_t channel, std::uint32_t place) const {
    std::uint32_t b = place;
    const std::uint32_t x = g.out_widths.split(b), y = g.out_heights.split(b);
    return d[((std::size_t{b} * g.out_channels + channel) * g.out_height + y) * g.out_width + x];
  }
};
template <class T>
struct Slopes {
  static constexpr bool kRunsInward = true;
  Geometry g;
  const T* d;
  std::size_t per_client;
  [[nodiscard]] __device__ SlopesView<T> open(std::size_t k) const { return {g, d + k * per_client}; }
};

// W as [c, (channel,i,j)].
template <class T>
struct TurnedWeightsView {
  Geometry g;
  const T* w;
  [[nodiscard]] __device__ T at(std::uint32_t c, std::uint32_t inside) const {
    std::uint32_t channel = inside;
    const std::uint32_t j = g.kernels.split(channel), i = g.kernels.split(channel);
    return w[((std::size_t{channel} * g.channels + c) * g.kernel + i) * g.kernel + j];
  }
};
template <class T>
struct TurnedWeights {
  static constexpr bool kRunsInward = true;
  Geometry g;
  LayerWeights<T> w;
  [[nodiscard]] __device__ TurnedWeightsView<T> open(std::size_t k) const { return {g, w.data + k * w.stride}; }
};

// The slope of output (channel, y, x) where the window at (y, x) has pixel (row, column) at (i, j).
template <class T>
struct OutputsOfPixelsView {
  Geometry g;
  const T* d;
  [[nodiscard]] __device__ T at(std::uint32_t inside, std::uint32_t place) const {
    std::uint32_t channel = inside, b = place;
    const std::uint32_t j = g.kernels.split(channel), i = g.kernels.split(channel), column = g.widths.split(b), row = g.heights.split(b);
    if (row + g.padding < i || column + g.padding < j) return T(0);
    std::uint32_t y = row + g.padding - i, x = column + g.padding - j;
    if (g.strides.split(y) != 0 || g.strides.split(x) != 0 || y >= g.out_height || x >= g.out_width) return T(0);
    return d[((std::size_t{b} * g.out_channels + channel) * g.out_height + y) * g.out_width + x];
  }
};
template <class T>
struct OutputsOfPixels {
  static constexpr bool kRunsInward = false;
  Geometry g;
  const T* d;
  std::size_t per_client;
  [[nodiscard]] __device__ OutputsOfPixelsView<T> open(std::size_t k) const { return {g, d + k * per_client}; }
};

// Element (channel, (b, place)) of images [B,channels,plane].
template <class T>
struct StoreImages {
  T* images;
  std::size_t per_client;
  std::uint32_t channels;
  Divisor plane;
  const T* bias = nullptr;
  std::size_t bias_stride = 0;
  __device__ void operator()(std::size_t k, std::uint32_t channel, std::uint32_t place, T value) const {
    std::uint32_t b = place;
    const std::uint32_t within = plane.split(b);
    if (bias != nullptr) value += bias[k * bias_stride + channel];
    images[k * per_client + (std::size_t{b} * channels + channel) * plane.divisor + within] = value;
  }
};

template <class T>
class ConvolutionLayer final : public DeviceLayer<T> {
 public:
  explicit ConvolutionLayer(const form::Convolution& form) : g_(form), has_bias_(form.bias) {}

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
               TurnedWeights<T>{g_, w}, OutputsOfPixels<T>{g_, d_out, slopes},
               StoreImages<T>{d_in, pass.B * g_.image(), g_.channels, Divisor(plane)});
    }
    const auto aside = [&](Workspace::Frame& frame) {
      const std::size_t size = window * g_.out_channels;
      return StoreGradient<T>{GradientStore<T>::set(frame.take<T>(pass.clients * size), size), window};
    };
    multiply(pass, "convolution_by_weights", g_.out_channels, window, places, Slopes<T>{g_, d_out, slopes},
             Windows<T, ByPlace<T>>{g_, in, pass.B * g_.image()}, StoreGradient<T>{by_weights, window}, aside);
    if (has_bias_) bias_slopes<T>(pass, g_.out_channels, 1, g_.pixels(), d_out, by_weights.from(window * g_.out_channels));
  }

 private:
  // With windows found where they are read, or laid out before (im2col): whichever is faster for the shape. Both give the same bits. What
  // is timed is done again and again, and goes to aside(frame).
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
  // Numbers of clients, and of places, within a power of two are one: minibatches of many sizes would all be measured.
  [[nodiscard]] static std::string name_of(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d) {
    const auto number = [](std::size_t x) { return std::to_string(x); };
    return std::string(name) + " " + number(m) + " x " + number(std::bit_ceil(n)) + " x " + number(std::bit_ceil(d)) + ", clients up to " +
           number(std::bit_ceil(pass.clients)) + (sizeof(T) == sizeof(double) ? ", float64" : std::string(", ") + to_string(pass.products));
  }
  Geometry g_;
  bool has_bias_;
};

}  // namespace

template <class T>
std::unique_ptr<DeviceLayer<T>> make_convolution(const form::Convolution& form) {
  return std::make_unique<ConvolutionLayer<T>>(form);
}
template std::unique_ptr<DeviceLayer<float>> make_convolution(const form::Convolution&);
template std::unique_ptr<DeviceLayer<double>> make_convolution(const form::Convolution&);

}  // namespace fl::cuda
