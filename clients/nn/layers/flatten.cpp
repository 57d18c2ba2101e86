// An example as a plain list of numbers: {n} from any shape.
#include <algorithm>

#include "clients/nn/module.hpp"

namespace fl::nn {

template <class T>
class Flatten final : public Module<T> {
 public:
  explicit Flatten(const NoOptions&) {}
  Shape bind(const Shape& input) override {
    n_ = input.size();
    return {{n_}};
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override { return LayerForm({}, {.writes_output = false}); }
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const PassCost copy{.row = work_on<T>(0, 2 * static_cast<double>(n_))};
    return LayerCost{.forward = copy, .by_weights = {}, .by_input = copy};
  }
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override { std::copy_n(in, pass.B * n_, out); }
  void backward(const Pass& pass, const T*, const T*, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in != nullptr) std::copy_n(d_out, pass.B * n_, d_in);
  }

 private:
  std::size_t n_ = 0;
};

FL_REGISTER_PART(Module, Flatten, NoOptions, (PartInfo{"layer", "flatten", "an example as a plain list of numbers", ""}));

}  // namespace fl::nn
