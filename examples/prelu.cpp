// A layer of two files: this one describes it and computes it on the CPU, prelu.cu computes it on a GPU. Numbers above zero stay as they
// are, others are multiplied by a slope that is learned, one for each channel of an image or for each number of a plain example:
//
//   out = x where x > 0, else slope_c x
//
// K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015. docs/how-to-add-a-layer.md walks through both files.
#include <algorithm>

#include "fedbits/plugin.hpp"

namespace fl::nn {
namespace {

// 1. What may stand in brackets behind the layer's name, in this order or by name: prelu(0.1), prelu(slope=0.1).
struct PreluOptions {
  double slope = 0.25;
};
inline void describe(Schema& schema, PreluOptions& options) {
  schema.field("slope", options.slope, "where the slopes begin").at_least(-10).at_most(10);
}

template <class T>
class Prelu final : public Module<T> {
 public:
  explicit Prelu(const PreluOptions& options) : slope_(options.slope) {}

  // 2. Shapes and parameters.
  Shape bind(const Shape& input) override {
    if (input.dims.size() == 2) throw ConfigError("prelu needs an image or plain numbers, its input is " + input.text());
    channels_ = input.channels();
    pixels_ = input.size() / channels_;
    return input;
  }
  [[nodiscard]] std::vector<Layer> tensors() const override { return {{"slope", 0, channels_, 1}}; }
  void initial(RandomSequence&, T* w) const override { std::fill_n(w, channels_, static_cast<T>(slope_)); }

  // 3. What the CUDA half is made from. This layer keeps nothing for backward but its input, so that it states no memory.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({{"channels", channels_}, {"pixels", pixels_}}, {.kept = 0, .room = 0});
  }

  // 4. A minibatch forward, and the derivatives on the way back.
  void forward(const Pass& pass, const T* w, const T* in, T* out, T*) const override {
    for (std::size_t i = 0; i < pass.B * channels_; ++i)
      for (std::size_t at = i * pixels_; at < (i + 1) * pixels_; ++at) out[at] = in[at] > T(0) ? in[at] : w[i % channels_] * in[at];
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T*, const T* d_out, T* d_in, T* d_w) const override {
    for (std::size_t c = 0; c < channels_; ++c) {
      double sum = 0;
      for (std::size_t b = 0; b < pass.B; ++b)
        for (std::size_t at = (b * channels_ + c) * pixels_, end = at + pixels_; at < end; ++at) {
          if (d_in != nullptr) d_in[at] = in[at] > T(0) ? d_out[at] : w[c] * d_out[at];
          if (!(in[at] > T(0))) sum += static_cast<double>(in[at]) * static_cast<double>(d_out[at]);
        }
      d_w[c] = (pass.accumulate ? d_w[c] : T(0)) + static_cast<T>(sum);
    }
  }

 private:
  double slope_;
  std::size_t channels_ = 0, pixels_ = 0;
};

// 5. Its name in scenario files, and where it comes from.
FL_REGISTER_PART(Module, Prelu, PreluOptions,
                 (PartInfo{"layer", "prelu", "x where x > 0, else x times a slope that is learned", "He et al., ICCV 2015"}));

}  // namespace
}  // namespace fl::nn
