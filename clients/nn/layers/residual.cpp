// Residual block: out = body(in) + shortcut(in), the shortcut being the input itself unless layers are given for it.
//
// Tensors: those of the body, then those of the shortcut. K. He, X. Zhang, S. Ren and J. Sun, "Deep residual learning for image
// recognition", CVPR 2016.
#include <algorithm>

#include "clients/nn/branch.hpp"

namespace fl::nn {

struct ResidualOptions {
  std::vector<std::string> body, shortcut;
};
inline void describe(Schema& s, ResidualOptions& o) {
  s.field("body", o.body, "layers in brackets").required();
  s.field("shortcut", o.shortcut, "layers in brackets; none = the input itself");
}
inline void validate(const ResidualOptions& o, Problems& problems) {
  check_layers("body", o.body, problems);
  check_layers("shortcut", o.shortcut, problems);
}

template <class T>
class Residual final : public Module<T> {
 public:
  explicit Residual(const ResidualOptions& options) : options_(options) {}

  void know(const DataNames& names) override { names_ = names; }
  Shape bind(const Shape& input) override {
    body_ = Branch<T>(options_.body, input, names_, 1);
    if (has_shortcut()) shortcut_ = Branch<T>(options_.shortcut, input, names_, 2);
    n_ = input.size();
    const Shape& beside = has_shortcut() ? shortcut_.output() : input;
    if (!(body_.output() == beside))
      throw ConfigError("residual adds " + body_.output().text() + " of its body to " + beside.text() + " of its shortcut");
    return body_.output();
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    return has_shortcut() ? tensors_of(body_, "body", shortcut_, "shortcut") : body_.network().tensors("body.");
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return has_shortcut() ? form_of<T>({&body_, &shortcut_}) : form_of<T>({&body_});
  }
  [[nodiscard]] std::size_t room_size(std::size_t B) const override {
    return has_shortcut() ? B * n_ + std::max(body_.room_size(B), shortcut_.room_size(B)) : body_.room_size(B);
  }
  [[nodiscard]] std::size_t least_examples() const override {
    return has_shortcut() ? std::max(body_.least_examples(), shortcut_.least_examples()) : body_.least_examples();
  }
  // The shortcut is added to the output, and its derivative by the input to that of the body.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto outputs = static_cast<double>(body_.output().size()), n = static_cast<double>(n_);
    std::optional<LayerCost> sum = has_shortcut() ? cost_of_branches<T>({&body_, &shortcut_}) : cost_of_branches<T>({&body_});
    if (!sum) return sum;
    sum->forward.row += work_on<T>(outputs, 3 * outputs);
    sum->by_weights.row += work_on<T>(0, 2 * outputs);
    sum->by_input.row += work_on<T>(n, 3 * n);
    return sum;
  }
  void initial(RandomSequence& random, T* w) const override {
    body_.network().initial(random, w);
    if (has_shortcut()) shortcut_.network().initial(random, w + body_.size());
  }

  [[nodiscard]] std::size_t saved_size(std::size_t B) const override {
    return body_.saved_size(B) + (has_shortcut() ? shortcut_.saved_size(B) : 0);
  }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    const std::size_t count = pass.B * body_.output().size();
    body_.forward(pass, w, in, saved, [&](const T* z) {
      if (has_shortcut())
        std::copy_n(z, count, out);
      else
        for (std::size_t j = 0; j < count; ++j) out[j] = z[j] + in[j];
    });
    if (!has_shortcut()) return;
    shortcut_.forward(pass, w + body_.size(), in, saved + body_.saved_size(pass.B), [count, out](const T* z) {
      for (std::size_t j = 0; j < count; ++j) out[j] += z[j];
    });
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t count = pass.B * body_.output().size(), n = pass.B * n_;
    const auto fill = [count, d_out](T* d_z) { std::copy_n(d_out, count, d_z); };
    body_.backward(pass, w, in, saved, fill, d_in, d_w);
    if (!has_shortcut()) {
      for (std::size_t j = 0; d_in != nullptr && j < n; ++j) d_in[j] += d_out[j];
      return;
    }
    Workspace::Frame frame(*pass.exec.workspace);
    T* beside = d_in != nullptr ? frame.take<T>(n) : nullptr;
    shortcut_.backward(pass, w + body_.size(), in, saved + body_.saved_size(pass.B), fill, beside, d_w + body_.size());
    for (std::size_t j = 0; d_in != nullptr && j < n; ++j) d_in[j] += beside[j];
  }

 private:
  [[nodiscard]] bool has_shortcut() const { return !options_.shortcut.empty(); }

  ResidualOptions options_;
  DataNames names_;
  Branch<T> body_, shortcut_;
  std::size_t n_ = 0;
};

FL_REGISTER_PART(Module, Residual, ResidualOptions,
                 (PartInfo{"layer", "residual", "body(in) + in, or + shortcut(in)", "He et al., CVPR 2016"}));

}  // namespace fl::nn
