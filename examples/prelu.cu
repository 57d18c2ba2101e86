// The CUDA half of the layer in prelu.cpp: all clients of a block at once, activations [clients,B,channels,pixels]. Client k's slopes are
// at w.data + k * w.stride.
#include "clients/cuda/layer.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

struct PreluShape {
  std::size_t channels, pixels;
  [[nodiscard]] FL_HD std::size_t entries() const { return channels * pixels; }
};

// A thread per entry. `slopes_of` is the derivative by the output on the way back, and `in` itself on the way forward.
template <class T>
__global__ void times_slope(PreluShape shape, std::size_t count, std::size_t per_client, LayerWeights<T> w, const T* in, const T* slopes_of,
                            T* to) {
  for (std::size_t i = thread_index(); i < count; i += num_threads()) {
    const T slope = w.data[i / per_client * w.stride + i % shape.entries() / shape.pixels];
    to[i] = in[i] > T(0) ? slopes_of[i] : slope * slopes_of[i];
  }
}

// A thread per client and channel, which goes through the minibatch in its order. Places without a row have a derivative of zero.
template <class T>
__global__ void by_slope(PreluShape shape, std::size_t clients, std::size_t B, const T* in, const T* d_out, GradientStore<T> by_weights) {
  for (std::size_t i = thread_index(); i < clients * shape.channels; i += num_threads()) {
    const std::size_t k = i / shape.channels, c = i - k * shape.channels;
    double sum = 0;
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t p = 0; p < shape.pixels; ++p) {
        const std::size_t at = ((k * B + b) * shape.channels + c) * shape.pixels + p;
        if (!(in[at] > T(0))) sum += static_cast<double>(in[at]) * static_cast<double>(d_out[at]);
      }
    by_weights(k, c, static_cast<T>(sum));
  }
}

template <class T>
class PreluLayer final : public DeviceLayer<T> {
 public:
  explicit PreluLayer(const NetworkForm::Layer& layer) : shape_{layer.form.size("channels"), layer.form.size("pixels")} {}

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t count = pass.examples() * shape_.entries();
    Launch(pass.exec, "prelu", blocks_for(count))(times_slope<T>, shape_, count, pass.B * shape_.entries(), w, in, in, out);
  }
  // The derivative by the input comes first: the store may change the weights.
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    const std::size_t count = pass.examples() * shape_.entries();
    if (d_in != nullptr)
      Launch(pass.exec, "prelu_back", blocks_for(count))(times_slope<T>, shape_, count, pass.B * shape_.entries(), w, in, d_out, d_in);
    Launch(pass.exec, "prelu_by_slope", blocks_for(pass.clients * shape_.channels))(by_slope<T>, shape_, pass.clients, pass.B, in, d_out,
                                                                                    by_weights);
  }

 private:
  PreluShape shape_;
};

FL_REGISTER_CUDA_LAYER(PreluLayer, "prelu");

}  // namespace
}  // namespace fl::cuda
