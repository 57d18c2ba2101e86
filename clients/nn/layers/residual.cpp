// Residual block: out = body(in) + shortcut(in), the shortcut being the input itself unless layers are given for it.
//
// Tensors: those of the body, then those of the shortcut. K. He, X. Zhang, S. Ren and J. Sun, "Deep residual learning for image
// recognition", CVPR 2016.
#include <algorithm>

#include "clients/nn/network.hpp"

namespace fl {
namespace nn {

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

}  // namespace nn

namespace nn::FL_DEVICE_NS {

template <class T>
class Residual final : public Module<T> {
 public:
  explicit Residual(const ResidualOptions& options) : options_(options) {}

  void know(const DataNames& names) override { names_ = names; }
  Shape bind(const Shape& input) override {
    body_ = Network<T>(options_.body, input, names_);
    if (!options_.shortcut.empty()) shortcut_ = Network<T>(options_.shortcut, input, names_);
    n_ = input.size();
    const Shape& beside = options_.shortcut.empty() ? input : shortcut_.output();
    if (!(body_.output() == beside))
      throw ConfigError("residual adds " + body_.output().text() + " of its body to " + beside.text() + " of its shortcut");
    return body_.output();
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    std::vector<Layer> tensors = body_.tensors("body.");
    if (options_.shortcut.empty()) return tensors;
    for (Layer tensor : shortcut_.tensors("shortcut.")) {
      tensor.begin += body_.size();
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  void initial(RandomSequence& random, T* w) const override {
    body_.initial(random, w);
    if (!options_.shortcut.empty()) shortcut_.initial(random, w + body_.size());
  }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T*) const override {
    const std::size_t count = pass.B * body_.output().size();
    run(pass, body_, w, in, kBody, [&](const T* z, const Tape<T>&) { std::copy_n(z, count, out); });
    if (options_.shortcut.empty()) {
      for (std::size_t j = 0; j < count; ++j) out[j] += in[j];
      return;
    }
    run(pass, shortcut_, w + body_.size(), in, kShortcut, [&](const T* z, const Tape<T>&) {
      for (std::size_t j = 0; j < count; ++j) out[j] += z[j];
    });
  }
  // The activations inside are computed again: they would be many times what the network keeps.
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T*, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t count = pass.B * body_.output().size(), n = pass.B * n_;
    const auto back = [&](const Network<T>& network, std::size_t begin, std::uint32_t salt, T* into) {
      run(pass, network, w + begin, in, salt, [&](const T*, const Tape<T>& tape) {
        std::copy_n(d_out, count, network.slope_of_output(tape));
        network.backward(salted(pass, salt), w + begin, tape, into, d_w + begin);
      });
    };
    back(body_, 0, kBody, d_in);
    if (options_.shortcut.empty()) {
      for (std::size_t j = 0; d_in != nullptr && j < n; ++j) d_in[j] += d_out[j];
      return;
    }
    Workspace::Frame frame(*pass.exec.workspace);
    T* beside = d_in != nullptr ? frame.take<T>(n) : nullptr;
    back(shortcut_, body_.size(), kShortcut, beside);
    for (std::size_t j = 0; d_in != nullptr && j < n; ++j) d_in[j] += beside[j];
  }

 private:
  static constexpr std::uint32_t kBody = 1u << 28, kShortcut = 2u << 28;  // of the client's part of the counter
  // Layers inside draw other numbers than layers outside.
  static Pass salted(const Pass& pass, std::uint32_t salt) {
    Pass own = pass;
    own.random.key1 ^= salt ^ (pass.random.step_layer << 8);
    return own;
  }
  template <class Use>
  void run(const Pass& pass, const Network<T>& network, const T* w, const T* in, std::uint32_t salt, const Use& use) const {
    Workspace::Frame frame(*pass.exec.workspace);
    const Tape<T> tape = network.open(frame, pass.B);
    std::copy_n(in, pass.B * n_, tape.activation[0]);
    use(network.forward(salted(pass, salt), w, tape), tape);
  }

  ResidualOptions options_;
  DataNames names_;
  Network<T> body_, shortcut_;
  std::size_t n_ = 0;
};

FL_REGISTER_PART(Module, Residual, ResidualOptions,
                 (PartInfo{"layer", "residual", "body(in) + in, or + shortcut(in)", "He et al., CVPR 2016"}));

}  // namespace nn::FL_DEVICE_NS
}  // namespace fl
