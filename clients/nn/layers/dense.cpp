// Dense (fully connected) layer: out [B,units] = in [B,n] W^T + b.
//
// Tensors: weight [units,n], bias [units]. Input of any shape, read as n numbers; output {units}; of a sequence {length, features} each
// position by itself, output {length, units}.
#include <algorithm>

#include "clients/nn/gemm.hpp"
#include "clients/nn/module.hpp"

namespace fl {
namespace nn {

struct DenseOptions {
  std::int64_t units = 0;
  bool bias = true;
  Initial init = Initial::pytorch;
};
inline void describe(Schema& s, DenseOptions& o) {
  s.field("units", o.units, "outputs").at_least(1).at_most(1 << 24).required();
  s.field("bias", o.bias, "a constant term per output");
  s.choice("init", o.init, initial_names(), "initialisation of the weights");
}

}  // namespace nn

LayerForm dense_form(std::size_t positions, std::size_t inputs, std::size_t outputs, bool bias) {
  return LayerForm({{"positions", positions}, {"inputs", inputs}, {"outputs", outputs}, {"bias", bias}},
                   {.products = {{positions, outputs, inputs}}}, "dense");
}

namespace nn {

template <class T>
class Dense final : public Module<T> {
 public:
  explicit Dense(const DenseOptions& options) : options_(options), units_(static_cast<std::size_t>(options.units)) {}

  Shape bind(const Shape& input) override {
    if (input.dims.size() == 2) {
      positions_ = input.dims[0];
      n_ = input.dims[1];
      return {{positions_, units_}};
    }
    n_ = input.size();
    return {{units_}};
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    std::vector<Layer> tensors{{"weight", 0, units_, n_}};
    if (options_.bias) tensors.push_back({"bias", units_ * n_, units_, 1});
    return tensors;
  }
  void initial(RandomSequence& random, T* w) const override {
    draw_initial(options_.init, random, n_, units_, false, w, units_ * n_);
    if (options_.bias) draw_initial(options_.init, random, n_, units_, true, w + units_ * n_, units_);
  }

  [[nodiscard]] std::optional<LayerForm> as_form() const override { return dense_form(positions_, n_, units_, options_.bias); }

  // Three products of 2 n units operations for each position; weights are read for two of them, and their gradient is written once.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto positions = static_cast<double>(positions_), n = static_cast<double>(n_), units = static_cast<double>(units_);
    const double product = 2 * positions * n * units, numbers = positions * (n + units), biases = options_.bias ? units : 0;
    return LayerCost{
        .forward = {.row = work_on<T>(product + positions * biases, numbers), .minibatch = work_on<T>(0, n * units + biases)},
        .by_weights = {.row = work_on<T>(product + positions * biases, numbers), .minibatch = work_on<T>(0, n * units + biases)},
        .by_input = {.row = work_on<T>(product, numbers), .minibatch = work_on<T>(0, n * units)}};
  }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T*) const override {
    const std::size_t rows = pass.B * positions_;
    if (options_.bias)
      for (std::size_t b = 0; b < rows; ++b) std::copy_n(w + units_ * n_, units_, out + b * units_);
    gemm(Op::plain, Op::transposed, rows, units_, n_, in, n_, w, n_, options_.bias, out, units_);
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T*, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t rows = pass.B * positions_;
    gemm(Op::transposed, Op::plain, units_, n_, rows, d_out, units_, in, n_, pass.accumulate, d_w, n_);
    if (options_.bias) {
      T* d_bias = d_w + units_ * n_;
      if (!pass.accumulate) std::fill_n(d_bias, units_, T(0));
      for (std::size_t b = 0; b < rows; ++b)
        for (std::size_t u = 0; u < units_; ++u) d_bias[u] += d_out[b * units_ + u];
    }
    if (d_in != nullptr) gemm(Op::plain, Op::plain, rows, n_, units_, d_out, units_, w, n_, false, d_in, n_);
  }

 private:
  DenseOptions options_;
  std::size_t units_, n_ = 0, positions_ = 1;
};

FL_REGISTER_PART(Module, Dense, DenseOptions, (PartInfo{"layer", "dense", "fully connected: in W^T + b", ""}));

}  // namespace nn
}  // namespace fl
