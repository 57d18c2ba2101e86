// Dropout: while training, an entry is zero with probability `rate` and else divided by 1 - rate; at evaluation nothing happens.
//
// Which entries fall depends on seed, client, round, step and layer alone. N. Srivastava et al., "Dropout: a simple way to prevent neural
// networks from overfitting", JMLR 15, 2014.
#include <algorithm>

#include "clients/nn/module.hpp"

namespace fl::nn {

struct DropoutOptions {
  double rate = 0.5;
};
inline void describe(Schema& s, DropoutOptions& o) { s.field("rate", o.rate, "probability of a zero").at_least(0).below(1); }

template <class T>
class Dropout final : public Module<T> {
 public:
  explicit Dropout(const DropoutOptions& options) : rate_(options.rate) {}
  Shape bind(const Shape& input) override {
    n_ = input.size();
    return input;
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override { return LayerForm({{"rate", rate_}}); }
  // Backward draws the same numbers again.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto n = static_cast<double>(n_);
    const PassCost once{.row = work_on<T>(rate_ == 0 ? 0 : n * (kRandomOperations + 2), 2 * n)};
    return LayerCost{.forward = once, .by_weights = {}, .by_input = once};
  }
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override { apply(pass, in, out); }
  void backward(const Pass& pass, const T*, const T*, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    if (d_in != nullptr) apply(pass, d_out, d_in);
  }

 private:
  void apply(const Pass& pass, const T* from, T* to) const {
    const std::size_t count = pass.B * n_;
    if (!pass.drops || rate_ == 0) {
      std::copy_n(from, count, to);
      return;
    }
    const auto keep = static_cast<T>(1 / (1 - rate_));
    const auto bound = static_cast<std::uint64_t>(rate_ * 4294967296.0);
    const std::size_t before = pass.first / 4 * n_;
    for (std::size_t quad = 0; quad * 4 < count; ++quad) {
      std::uint32_t words[4];
      pass.random.quad(static_cast<std::uint32_t>(before + quad), words);
      for (std::size_t i = 0; i < 4 && quad * 4 + i < count; ++i) {
        const T x = from[quad * 4 + i];
        to[quad * 4 + i] = words[i] < bound ? x * T(0) + T(0) : x * keep;  // NaN stays NaN, and -0 becomes 0
      }
    }
  }
  double rate_;
  std::size_t n_ = 0;
};

FL_REGISTER_PART(Module, Dropout, DropoutOptions,
                 (PartInfo{"layer", "dropout", "zeros at random while training", "Srivastava et al., JMLR 2014"}));

}  // namespace fl::nn
