// Element-wise functions: relu max(x, 0); tanh; gelu x Phi(x), exact. Output has the input's shape. NaN stays NaN.
//
// D. Hendrycks and K. Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415, 2016.
#include <cmath>

#include "clients/nn/elementwise.hpp"
#include "clients/nn/module.hpp"

namespace fl::nn {

// `Function` has values(n, x, y) and derivative(x, y), and their operations per entry, that of the product with d_out included.
template <class T, class Function>
class Elementwise : public Module<T> {
 public:
  explicit Elementwise(const NoOptions&) {}
  Shape bind(const Shape& input) override {
    n_ = input.size();
    return input;
  }
  [[nodiscard]] bool needs_output() const override { return true; }
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    return cost_of_entries<T>(n_, Function::kValueOperations, Function::kDerivativeOperations);
  }
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override { Function::values(pass.B * n_, in, out); }
  void backward(const Pass& pass, const T*, const T* in, const T* out, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in == nullptr) return;
    for (std::size_t j = 0; j < pass.B * n_; ++j) d_in[j] = d_out[j] * Function::derivative(in[j], out[j]);
  }

 private:
  std::size_t n_ = 0;
};

template <class T>
struct ReluFunction {
  static constexpr double kValueOperations = 1, kDerivativeOperations = 2;
  static void values(std::size_t n, const T* x, T* y) {
    for (std::size_t j = 0; j < n; ++j) y[j] = x[j] <= T(0) ? T(0) : x[j];
  }
  static T derivative(T, T y) { return y <= T(0) ? T(0) : T(1); }
};
template <class T>
struct TanhFunction {
  static constexpr double kValueOperations = kFunctionOperations, kDerivativeOperations = 3;
  static void values(std::size_t n, const T* x, T* y) { tanh_of(n, x, y); }
  static T derivative(T, T y) { return T(1) - y * y; }
};
template <class T>
struct GeluFunction {
  static constexpr double kValueOperations = kFunctionOperations + 4, kDerivativeOperations = 2 * kFunctionOperations + 9;
  static T cdf(T x) { return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))); }
  static void values(std::size_t n, const T* x, T* y) {
    for (std::size_t j = 0; j < n; ++j) y[j] = x[j] * cdf(x[j]);
  }
  static T derivative(T x, T) { return cdf(x) + x * T(0.39894228040143267794) * std::exp(T(-0.5) * x * x); }
};

template <class T>
struct Relu final : Elementwise<T, ReluFunction<T>> {
  using Elementwise<T, ReluFunction<T>>::Elementwise;
};
template <class T>
struct Tanh final : Elementwise<T, TanhFunction<T>> {
  using Elementwise<T, TanhFunction<T>>::Elementwise;
};
template <class T>
struct Gelu final : Elementwise<T, GeluFunction<T>> {
  using Elementwise<T, GeluFunction<T>>::Elementwise;
};

FL_REGISTER_PART(Module, Relu, NoOptions, (PartInfo{"layer", "relu", "max(x, 0)", ""}));
FL_REGISTER_PART(Module, Tanh, NoOptions, (PartInfo{"layer", "tanh", "hyperbolic tangent", ""}));
FL_REGISTER_PART(Module, Gelu, NoOptions, (PartInfo{"layer", "gelu", "x Phi(x), exact", "Hendrycks and Gimpel, arXiv:1606.08415, 2016"}));

}  // namespace fl::nn
