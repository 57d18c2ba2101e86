// form::Dense: three products for each client.
#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/bias.cuh"
#include "clients/cuda/matrix_products.cuh"

namespace fl::cuda {
namespace {

template <class T>
class DenseLayer final : public DeviceLayer<T> {
 public:
  explicit DenseLayer(const form::Dense& form) : form_(form), inputs_(form.inputs), outputs_(form.outputs) {}

  [[nodiscard]] std::size_t num_kernels() const override { return 7; }
  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t rows = pass.B * form_.positions;
    const T* bias = form_.bias ? w.data + inputs_ * outputs_ : nullptr;
    matrix_product<T>(pass, "dense", rows, outputs_, inputs_, LeftMatrix<T>{in, rows * inputs_, inputs_},
                      RightMatrix<T, true>{w.data, w.stride, inputs_},
                      StoreMatrix<T>{out, rows * outputs_, outputs_, false, bias, w.stride});
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    const std::size_t rows = pass.B * form_.positions;
    if (d_in != nullptr)
      matrix_product<T>(pass, "dense_by_input", rows, inputs_, outputs_, LeftMatrix<T>{d_out, rows * outputs_, outputs_},
                        RightMatrix<T>{w.data, w.stride, inputs_}, StoreMatrix<T>{d_in, rows * inputs_, inputs_});
    matrix_product<T>(pass, "dense_by_weights", outputs_, inputs_, rows, LeftMatrix<T, true>{d_out, rows * outputs_, outputs_},
                      RightMatrix<T>{in, rows * inputs_, inputs_}, StoreGradient<T>{by_weights, inputs_});
    if (form_.bias) bias_slopes<T>(pass, outputs_, form_.positions, 1, d_out, by_weights.from(inputs_ * outputs_));
  }

 private:
  form::Dense form_;
  std::size_t inputs_, outputs_;
};

}  // namespace

template <class T>
std::unique_ptr<DeviceLayer<T>> make_dense(const form::Dense& form) {
  return std::make_unique<DenseLayer<T>>(form);
}
template std::unique_ptr<DeviceLayer<float>> make_dense(const form::Dense&);
template std::unique_ptr<DeviceLayer<double>> make_dense(const form::Dense&);

}  // namespace fl::cuda
