// "group_norm" and "batch_norm": a block of threads per group passes over its entries for the mean, for the variance and for the normalised
// values. Sums are in double: thread i adds every entry i, i + threads, ..., whatever the other clients' minibatches hold.
#include <math.h>

#include "clients/cuda/device_data.cuh"
#include "clients/cuda/divisor.hpp"
#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/sums.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

struct Channels {
  std::uint32_t channels, pixels, groups;
  Divisor pixel;
  Channels(std::size_t channels_, std::size_t pixels_, std::size_t groups_)
      : channels(static_cast<std::uint32_t>(channels_)),
        pixels(static_cast<std::uint32_t>(pixels_)),
        groups(static_cast<std::uint32_t>(groups_)),
        pixel(pixels_) {}
  [[nodiscard]] FL_HD std::uint32_t per_group() const { return channels / groups; }
  [[nodiscard]] FL_HD std::uint32_t group_size() const { return per_group() * pixels; }
};

// ---- groups of an example -------------------------------------------------------------------------------------------------------

// Normalises groups. saved [examples,groups,2], unless null, receives the mean and 1/deviation.
template <class T>
__global__ void normalise_groups(Channels s, std::size_t examples, std::size_t B, double epsilon, LayerWeights<T> w, const T* in, T* out,
                                 T* saved) {
  __shared__ double room[kWarp];
  const std::uint32_t count = s.group_size();
  for (std::size_t g = blockIdx.x; g < examples * s.groups; g += gridDim.x) {
    const T* x = in + g * count;
    double sum = 0, square = 0;
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x) sum += static_cast<double>(x[j]);
    const double mean = block_sum(sum, room) / count;
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x)
      square += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
    const T centre = static_cast<T>(mean), r = static_cast<T>(1 / sqrt(block_sum(square, room) / count + epsilon));
    if (saved != nullptr && threadIdx.x == 0) {
      saved[2 * g] = centre;
      saved[2 * g + 1] = r;
    }
    const std::size_t example = g / s.groups;
    const T* weight = w.data + example / B * w.stride + (g - example * s.groups) * s.per_group();
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x) {
      const std::uint32_t c = s.pixel.quotient(j);
      const T scale = weight[c] * r, shift = weight[s.channels + c] - centre * scale;
      out[g * count + j] = scale * x[j] + shift;
    }
  }
}

// Computes by_channel [examples,channels,2] = derivatives by weight and bias of each example, and d_in unless null. Positions without a row
// have d_out 0.
template <class T>
__global__ void group_slopes(Channels s, std::size_t examples, std::size_t B, LayerWeights<T> w, const T* in, const T* saved,
                             const T* d_out, double* by_channel, T* d_in) {
  __shared__ double room[kWarp];
  const std::uint32_t count = s.group_size();
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t g = blockIdx.x; g < examples * s.groups; g += gridDim.x) {
    const T *x = in + g * count, *d = d_out + g * count, mean = saved[2 * g], r = saved[2 * g + 1];
    double* slope = by_channel + g * s.per_group() * 2;
    for (std::uint32_t c = threadIdx.x / kWarp; c < s.per_group(); c += blockDim.x / kWarp) {
      double d_weight = 0, d_bias = 0;
      for (std::size_t at = c * s.pixels + lane; at < std::size_t{c + 1} * s.pixels; at += kWarp) {
        d_bias += static_cast<double>(d[at]);
        d_weight += static_cast<double>(d[at] * (x[at] - mean) * r);
      }
      d_weight = warp_sum(d_weight);
      d_bias = warp_sum(d_bias);
      if (lane > 0) continue;
      slope[2 * c] = d_weight;
      slope[2 * c + 1] = d_bias;
    }
    if (d_in == nullptr) continue;
    __syncthreads();  // slopes are written
    const std::size_t example = g / s.groups;
    const T* weight = w.data + example / B * w.stride + (g - example * s.groups) * s.per_group();
    double sum = 0, product = 0;
    for (std::uint32_t c = threadIdx.x; c < s.per_group(); c += blockDim.x) {
      sum += static_cast<double>(weight[c]) * slope[2 * c + 1];
      product += static_cast<double>(weight[c]) * slope[2 * c];
    }
    const T mean_u = static_cast<T>(block_sum(sum, room) / count), mean_uy = static_cast<T>(block_sum(product, room) / count);
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x)
      d_in[g * count + j] = r * (weight[s.pixel.quotient(j)] * d[j] - mean_u - (x[j] - mean) * r * mean_uy);
  }
}

// Computes the gradient as sums over a client's examples.
template <class T>
__global__ void add_examples(std::size_t clients, std::size_t B, std::size_t channels, const double* by_channel,
                             GradientStore<T> by_weights) {
  for (std::size_t i = thread_index(); i < clients * channels * 2; i += num_threads()) {
    const std::size_t k = i / (2 * channels), entry = i - k * 2 * channels;
    double sum = 0;
    for (std::size_t b = 0; b < B; ++b) sum += by_channel[(k * B + b) * 2 * channels + entry];
    by_weights(k, entry % 2 * channels + entry / 2, static_cast<T>(sum));
  }
}

template <class T>
class GroupNormLayer final : public DeviceLayer<T> {
 public:
  explicit GroupNormLayer(const NetworkForm::Layer& layer)
      : shape_(layer.form.size("channels"), layer.form.size("pixels"), layer.form.size("groups")), epsilon_(layer.form.number("epsilon")) {}

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    Launch(pass.exec, "normalise_groups", pass.examples() * shape_.groups, threads_for_sum(shape_.group_size()))(
        normalise_groups<T>, shape_, pass.examples(), pass.B, epsilon_, w, in, out, static_cast<T*>(pass.saved));
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    Workspace::Frame frame(*pass.exec.workspace);
    const std::size_t channels = shape_.channels;
    auto* by_channel = frame.take<double>(pass.examples() * channels * 2);
    Launch(pass.exec, "group_slopes", pass.examples() * shape_.groups, threads_for_sum(shape_.group_size()))(
        group_slopes<T>, shape_, pass.examples(), pass.B, w, in, static_cast<const T*>(pass.saved), d_out, by_channel, d_in);
    Launch(pass.exec, "add_examples", blocks_for(pass.clients * channels * 2))(add_examples<T>, pass.clients, pass.B, channels, by_channel,
                                                                               by_weights);
  }

 private:
  Channels shape_;
  double epsilon_;
};

// ---- channels of a minibatch ----------------------------------------------------------------------------------------------------

// Returns how many of a client's B positions hold a row; these come first.
__device__ std::uint32_t rows_among(const std::uint32_t* row, std::uint32_t B) {
  if (row == nullptr) return B;
  std::uint32_t low = 0, high = B;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (row[middle] != kNoRow)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Returns the position of entry j of channel c in a client's images.
[[nodiscard]] __device__ std::size_t at(const Channels& s, std::uint32_t c, std::uint32_t j) {
  std::uint32_t b = j;
  const std::uint32_t p = s.pixel.split(b);
  return (std::size_t{b} * s.channels + c) * s.pixels + p;
}

// Uses a block per client and channel. saved [clients,3,channels]: mean, 1/deviation, variance.
template <class T>
__global__ void normalise_channels(Channels s, std::size_t clients, std::uint32_t B, const std::uint32_t* row, double epsilon,
                                   LayerWeights<T> w, const T* in, T* out, T* saved) {
  __shared__ double room[kWarp];
  const std::size_t per_client = std::size_t{B} * s.channels * s.pixels;
  for (std::size_t i = blockIdx.x; i < clients * s.channels; i += gridDim.x) {
    const std::size_t k = i / s.channels;
    const auto c = static_cast<std::uint32_t>(i - k * s.channels);
    const std::uint32_t count = rows_among(row == nullptr ? nullptr : row + k * B, B) * s.pixels;
    const T* x = in + k * per_client;
    double sum = 0, square = 0;
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x) sum += static_cast<double>(x[at(s, c, j)]);
    const double divisor = count > 0 ? count : 1, mean = block_sum(sum, room) / divisor;
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x) {
      const double off = static_cast<double>(x[at(s, c, j)]) - mean;
      square += off * off;
    }
    const double variance = block_sum(square, room) / divisor;
    const T centre = static_cast<T>(mean), r = static_cast<T>(1 / sqrt(variance + epsilon));
    if (threadIdx.x == 0) {
      T* own = saved + k * 3 * s.channels + c;
      own[0] = centre;
      own[s.channels] = r;
      own[2 * s.channels] = static_cast<T>(variance);
    }
    const T* weight = w.data + k * w.stride;
    const T scale = weight[c] * r, shift = weight[s.channels + c] - centre * scale;
    for (std::uint32_t j = threadIdx.x; j < B * s.pixels; j += blockDim.x) {
      const std::size_t here = at(s, c, j);
      out[k * per_client + here] = scale * x[here] + shift;
    }
  }
}

// Normalises by the running statistics.
template <class T>
__global__ void normalise_by_running(Channels s, std::size_t clients, std::size_t per_client, double epsilon, LayerWeights<T> w,
                                     const T* in, T* out) {
  for (std::size_t i = thread_index(); i < clients * per_client; i += num_threads()) {
    const std::size_t k = i / per_client, c = (i - k * per_client) / s.pixels % s.channels;
    const T* weight = w.data + k * w.stride + c;
    const T r = static_cast<T>(1 / sqrt(static_cast<double>(weight[3 * s.channels]) + epsilon));
    const T scale = weight[0] * r, shift = weight[s.channels] - weight[2 * s.channels] * scale;
    out[i] = scale * in[i] + shift;
  }
}

// Computes the gradient by weight and bias, and (running - minibatch) for the mean and the unbiased variance.
template <class T>
__global__ void channel_slopes(Channels s, std::size_t clients, std::uint32_t B, const std::uint32_t* row, LayerWeights<T> w, const T* in,
                               const T* saved, const T* d_out, GradientStore<T> by_weights, T* d_in) {
  __shared__ double room[kWarp];
  const std::size_t per_client = std::size_t{B} * s.channels * s.pixels;
  for (std::size_t i = blockIdx.x; i < clients * s.channels; i += gridDim.x) {
    const std::size_t k = i / s.channels;
    const auto c = static_cast<std::uint32_t>(i - k * s.channels);
    const std::uint32_t count = rows_among(row == nullptr ? nullptr : row + k * B, B) * s.pixels;
    const T *x = in + k * per_client, *d = d_out + k * per_client, *weight = w.data + k * w.stride + c;
    const T *own = saved + k * 3 * s.channels + c, mean = own[0], r = own[s.channels];
    const T scale = weight[0];  // read before the store changes it
    double d_weight = 0, d_bias = 0;
    for (std::uint32_t j = threadIdx.x; j < count; j += blockDim.x) {
      const std::size_t here = at(s, c, j);
      d_bias += static_cast<double>(d[here]);
      d_weight += static_cast<double>(d[here] * (x[here] - mean) * r);
    }
    d_weight = block_sum(d_weight, room);
    d_bias = block_sum(d_bias, room);
    if (threadIdx.x == 0) {
      const double unbiased = count > 1 ? count / (count - 1.0) : 1;
      const T variance = own[2 * s.channels];
      const T slopes[4] = {static_cast<T>(d_weight), static_cast<T>(d_bias), weight[2 * s.channels] - mean,
                           static_cast<T>(static_cast<double>(weight[3 * s.channels]) - unbiased * static_cast<double>(variance))};
      for (std::uint32_t tensor = 0; tensor < 4; ++tensor) by_weights(k, tensor * s.channels + c, count > 0 ? slopes[tensor] : T(0));
    }
    if (d_in == nullptr) continue;
    const double divisor = count > 0 ? count : 1;
    const T mean_u = scale * static_cast<T>(d_bias / divisor), mean_uy = scale * static_cast<T>(d_weight / divisor);
    for (std::uint32_t j = threadIdx.x; j < B * s.pixels; j += blockDim.x) {
      const std::size_t here = at(s, c, j);
      d_in[k * per_client + here] = j < count ? r * (scale * d[here] - mean_u - (x[here] - mean) * r * mean_uy) : T(0);
    }
  }
}

template <class T>
class BatchNormLayer final : public DeviceLayer<T> {
 public:
  explicit BatchNormLayer(const NetworkForm::Layer& layer)
      : shape_(layer.form.size("channels"), layer.form.size("pixels"), 1), epsilon_(layer.form.number("epsilon")) {}

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t per_client = pass.B * shape_.group_size();
    if (pass.training)
      Launch(pass.exec, "normalise_channels", pass.clients * shape_.channels, threads())(normalise_channels<T>, shape_, pass.clients,
                                                                                         static_cast<std::uint32_t>(pass.B), pass.row,
                                                                                         epsilon_, w, in, out, static_cast<T*>(pass.saved));
    else
      Launch(pass.exec, "normalise_by_running", blocks_for(pass.clients * per_client))(normalise_by_running<T>, shape_, pass.clients,
                                                                                       per_client, epsilon_, w, in, out);
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    Launch(pass.exec, "channel_slopes", pass.clients * shape_.channels, threads())(
        channel_slopes<T>, shape_, pass.clients, static_cast<std::uint32_t>(pass.B), pass.row, w, in, static_cast<const T*>(pass.saved),
        d_out, by_weights, d_in);
  }

 private:
  // Returns a number that does not depend on B, because the order of sums must not depend on the other clients' rows.
  [[nodiscard]] int threads() const { return threads_for_sum(8 * std::size_t{shape_.pixels}); }
  Channels shape_;
  double epsilon_;
};

FL_REGISTER_CUDA_LAYER(GroupNormLayer, "group_norm");
FL_REGISTER_CUDA_LAYER(BatchNormLayer, "batch_norm");

}  // namespace
}  // namespace fl::cuda
