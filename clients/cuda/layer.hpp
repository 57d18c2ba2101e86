// A layer of many clients' networks on a GPU: every client's minibatch, or a piece of it, at once.
//
// Activations are [clients,B,n] as in clients/nn/module.hpp; B is the same for all, places without a row hold what the rows' gather left
// there (zeros) and have a slope of zero. Weights are a stretch of each client's vector [P].
//
// A layer's CUDA half is one file that registers it under the name of the layer; it is made from the numbers with which the layer describes
// itself (Module::as_form). docs/how-to-add-a-layer.md walks through an example.
#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/cuda/gradient_store.cuh"
#include "clients/network_form.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cuda {

struct LayerPass {
  const Exec& exec;
  std::size_t clients = 0, B = 0;
  bool training = true;                  // false: forward alone; batch norm takes its running statistics
  const RandomStream* random = nullptr;  // [clients] on the GPU, of the step; null: dropout does not drop
  const std::uint32_t* row = nullptr;    // [clients,B] on the GPU: which places hold a row, the first of a client; null: all
  std::size_t first = 0;                 // number of each client's first example in its minibatch, a multiple of 4
  void* saved = nullptr;                 // LayerMemory::kept entries for each of the examples; null where there is only forward
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
  // Whether backward reads what forward read, and what it wrote.
  [[nodiscard]] virtual bool needs_input() const { return true; }
  [[nodiscard]] virtual bool needs_output() const { return false; }
  // Whether it needs random numbers.
  [[nodiscard]] virtual bool draws() const { return false; }
  // The networks inside of the layer. What they keep for backward lies in pass.saved behind what the layer keeps itself.
  [[nodiscard]] virtual std::vector<const DeviceNetwork<T>*> networks() const { return {}; }
  // About how many kernels a pass forward and back starts.
  [[nodiscard]] virtual std::size_t num_kernels() const { return 3; }
  // Whether `out` may be `in`, and d_in d_out.
  [[nodiscard]] virtual bool works_in_place() const { return false; }

  virtual void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const = 0;
  // d_in, unless null, and then the gradient by the weights from d_out. The store may change the weights.
  virtual void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T* out, const T* d_out, T* d_in,
                        const GradientStore<T>& by_weights) const = 0;
};

// Makes the CUDA half of a layer; null for one that gives its input under another shape.
template <class T>
using DeviceLayerFactory = std::function<std::unique_ptr<DeviceLayer<T>>(const NetworkForm::Layer&)>;

// Returns the CUDA half of a layer by its name. Throws ConfigError where the registry has none.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceLayer<T>> make_device_layer(const NetworkForm::Layer& layer) {
  const std::any& factory = Registry::instance().factory("layer", layer.form.name, Device::cuda, kPrecisionOf<T>);
  return std::any_cast<const DeviceLayerFactory<T>&>(factory)(layer);
}

// Registers Half<float> and Half<double>, which are constructed from NetworkForm::Layer, as the CUDA half of the layer of that name.
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
