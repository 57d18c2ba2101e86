// Normalisation: an entry minus its group's mean over its group's standard deviation, then scaled and shifted by weights of its channel.
//
//   group_norm   a group is the entries of groups of channels of one example: nothing depends on the other examples of a minibatch
//   batch_norm   a group is a channel over the whole minibatch, which has two entries of it or more; at evaluation the running statistics
//                take their place
// Deviations are sqrt(variance + epsilon), variance with 1/n. Tensors: weight [C] (1), bias [C] (0); batch_norm also running_mean [C] (0)
// and running_variance [C] (1). The "gradient" of the running statistics is (running - of the minibatch), and LocalUpdate moves them by
// `momentum` of it, whatever the step size (Layer::running_rate); clients send them raw, and the server takes their mean. Y. Wu and K.
// He, "Group normalization", ECCV 2018; S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015.
#include <algorithm>
#include <cmath>

#include "clients/nn/module.hpp"
#include "clients/nn/moments.hpp"

namespace fl::nn {

// The cost of normalising n entries. Forward: one operation of the mean, three of the variance, two of scale and shift. Backward: five of
// the sums by weight and bias, seven of the derivative by the input. `tensors` are the numbers per channel.
template <class T>
LayerCost cost_of_normalising(std::size_t entries, std::size_t channels, double tensors) {
  const auto n = static_cast<double>(entries), C = static_cast<double>(channels);
  return {.forward = {.row = work_on<T>(6 * n, 4 * n), .minibatch = work_on<T>(0, 2 * C)},
          .by_weights = {.row = work_on<T>(5 * n, 3 * n), .minibatch = work_on<T>(0, tensors * C)},
          .by_input = {.row = work_on<T>(7 * n, 3 * n), .minibatch = work_on<T>(0, C)}};
}

struct GroupNormOptions {
  std::int64_t groups = 1;
  double epsilon = 1e-5;
};
inline void describe(Schema& s, GroupNormOptions& o) {
  s.field("groups", o.groups, "groups that the channels are cut into; 1 = layer normalisation").at_least(1).at_most(65536);
  s.field("epsilon", o.epsilon, "added to variances").above(0);
}

template <class T>
class GroupNorm final : public Module<T> {
 public:
  explicit GroupNorm(const GroupNormOptions& options) : options_(options), groups_(static_cast<std::size_t>(options.groups)) {}

  Shape bind(const Shape& input) override {
    channels_ = input.channels();
    pixels_ = input.size() / channels_;
    if (channels_ % groups_ != 0)
      throw ConfigError("group_norm cannot cut " + std::to_string(channels_) + " channels into " + std::to_string(groups_) + " groups");
    return input;
  }
  [[nodiscard]] std::vector<Layer> tensors() const override { return {{"weight", 0, channels_, 1}, {"bias", channels_, channels_, 1}}; }
  void initial(RandomSequence&, T* w) const override {
    std::fill_n(w, channels_, T(1));
    std::fill_n(w + channels_, channels_, T(0));
  }
  // Kept are mean and 1/deviation of each group; slopes by weight and bias of each channel, in double, are the room.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({{"groups", groups_}, {"channels", channels_}, {"pixels", pixels_}, {"epsilon", options_.epsilon}},
                     {.kept = 2 * groups_, .room = 2 * channels_ * sizeof(double) / sizeof(T)});
  }
  [[nodiscard]] std::optional<LayerCost> cost() const override { return cost_of_normalising<T>(channels_ * pixels_, channels_, 2); }
  // Mean and 1/deviation of each group.
  [[nodiscard]] std::size_t saved_size(std::size_t B) const override { return 2 * B * groups_; }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    const std::size_t count = channels_ / groups_ * pixels_;
    for (std::size_t g = 0; g < pass.B * groups_; ++g) {
      const T* x = in + g * count;
      const double mean = sum_in_double(count, [x](std::size_t j) { return x[j]; }) / static_cast<double>(count);
      const double square = sum_in_double(count, [x, mean](std::size_t j) {
        const double off = static_cast<double>(x[j]) - mean;
        return off * off;
      });
      saved[2 * g] = static_cast<T>(mean);
      saved[2 * g + 1] = static_cast<T>(1 / std::sqrt(square / static_cast<double>(count) + options_.epsilon));
      each_channel(g, [&](std::size_t c, std::size_t at) {
        const T scale = w[c] * saved[2 * g + 1], shift = w[channels_ + c] - saved[2 * g] * scale;
        for (std::size_t p = 0; p < pixels_; ++p) out[at + p] = scale * in[at + p] + shift;
      });
    }
  }
  // With y = (x - mean) r and u = w d_out: d_in = r (u - mean(u) - y mean(u y)), means over the group.
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    if (!pass.accumulate) std::fill_n(d_w, 2 * channels_, T(0));
    const std::size_t entries = channels_ / groups_ * pixels_;
    const auto count = static_cast<double>(entries);
    for (std::size_t g = 0; g < pass.B * groups_; ++g) {
      const T mean = saved[2 * g], r = saved[2 * g + 1];
      double sum = 0, product = 0;
      each_channel(g, [&](std::size_t c, std::size_t at) {
        const T *x = in + at, *slope = d_out + at;
        const double d_bias = sum_in_double(pixels_, [slope](std::size_t p) { return slope[p]; });
        const double d_weight = sum_in_double(pixels_, [=](std::size_t p) { return slope[p] * (x[p] - mean) * r; });
        d_w[c] += static_cast<T>(d_weight);
        d_w[channels_ + c] += static_cast<T>(d_bias);
        sum += static_cast<double>(w[c]) * d_bias;
        product += static_cast<double>(w[c]) * d_weight;
      });
      if (d_in == nullptr) continue;
      const T mean_u = static_cast<T>(sum / count), mean_uy = static_cast<T>(product / count);
      each_channel(g, [&](std::size_t c, std::size_t at) {
        for (std::size_t p = 0; p < pixels_; ++p) d_in[at + p] = r * (w[c] * d_out[at + p] - mean_u - (in[at + p] - mean) * r * mean_uy);
      });
    }
  }

 private:
  // Calls f(channel, where its entries begin) for the channels of group g of the minibatch.
  template <class F>
  void each_channel(std::size_t g, const F& f) const {
    const std::size_t per_group = channels_ / groups_;
    for (std::size_t i = 0; i < per_group; ++i) f(g % groups_ * per_group + i, (g * per_group + i) * pixels_);
  }
  GroupNormOptions options_;
  std::size_t groups_, channels_ = 0, pixels_ = 0;
};

struct BatchNormOptions {
  double momentum = 0.1, epsilon = 1e-5;
};
inline void describe(Schema& s, BatchNormOptions& o) {
  s.field("momentum", o.momentum, "weight of a minibatch's statistics in the running ones").above(0).at_most(1);
  s.field("epsilon", o.epsilon, "added to variances").above(0);
}

template <class T>
class BatchNorm final : public Module<T> {
 public:
  explicit BatchNorm(const BatchNormOptions& options) : options_(options) {}

  Shape bind(const Shape& input) override {
    channels_ = input.channels();
    pixels_ = input.size() / channels_;
    return input;
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    Layer mean{"running_mean", 2 * channels_, channels_, 1}, variance{"running_variance", 3 * channels_, channels_, 1};
    mean.running_rate = variance.running_rate = options_.momentum;
    return {{"weight", 0, channels_, 1}, {"bias", channels_, channels_, 1}, mean, variance};
  }
  void initial(RandomSequence&, T* w) const override {
    std::fill_n(w, channels_, T(1));
    std::fill_n(w + channels_, 2 * channels_, T(0));
    std::fill_n(w + 3 * channels_, channels_, T(1));
  }
  // Kept are mean, 1/deviation and variance of each channel of a client, which has an example or more.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({{"channels", channels_}, {"pixels", pixels_}, {"epsilon", options_.epsilon}}, {.kept = 3 * channels_});
  }
  [[nodiscard]] std::optional<LayerCost> cost() const override { return cost_of_normalising<T>(channels_ * pixels_, channels_, 4); }
  // Mean, 1/deviation and variance of each channel.
  [[nodiscard]] std::size_t saved_size(std::size_t) const override { return 3 * channels_; }
  // One entry of a channel has no variance.
  [[nodiscard]] std::size_t least_examples() const override { return pixels_ > 1 ? 1 : 2; }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    for (std::size_t c = 0; c < channels_; ++c) {
      double mean = static_cast<double>(w[2 * channels_ + c]), variance = static_cast<double>(w[3 * channels_ + c]);
      if (pass.training) statistics(pass, in, c, mean, variance);
      saved[c] = static_cast<T>(mean);
      saved[channels_ + c] = static_cast<T>(1 / std::sqrt(variance + options_.epsilon));
      saved[2 * channels_ + c] = static_cast<T>(variance);
      const T scale = w[c] * saved[channels_ + c], shift = w[channels_ + c] - saved[c] * scale;
      each_image(pass, c, [&](std::size_t at) {
        for (std::size_t p = 0; p < pixels_; ++p) out[at + p] = scale * in[at + p] + shift;
      });
    }
  }
  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    if (!pass.accumulate) std::fill_n(d_w, 4 * channels_, T(0));
    const auto count = static_cast<double>(pass.B * pixels_);
    // The unbiased variance, as PyTorch's running one is.
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    for (std::size_t c = 0; c < channels_; ++c) {
      const T mean = saved[c], r = saved[channels_ + c];
      double d_bias = 0, d_weight = 0;
      each_image(pass, c, [&](std::size_t at) {
        const T *x = in + at, *slope = d_out + at;
        d_bias += sum_in_double(pixels_, [slope](std::size_t p) { return slope[p]; });
        d_weight += sum_in_double(pixels_, [=](std::size_t p) { return slope[p] * (x[p] - mean) * r; });
      });
      d_w[c] += static_cast<T>(d_weight);
      d_w[channels_ + c] += static_cast<T>(d_bias);
      if (pass.training) {
        d_w[2 * channels_ + c] += w[2 * channels_ + c] - mean;
        d_w[3 * channels_ + c] +=
            static_cast<T>(static_cast<double>(w[3 * channels_ + c]) - unbiased * static_cast<double>(saved[2 * channels_ + c]));
      }
      if (d_in == nullptr) continue;
      const T mean_u = pass.training ? w[c] * static_cast<T>(d_bias / count) : T(0);
      const T mean_uy = pass.training ? w[c] * static_cast<T>(d_weight / count) : T(0);
      each_image(pass, c, [&](std::size_t at) {
        for (std::size_t p = 0; p < pixels_; ++p) d_in[at + p] = r * (w[c] * d_out[at + p] - mean_u - (in[at + p] - mean) * r * mean_uy);
      });
    }
  }

 private:
  template <class F>
  void each_image(const Pass& pass, std::size_t c, const F& f) const {
    for (std::size_t b = 0; b < pass.B; ++b) f((b * channels_ + c) * pixels_);
  }
  void statistics(const Pass& pass, const T* in, std::size_t c, double& mean, double& variance) const {
    const auto count = static_cast<double>(pass.B * pixels_);
    double sum = 0, square = 0;
    each_image(pass, c, [&](std::size_t at) { sum += sum_in_double(pixels_, [x = in + at](std::size_t p) { return x[p]; }); });
    mean = sum / count;
    each_image(pass, c, [&](std::size_t at) {
      square += sum_in_double(pixels_, [x = in + at, mean](std::size_t p) {
        const double off = static_cast<double>(x[p]) - mean;
        return off * off;
      });
    });
    variance = square / count;
  }
  BatchNormOptions options_;
  std::size_t channels_ = 0, pixels_ = 0;
};

FL_REGISTER_PART(Module, GroupNorm, GroupNormOptions,
                 (PartInfo{"layer", "group_norm", "normalises groups of channels of each example", "Wu and He, ECCV 2018"}));
FL_REGISTER_PART(Module, BatchNorm, BatchNormOptions,
                 (PartInfo{
                     "layer", "batch_norm",
                     "normalises channels over the minibatch; clients send running statistics uncompressed, the server takes their mean",
                     "Ioffe and Szegedy, ICML 2015"}));

}  // namespace fl::nn
