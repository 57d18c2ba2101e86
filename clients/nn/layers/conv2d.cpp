// 2-D convolution (cross-correlation) of images {C,H,W}: out {channels, (H+2 padding-kernel)/stride+1, (W+2 padding-kernel)/stride+1}.
//
// Tensors: weight [channels, C kernel kernel], bias [channels].
#include <algorithm>

#include "clients/nn/convolution.hpp"
#include "clients/nn/elementwise.hpp"
#include "clients/nn/module.hpp"

namespace fl::nn {

struct Conv2dOptions {
  std::int64_t channels = 0, kernel = 3, padding = 0, stride = 1;
  bool bias = true;
  Initial init = Initial::pytorch;
};
inline void describe(Schema& s, Conv2dOptions& o) {
  s.field("channels", o.channels, "channels of the output").at_least(1).at_most(65536).required();
  s.field("kernel", o.kernel, "height and width of a window").at_least(1).at_most(255);
  s.field("padding", o.padding, "zeros around the image").at_least(0).at_most(255);
  s.field("stride", o.stride, "distance between windows").at_least(1).at_most(255);
  s.field("bias", o.bias, "a constant term per channel");
  s.choice("init", o.init, initial_names(), "initialisation of the weights");
}

template <class T>
class Conv2d final : public Module<T> {
 public:
  explicit Conv2d(const Conv2dOptions& options)
      : options_(options),
        out_channels_(static_cast<std::size_t>(options.channels)),
        kernel_(static_cast<std::size_t>(options.kernel)),
        padding_(static_cast<std::size_t>(options.padding)),
        stride_(static_cast<std::size_t>(options.stride)) {}

  Shape bind(const Shape& input) override {
    if (!input.is_image()) throw ConfigError("conv2d needs images {channels, height, width}, its input is " + input.text());
    in_ = input;
    if (input.height() + 2 * padding_ < kernel_ || input.width() + 2 * padding_ < kernel_)
      throw ConfigError("conv2d with kernel " + std::to_string(kernel_) + " does not fit into " + input.text());
    out_h_ = (input.height() + 2 * padding_ - kernel_) / stride_ + 1;
    out_w_ = (input.width() + 2 * padding_ - kernel_) / stride_ + 1;
    window_ = input.channels() * kernel_ * kernel_;
    return {{out_channels_, out_h_, out_w_}};
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    std::vector<Layer> tensors{{"weight", 0, out_channels_, window_}};
    if (options_.bias) tensors.push_back({"bias", out_channels_ * window_, out_channels_, 1});
    return tensors;
  }
  void initial(RandomSequence& random, T* w) const override {
    const std::size_t fan_out = out_channels_ * kernel_ * kernel_;
    draw_initial(options_.init, random, window_, fan_out, false, w, out_channels_ * window_);
    if (options_.bias) draw_initial(options_.init, random, window_, fan_out, true, w + out_channels_ * window_, out_channels_);
  }

  // Windows of the input, or of the slopes by the output, may be laid out as a matrix for its products.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    const std::size_t square = kernel_ * kernel_, places = out_h_ * out_w_, pixels = in_.height() * in_.width();
    return LayerForm({{"channels", in_.channels()},
                      {"height", in_.height()},
                      {"width", in_.width()},
                      {"out_channels", out_channels_},
                      {"out_height", out_h_},
                      {"out_width", out_w_},
                      {"kernel", kernel_},
                      {"padding", padding_},
                      {"stride", stride_},
                      {"bias", options_.bias}},
                     {.windows = std::max(places * in_.channels() * square, pixels * out_channels_ * square),
                      .products = {{places, out_channels_, in_.channels() * square}, {pixels, in_.channels(), out_channels_ * square}}});
  }

  // Each of the three products has an operand for every output, and for every entry of its window, zeros around the image included.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto in = static_cast<double>(in_.size()), out = static_cast<double>(out_channels_ * out_h_ * out_w_);
    const auto weights = static_cast<double>(out_channels_ * window_);
    const double product = 2 * out * static_cast<double>(window_), biases = options_.bias ? static_cast<double>(out_channels_) : 0;
    const double of_bias = options_.bias ? out : 0;
    return LayerCost{.forward = {.row = work_on<T>(product + of_bias, in + out), .minibatch = work_on<T>(0, weights + biases)},
                     .by_weights = {.row = work_on<T>(product + of_bias, in + out), .minibatch = work_on<T>(0, weights + biases)},
                     .by_input = {.row = work_on<T>(product, in + out), .minibatch = work_on<T>(0, weights)}};
  }
  [[nodiscard]] std::size_t room_size(std::size_t B) const override { return convolution_room(convolution(), B); }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T*) const override {
    convolve(pass.exec, convolution(), pass.B, w, options_.bias ? w + out_channels_ * window_ : nullptr, in, out);
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T*, const T* d_out, T* d_in, T* d_w) const override {
    if (options_.bias) bias_gradient(pass, d_out, d_w + out_channels_ * window_);
    convolve_back(pass.exec, convolution(), pass.B, w, in, d_out, pass.accumulate, d_in, d_w);
  }

 private:
  [[nodiscard]] Convolution convolution() const {
    return {in_.channels(), in_.height(), in_.width(), out_channels_, kernel_, padding_, stride_};
  }
  void bias_gradient(const Pass& pass, const T* d_out, T* d_bias) const {
    const std::size_t pixels = out_h_ * out_w_;
    if (!pass.accumulate) std::fill_n(d_bias, out_channels_, T(0));
    for (std::size_t b = 0; b < pass.B; ++b)
      for (std::size_t c = 0; c < out_channels_; ++c) d_bias[c] += sum_of(pixels, d_out + (b * out_channels_ + c) * pixels);
  }

  Conv2dOptions options_;
  std::size_t out_channels_, kernel_, padding_, stride_, out_h_ = 0, out_w_ = 0, window_ = 0;
  Shape in_;
};

FL_REGISTER_PART(Module, Conv2d, Conv2dOptions, (PartInfo{"layer", "conv2d", "2-D convolution of images", ""}));

}  // namespace fl::nn
