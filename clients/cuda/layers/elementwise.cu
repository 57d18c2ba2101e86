// "relu", "tanh", "gelu", "dropout" and "flatten": one entry at a time, in place. NaN stays NaN.
#include <math.h>

#include "clients/cuda/layer.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

enum class Function { relu, tanh, gelu };

template <class T>
__device__ T normal_cdf(T x) {
  return T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
}
template <class T>
__device__ T value_of(Function function, T x) {
  if (function == Function::relu) return x <= T(0) ? T(0) : x;
  return function == Function::tanh ? tanh(x) : x * normal_cdf(x);
}
// Returns the slope at x, where the value is y.
template <class T>
__device__ T slope_of(Function function, T x, T y) {
  if (function == Function::relu) return y <= T(0) ? T(0) : T(1);
  if (function == Function::tanh) return T(1) - y * y;
  return normal_cdf(x) + x * T(0.39894228040143267794) * exp(T(-0.5) * x * x);
}

template <class T>
__global__ void apply(std::size_t count, Function function, const T* in, T* out) {
  for (std::size_t i = thread_index(); i < count; i += num_threads()) out[i] = value_of(function, in[i]);
}
template <class T>
__global__ void apply_slope(std::size_t count, Function function, const T* in, const T* out, const T* d_out, T* d_in) {
  for (std::size_t i = thread_index(); i < count; i += num_threads())
    d_in[i] = d_out[i] * slope_of(function, function == Function::gelu ? in[i] : T(0), out[i]);
}

template <class T, Function kFunction>
class ElementwiseLayer final : public DeviceLayer<T> {
 public:
  explicit ElementwiseLayer(const NetworkForm::Layer& layer) : entries_(layer.inputs) {}
  [[nodiscard]] bool needs_input() const override { return kFunction == Function::gelu; }
  [[nodiscard]] bool needs_output() const override { return kFunction != Function::gelu; }
  [[nodiscard]] bool works_in_place() const override { return kFunction != Function::gelu; }
  void forward(const LayerPass& pass, LayerWeights<T>, const T* in, T* out) const override {
    const std::size_t count = pass.examples() * entries_;
    Launch(pass.exec, "elementwise", blocks_for(count))(apply<T>, count, kFunction, in, out);
  }
  void backward(const LayerPass& pass, LayerWeights<T>, const T* in, const T* out, const T* d_out, T* d_in,
                const GradientStore<T>&) const override {
    const std::size_t count = pass.examples() * entries_;
    if (d_in != nullptr) Launch(pass.exec, "elementwise_back", blocks_for(count))(apply_slope<T>, count, kFunction, in, out, d_out, d_in);
  }

 private:
  std::size_t entries_;
};
template <class T>
using ReluLayer = ElementwiseLayer<T, Function::relu>;
template <class T>
using TanhLayer = ElementwiseLayer<T, Function::tanh>;
template <class T>
using GeluLayer = ElementwiseLayer<T, Function::gelu>;

// Drops entry i of client k's minibatch by word i of its stream; earlier pieces of the minibatch have used 4 `before` words. A thread
// handles four entries, which share the computation of their words.
template <class T>
__global__ void drop(std::size_t clients, std::size_t per_client, std::size_t before, std::uint32_t bound, T keep,
                     const RandomStream* random, std::uint32_t layer, const T* from, T* to) {
  const std::size_t quads = (per_client + 3) / 4;
  for (std::size_t i = thread_index(); i < clients * quads; i += num_threads()) {
    const std::size_t k = i / quads, quad = i - k * quads;
    RandomStream own = random[k];
    own.step_layer += layer;
    std::uint32_t words[4];
    own.quad(static_cast<std::uint32_t>(before + quad), words);
    for (std::size_t j = 0; j < 4 && quad * 4 + j < per_client; ++j) {
      const std::size_t at = k * per_client + quad * 4 + j;
      to[at] = words[j] < bound ? from[at] * T(0) + T(0) : from[at] * keep;  // NaN stays NaN, and -0 becomes 0
    }
  }
}

template <class T>
class DropoutLayer final : public DeviceLayer<T> {
 public:
  explicit DropoutLayer(const NetworkForm::Layer& layer) : rate_(layer.form.number("rate")), entries_(layer.inputs), layer_(layer.number) {}
  [[nodiscard]] bool needs_input() const override { return false; }
  [[nodiscard]] bool draws() const override { return true; }
  [[nodiscard]] bool works_in_place() const override { return true; }
  void forward(const LayerPass& pass, LayerWeights<T>, const T* in, T* out) const override { apply_to(pass, in, out); }
  void backward(const LayerPass& pass, LayerWeights<T>, const T*, const T*, const T* d_out, T* d_in,
                const GradientStore<T>&) const override {
    if (d_in != nullptr) apply_to(pass, d_out, d_in);
  }

 private:
  void apply_to(const LayerPass& pass, const T* from, T* to) const {
    const std::size_t per_client = pass.B * entries_;
    if (pass.random == nullptr || rate_ == 0) {
      if (to != from)
        FL_CUDA_CHECK(cudaMemcpyAsync(to, from, pass.clients * per_client * sizeof(T), cudaMemcpyDeviceToDevice, stream_of(pass.exec)));
      return;
    }
    Launch(pass.exec, "drop", blocks_for(pass.clients * ((per_client + 3) / 4)))(
        drop<T>, pass.clients, per_client, pass.first / 4 * entries_, static_cast<std::uint32_t>(rate_ * 4294967296.0),
        static_cast<T>(1 / (1 - rate_)), pass.random, layer_, from, to);
  }
  double rate_;
  std::size_t entries_;
  std::uint32_t layer_;
};

// Registers "flatten": the same numbers under another shape, with nothing to compute.
template <class T>
void register_flatten() {
  const auto make = [](const NetworkForm::Layer&) -> std::unique_ptr<DeviceLayer<T>> { return nullptr; };
  Registry::instance().add("layer", "flatten", Device::cuda, kPrecisionOf<T>, DeviceLayerFactory<T>(make));
}
const bool has_flatten = (register_flatten<float>(), register_flatten<double>(), true);

FL_REGISTER_CUDA_LAYER(ReluLayer, "relu");
FL_REGISTER_CUDA_LAYER(TanhLayer, "tanh");
FL_REGISTER_CUDA_LAYER(GeluLayer, "gelu");
FL_REGISTER_CUDA_LAYER(DropoutLayer, "dropout");

}  // namespace
}  // namespace fl::cuda
