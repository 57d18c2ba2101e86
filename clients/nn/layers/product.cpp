// Product of the positions of a sequence, entry by entry: out_j = prod_t in_tj. {length, n} to {n}.
//
// Of the vectors of a user and an item it is generalised matrix factorisation: X. He et al., "Neural collaborative filtering", WWW 2017.
#include <algorithm>

#include "clients/nn/module.hpp"

namespace fl::nn {

template <class T>
class Product final : public Module<T> {
 public:
  explicit Product(const NoOptions&) {}

  Shape bind(const Shape& input) override {
    if (input.dims.size() != 2) throw ConfigError("product needs a sequence {length, features}, its input is " + input.text());
    length_ = input.dims[0];
    n_ = input.dims[1];
    return {{n_}};
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override { return LayerForm({{"length", length_}, {"entries", n_}}); }
  // Backward multiplies the other positions for each of them.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto L = static_cast<double>(length_), n = static_cast<double>(n_);
    return LayerCost{
        .forward = {.row = work_on<T>(L * n, (L + 1) * n)}, .by_weights = {}, .by_input = {.row = work_on<T>(L * L * n, L * (L + 1) * n)}};
  }
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override {
    for (std::size_t b = 0; b < pass.B; ++b) product_without(in + b * length_ * n_, length_, out + b * n_);
  }
  void backward(const Pass& pass, const T*, const T* in, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in == nullptr) return;
    for (std::size_t b = 0; b < pass.B; ++b)
      for (std::size_t t = 0; t < length_; ++t) {
        T* to = d_in + (b * length_ + t) * n_;
        product_without(in + b * length_ * n_, t, to);
        for (std::size_t j = 0; j < n_; ++j) to[j] *= d_out[b * n_ + j];
      }
  }

 private:
  // The product of all positions but `left_out`.
  void product_without(const T* in, std::size_t left_out, T* out) const {
    std::fill_n(out, n_, T(1));
    for (std::size_t t = 0; t < length_; ++t)
      for (std::size_t j = 0; t != left_out && j < n_; ++j) out[j] *= in[t * n_ + j];
  }
  std::size_t length_ = 0, n_ = 0;
};

FL_REGISTER_PART(Module, Product, NoOptions,
                 (PartInfo{"layer", "product", "product of the positions of a sequence, entry by entry", "He et al., WWW 2017"}));

}  // namespace fl::nn
