// "max_pool" and "mean_pool": forward uses a thread per entry of the output, backward a thread per entry of the input, which reads the
// windows that contain it.
#include <algorithm>

#include "clients/cuda/divisor.hpp"
#include "clients/cuda/layer.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

// The divisors of the kernels.
struct WindowDivisors {
  Divisor widths, heights, out_widths, out_heights, strides_across, strides_down, planes, out_planes;
};

struct Windows {
  std::uint32_t height, width, out_height, out_width, window_height, window_width, stride_height, stride_width;
  bool takes_largest;
  WindowDivisors by;
  Windows(const LayerForm& form, bool largest)
      : height(of(form, "height")),
        width(of(form, "width")),
        out_height(of(form, "out_height")),
        out_width(of(form, "out_width")),
        window_height(of(form, "window_height")),
        window_width(of(form, "window_width")),
        stride_height(of(form, "stride_height")),
        stride_width(of(form, "stride_width")),
        takes_largest(largest),
        by{Divisor(width),
           Divisor(height),
           Divisor(out_width),
           Divisor(out_height),
           Divisor(stride_width),
           Divisor(stride_height),
           Divisor(std::size_t{height} * width),
           Divisor(std::size_t{out_height} * out_width)} {}
  [[nodiscard]] static std::uint32_t of(const LayerForm& form, const char* number) { return static_cast<std::uint32_t>(form.size(number)); }

  // Returns the position of the largest entry of the window at (y, x) in its plane: the first of equal ones, or the last NaN if there is
  // one.
  template <class T>
  [[nodiscard]] __device__ std::uint32_t largest(const T* plane, std::uint32_t y, std::uint32_t x) const {
    std::uint32_t best = y * stride_height * width + x * stride_width, row = best;
    T value = plane[best];
    for (std::uint32_t i = 0; i < window_height; ++i, row += width)
      for (std::uint32_t j = 0; j < window_width; ++j) {
        const T here = plane[row + j];
        if (!(here > value || here != here)) continue;
        best = row + j;
        value = here;
      }
    return best;
  }
};

// Pools `planes` planes; a plane is one channel of an image.
template <class T>
__global__ void pool(Windows w, std::uint32_t planes, const T* in, T* out) {
  const std::uint32_t entries = planes * w.by.out_planes.divisor;
  for (std::size_t at = thread_index(); at < entries; at += num_threads()) {
    const auto o = static_cast<std::uint32_t>(at);
    std::uint32_t plane = o, y = w.by.out_planes.split(plane);
    const std::uint32_t x = w.by.out_widths.split(y);
    const T* from = in + std::size_t{plane} * w.by.planes.divisor;
    if (w.takes_largest) {
      out[o] = from[w.largest(from, y, x)];
      continue;
    }
    const T share = T(1) / static_cast<T>(w.window_height * w.window_width);
    T sum = T(0);
    for (std::uint32_t i = 0; i < w.window_height; ++i)
      for (std::uint32_t j = 0; j < w.window_width; ++j) sum += share * from[(y * w.stride_height + i) * w.width + x * w.stride_width + j];
    out[o] = sum;
  }
}

template <class T>
__global__ void pool_back(Windows w, std::uint32_t planes, const T* in, const T* d_out, T* d_in) {
  const T share = T(1) / static_cast<T>(w.window_height * w.window_width);
  const std::uint32_t entries = planes * w.by.planes.divisor;
  for (std::size_t at = thread_index(); at < entries; at += num_threads()) {
    const auto i = static_cast<std::uint32_t>(at);
    std::uint32_t plane = i;
    const std::uint32_t within = w.by.planes.split(plane);
    std::uint32_t row = within;
    const std::uint32_t column = w.by.widths.split(row);
    const T *from = in + std::size_t{plane} * w.by.planes.divisor, *d = d_out + std::size_t{plane} * w.by.out_planes.divisor;
    T sum = T(0);
    // Windows that contain this entry begin less than one window size before it. They are added in the same order as on the CPU.
    const std::uint32_t first_y = row < w.window_height ? 0 : w.by.strides_down.quotient(row - w.window_height) + 1;
    const std::uint32_t first_x = column < w.window_width ? 0 : w.by.strides_across.quotient(column - w.window_width) + 1;
    for (std::uint32_t y = first_y; y < w.out_height && y * w.stride_height <= row; ++y)
      for (std::uint32_t x = first_x; x < w.out_width && x * w.stride_width <= column; ++x) {
        if (!w.takes_largest)
          sum += share * d[y * w.out_width + x];
        else if (w.largest(from, y, x) == within)
          sum += d[y * w.out_width + x];
      }
    d_in[i] = sum;
  }
}

template <class T>
class PoolingLayer : public DeviceLayer<T> {
 public:
  PoolingLayer(const LayerForm& form, bool takes_largest) : channels_(form.size("channels")), windows_(form, takes_largest) {}
  [[nodiscard]] bool needs_input() const override { return windows_.takes_largest; }
  void forward(const LayerPass& pass, LayerWeights<T>, const T* in, T* out) const override {
    for_planes(pass, [&](std::size_t first, std::uint32_t planes) {
      Launch(pass.exec, "pool", blocks_for(std::size_t{planes} * windows_.by.out_planes.divisor))(
          pool<T>, windows_, planes, in + first * windows_.by.planes.divisor, out + first * windows_.by.out_planes.divisor);
    });
  }
  void backward(const LayerPass& pass, LayerWeights<T>, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>&) const override {
    if (d_in == nullptr) return;
    for_planes(pass, [&](std::size_t first, std::uint32_t planes) {
      Launch(pass.exec, "pool_back", blocks_for(std::size_t{planes} * windows_.by.planes.divisor))(
          pool_back<T>, windows_, planes, in + first * windows_.by.planes.divisor, d_out + first * windows_.by.out_planes.divisor,
          d_in + first * windows_.by.planes.divisor);
    });
  }

 private:
  // Splits the planes into calls of use(first, count), because kernels count entries in 31 bits.
  template <class Use>
  void for_planes(const LayerPass& pass, const Use& use) const {
    constexpr std::size_t kMostEntries = (std::size_t{1} << 31) - 1;
    const std::size_t planes = pass.examples() * channels_, most = kMostEntries / windows_.by.planes.divisor;
    for (std::size_t first = 0; first < planes; first += most) use(first, static_cast<std::uint32_t>(std::min(most, planes - first)));
  }
  std::size_t channels_;
  Windows windows_;
};

template <class T>
struct MaxPoolLayer final : PoolingLayer<T> {
  explicit MaxPoolLayer(const NetworkForm::Layer& layer) : PoolingLayer<T>(layer.form, true) {}
};
template <class T>
struct MeanPoolLayer final : PoolingLayer<T> {
  explicit MeanPoolLayer(const NetworkForm::Layer& layer) : PoolingLayer<T>(layer.form, false) {}
};

FL_REGISTER_CUDA_LAYER(MaxPoolLayer, "max_pool");
FL_REGISTER_CUDA_LAYER(MeanPoolLayer, "mean_pool");

}  // namespace
}  // namespace fl::cuda
