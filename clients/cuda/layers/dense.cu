// "dense": three products for each client.
#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/bias.cuh"
#include "clients/cuda/matrix_products.cuh"

namespace fl::cuda {
namespace {

template <class T>
class DenseLayer final : public DeviceLayer<T> {
 public:
  explicit DenseLayer(const NetworkForm::Layer& layer)
      : positions_(layer.form.size("positions")),
        inputs_(layer.form.size("inputs")),
        outputs_(layer.form.size("outputs")),
        has_bias_(layer.form.size("bias") > 0) {}

  [[nodiscard]] std::size_t num_kernels() const override { return 7; }
  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t rows = pass.B * positions_;
    const T* bias = has_bias_ ? w.data + inputs_ * outputs_ : nullptr;
    matrix_product<T>(pass, "dense", rows, outputs_, inputs_, LeftMatrix<T>{in, rows * inputs_, inputs_},
                      RightMatrix<T, true>{w.data, w.stride, inputs_},
                      StoreMatrix<T>{out, rows * outputs_, outputs_, false, bias, w.stride});
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    const std::size_t rows = pass.B * positions_;
    if (d_in != nullptr)
      matrix_product<T>(pass, "dense_by_input", rows, inputs_, outputs_, LeftMatrix<T>{d_out, rows * outputs_, outputs_},
                        RightMatrix<T>{w.data, w.stride, inputs_}, StoreMatrix<T>{d_in, rows * inputs_, inputs_});
    matrix_product<T>(pass, "dense_by_weights", outputs_, inputs_, rows, LeftMatrix<T, true>{d_out, rows * outputs_, outputs_},
                      RightMatrix<T>{in, rows * inputs_, inputs_}, StoreGradient<T>{by_weights, inputs_});
    if (has_bias_) bias_slopes<T>(pass, outputs_, positions_, 1, d_out, by_weights.from(inputs_ * outputs_));
  }

 private:
  std::size_t positions_, inputs_, outputs_;
  bool has_bias_;
};

FL_REGISTER_CUDA_LAYER(DenseLayer, "dense");

}  // namespace
}  // namespace fl::cuda
