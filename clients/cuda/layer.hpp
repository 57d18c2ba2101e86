// A layer of many clients' networks on a GPU. It computes every client's minibatch, or a piece of it, at once.
//
// Activations are [clients,B,n] as in clients/nn/module.hpp. B is the same for all clients; positions without a row hold zeros, written by
// the gather, and have a slope of zero. Weights are a contiguous part of each client's vector [P].
//
// A layer's CUDA half is one file that registers it under the name of the layer. It is made from the numbers by which the layer describes
// itself (Module::as_form). docs/how-to-add-a-layer.md walks through an example.
#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/cuda/gradient_store.cuh"
#include "clients/learning/network_form.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cuda {

struct LayerPass {
  const Exec& exec;
  std::size_t clients = 0, B = 0;
  bool training = true;                  // false: forward alone; batch norm uses its running statistics
  const RandomStream* random = nullptr;  // [clients] on the GPU, of the step; null: dropout does not drop
  const std::uint32_t* row = nullptr;    // [clients,B] on the GPU: which positions hold a row, the first of a client; null: all
  std::size_t first = 0;                 // number of each client's first example in its minibatch, a multiple of 4
  void* saved = nullptr;                 // LayerMemory::kept entries per example; null if only forward runs
  MatrixProducts products = MatrixProducts::full;

  [[nodiscard]] std::size_t examples() const { return clients * B; }
};

// Client k's weights of a layer are at data + k * stride; 0 = shared.
template <class T>
struct LayerWeights {
  const T* data;
  std::size_t stride;
};

template <class T>
class DeviceNetwork;

template <class T>
class FL_API DeviceLayer {
 public:
  virtual ~DeviceLayer() = default;
  // needs_input() and needs_output() return whether backward reads the input of forward and its output.
  [[nodiscard]] virtual bool needs_input() const { return true; }
  [[nodiscard]] virtual bool needs_output() const { return false; }
  // Returns whether the layer needs random numbers.
  [[nodiscard]] virtual bool draws() const { return false; }
  // Returns the networks inside the layer. Their entries for backward lie in pass.saved behind the layer's own.
  [[nodiscard]] virtual std::vector<const DeviceNetwork<T>*> networks() const { return {}; }
  // Returns the approximate number of kernels that a forward and a backward pass start.
  [[nodiscard]] virtual std::size_t num_kernels() const { return 3; }
  // Returns whether `out` may be `in`, and d_in may be d_out.
  [[nodiscard]] virtual bool works_in_place() const { return false; }

  virtual void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const = 0;
  // Computes d_in, unless it is null, and then the gradient by the weights, both from d_out. The store may change the weights.
  virtual void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T* out, const T* d_out, T* d_in,
                        const GradientStore<T>& by_weights) const = 0;
};

// Makes the CUDA half of a layer. Returns null for a layer that only gives its input another shape.
template <class T>
using DeviceLayerFactory = std::function<std::unique_ptr<DeviceLayer<T>>(const NetworkForm::Layer&)>;

// Returns the CUDA half of a layer by its name. Throws ConfigError if the registry has no such half.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceLayer<T>> make_device_layer(const NetworkForm::Layer& layer) {
  const std::any& factory = Registry::instance().factory("layer", layer.form.name, Device::cuda, kPrecisionOf<T>);
  return std::any_cast<const DeviceLayerFactory<T>&>(factory)(layer);
}

// Registers Half<float> and Half<double>, which are constructed from NetworkForm::Layer, as the CUDA half of the layer with that name.
// Used as:   FL_REGISTER_CUDA_LAYER(DenseLayer, "dense");
template <template <class> class Half>
struct DeviceLayerRegistration {
  explicit DeviceLayerRegistration(const std::string& name) {
    add<float>(name);
    add<double>(name);
  }

 private:
  template <class T>
  static void add(const std::string& name) {
    const auto make = [](const NetworkForm::Layer& layer) -> std::unique_ptr<DeviceLayer<T>> { return std::make_unique<Half<T>>(layer); };
    Registry::instance().add("layer", name, Device::cuda, kPrecisionOf<T>, DeviceLayerFactory<T>(make));
  }
};
#define FL_REGISTER_CUDA_LAYER(Half, name) static const ::fl::cuda::DeviceLayerRegistration<Half> FL_JOIN(cuda_layer_, __COUNTER__)(name)

}  // namespace fl::cuda
