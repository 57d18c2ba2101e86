// Long short-term memory over a sequence {length, n}: out {length, units}, or with `last` only the last step's {units}.
//
//   (i, f, g, o) = in_t W_in^T + b_in + h_{t-1} W_h^T + b_h
//   c_t = s(f) c_{t-1} + s(i) tanh(g)      h_t = s(o) tanh(c_t)      h_0 = c_0 = 0
//
//   bias = two   b_in and b_h, as in PyTorch's LSTM. Both have the same gradient, so that their sum moves twice as far in a step as one
//                would. All tensors begin uniform in +-1/sqrt(units).
//   bias = one   b_in alone, as in TensorFlow's and Keras's. It begins at 0, the weights as above.
// forget_bias is added to where b_in of the forget gate begins; TensorFlow and Keras have 1.
// Tensors: weight_in [4 units,n], weight_h [4 units,units], bias_in [4 units] and bias_h [4 units], or bias [4 units] alone; rows in the
// order i, f, g, o. S. Hochreiter and J. Schmidhuber, Neural Computation 9, 1997, with the forget gate of F. A. Gers et al., Neural
// Computation 12, 2000.
#include <algorithm>
#include <cmath>

#include "clients/nn/elementwise.hpp"
#include "clients/nn/gemm.hpp"
#include "clients/nn/module.hpp"
#include "clients/nn/packed_product.hpp"

namespace fl::nn {

enum class LstmBias { two, one };

struct LstmOptions {
  std::int64_t units = 0;
  bool last = false;
  LstmBias bias = LstmBias::two;
  double forget_bias = 0;
};
inline void describe(Schema& s, LstmOptions& o) {
  s.field("units", o.units, "length of the state").at_least(1).at_most(65536).required();
  s.field("last", o.last, "output only the state after the last step");
  s.choice("bias", o.bias, {{LstmBias::two, "two"}, {LstmBias::one, "one"}},
           "two: a bias of the input and one of the state, as in PyTorch; one: a single bias, which starts at 0, as in TensorFlow");
  s.field("forget_bias", o.forget_bias, "added to the initial bias of the forget gate; 1 in TensorFlow").at_least(-100).at_most(100);
}

template <class T>
class Lstm final : public Module<T> {
 public:
  explicit Lstm(const LstmOptions& options)
      : last_(options.last),
        biases_(options.bias == LstmBias::two ? 2 : 1),
        forget_bias_(options.forget_bias),
        H_(static_cast<std::size_t>(options.units)) {}

  Shape bind(const Shape& input) override {
    if (input.dims.size() != 2) throw ConfigError("lstm needs a sequence {length, features}, its input is " + input.text());
    L_ = input.dims[0];
    n_ = input.dims[1];
    return last_ ? Shape{{H_}} : Shape{{L_, H_}};
  }
  [[nodiscard]] std::vector<Layer> tensors() const override {
    std::vector<Layer> tensors{{"weight_in", 0, 4 * H_, n_}, {"weight_h", hidden(), 4 * H_, H_}};
    tensors.push_back({biases_ > 1 ? "bias_in" : "bias", bias(), 4 * H_, 1});
    if (biases_ > 1) tensors.push_back({"bias_h", bias() + 4 * H_, 4 * H_, 1});
    return tensors;
  }
  void initial(RandomSequence& random, T* w) const override {
    draw_initial(Initial::pytorch, random, H_, H_, false, w, bias());
    if (biases_ > 1)
      draw_initial(Initial::pytorch, random, H_, H_, true, w + bias(), 8 * H_);
    else
      std::fill_n(w + bias(), 4 * H_, T(0));
    for (std::size_t j = 0; j < H_; ++j) w[bias() + H_ + j] += static_cast<T>(forget_bias_);
  }
  // Kept are four gates and c, and h where it is not the output; slopes by c and h of one position are the room.
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({{"length", L_}, {"inputs", n_}, {"units", H_}, {"biases", biases_}, {"only_last", last_}},
                     {.kept = L_ * H_ * (last_ ? 6 : 5), .room = 2 * H_, .products = {{L_, 4 * H_, n_}, {L_, 4 * H_, H_}}});
  }
  [[nodiscard]] std::size_t room_size(std::size_t B) const override { return B * H_ * (5 * L_ + 2); }
  // Gates after their functions [B,L,4H], c [B,L,H], tanh(c) [B,L,H], h [B,L,H].
  [[nodiscard]] std::size_t saved_size(std::size_t B) const override { return B * L_ * 7 * H_; }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    const std::size_t B = pass.B;
    const Saved<T> s = parts_of(saved, B);
    for (std::size_t r = 0; r < B * L_; ++r) {
      std::copy_n(w + bias(), 4 * H_, s.gates + r * 4 * H_);
      for (std::size_t j = 0; biases_ > 1 && j < 4 * H_; ++j) s.gates[r * 4 * H_ + j] += w[bias() + 4 * H_ + j];
    }
    gemm(Op::plain, Op::transposed, B * L_, 4 * H_, n_, in, n_, w, n_, true, s.gates, 4 * H_);
    Workspace::Frame frame(*pass.exec.workspace);
    T* panels = frame.take<T>(packed::panels_size<T>(H_, 4 * H_));  // of weight_h, which every position multiplies
    packed::pack_panels(Op::transposed, H_, 4 * H_, w + hidden(), H_, panels);
    for (std::size_t t = 0; t < L_; ++t) {
      if (t > 0)
        packed::multiply_panels(B, 4 * H_, H_, s.h + (t - 1) * H_, L_ * H_, std::size_t{1}, panels, true, s.gates + t * 4 * H_,
                                L_ * 4 * H_);
      for (std::size_t b = 0; b < B; ++b) step(s, b * L_ + t, t == 0);
    }
    for (std::size_t b = 0; b < B; ++b)
      if (last_)
        std::copy_n(s.h + (b * L_ + L_ - 1) * H_, H_, out + b * H_);
      else
        std::copy_n(s.h + b * L_ * H_, L_ * H_, out + b * L_ * H_);
  }

  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t B = pass.B;
    const Saved<const T> s = parts_of(saved, B);
    Workspace::Frame frame(*pass.exec.workspace);
    T* d_gates = frame.take<T>(B * L_ * 4 * H_);
    T *d_h = frame.take<T>(B * H_), *d_c = frame.take<T>(B * H_);
    std::fill_n(d_h, B * H_, T(0));
    std::fill_n(d_c, B * H_, T(0));
    T* panels = frame.take<T>(packed::panels_size<T>(4 * H_, H_));  // of weight_h
    packed::pack_panels(Op::plain, 4 * H_, H_, w + hidden(), H_, panels);
    for (std::size_t t = L_; t-- > 0;) {
      for (std::size_t b = 0; b < B; ++b) {
        T* d = d_h + b * H_;
        if (!last_ || t + 1 == L_) {
          const T* from = last_ ? d_out + b * H_ : d_out + (b * L_ + t) * H_;
          for (std::size_t j = 0; j < H_; ++j) d[j] += from[j];
        }
        step_back(s, b * L_ + t, t == 0, d, d_c + b * H_, d_gates + (b * L_ + t) * 4 * H_);
      }
      if (t > 0) packed::multiply_panels(B, H_, 4 * H_, d_gates + t * 4 * H_, L_ * 4 * H_, std::size_t{1}, panels, false, d_h, H_);
    }
    T* before = frame.take<T>(B * L_ * H_);  // h_{t-1}
    for (std::size_t b = 0; b < B; ++b) {
      std::fill_n(before + b * L_ * H_, H_, T(0));
      std::copy_n(s.h + b * L_ * H_, (L_ - 1) * H_, before + (b * L_ + 1) * H_);
    }
    gemm(Op::transposed, Op::plain, 4 * H_, n_, B * L_, d_gates, 4 * H_, in, n_, pass.accumulate, d_w, n_);
    gemm(Op::transposed, Op::plain, 4 * H_, H_, B * L_, d_gates, 4 * H_, before, H_, pass.accumulate, d_w + hidden(), H_);
    for (std::size_t number = 0; number < biases_; ++number) {
      T* d_bias = d_w + bias() + number * 4 * H_;
      if (!pass.accumulate) std::fill_n(d_bias, 4 * H_, T(0));
      if (number > 0 && !pass.accumulate)
        std::copy_n(d_bias - 4 * H_, 4 * H_, d_bias);  // both have the same
      else
        for (std::size_t r = 0; r < B * L_; ++r)
          for (std::size_t j = 0; j < 4 * H_; ++j) d_bias[j] += d_gates[r * 4 * H_ + j];
    }
    if (d_in != nullptr) gemm(Op::plain, Op::plain, B * L_, n_, 4 * H_, d_gates, 4 * H_, w, n_, false, d_in, n_);
  }

 private:
  template <class U>
  struct Saved {
    U *gates, *c, *tanh_c, *h;
  };
  template <class U>
  [[nodiscard]] Saved<U> parts_of(U* saved, std::size_t B) const {
    const std::size_t n = B * L_ * H_;
    return {saved, saved + 4 * n, saved + 5 * n, saved + 6 * n};
  }
  [[nodiscard]] std::size_t hidden() const { return 4 * H_ * n_; }
  [[nodiscard]] std::size_t bias() const { return 4 * H_ * (n_ + H_); }

  // One row (example, time): its gates hold sums.
  void step(const Saved<T>& s, std::size_t row, bool first) const {
    T *gates = s.gates + row * 4 * H_, *c = s.c + row * H_, *tanh_c = s.tanh_c + row * H_, *h = s.h + row * H_;
    logistic_of(2 * H_, gates, gates);
    tanh_of(H_, gates + 2 * H_, gates + 2 * H_);
    logistic_of(H_, gates + 3 * H_, gates + 3 * H_);
    const T *i = gates, *f = gates + H_, *g = gates + 2 * H_, *o = gates + 3 * H_;
    if (first)
      for (std::size_t j = 0; j < H_; ++j) c[j] = i[j] * g[j];
    else
      for (std::size_t j = 0; j < H_; ++j) c[j] = f[j] * (c - H_)[j] + i[j] * g[j];
    tanh_of(H_, c, tanh_c);
    for (std::size_t j = 0; j < H_; ++j) h[j] = o[j] * tanh_c[j];
  }
  // d_h [H] by h_t; d_c [H] by c_t from later steps, on return by c_{t-1}; d_gates [4H] by the gates' sums.
  void step_back(const Saved<const T>& s, std::size_t row, bool first, const T* d_h, T* d_c, T* d_gates) const {
    const T* __restrict i = s.gates + row * 4 * H_, * __restrict f = i + H_, * __restrict g = f + H_, * __restrict o = g + H_;
    const T* __restrict tanh_c = s.tanh_c + row * H_, * __restrict slope = d_h;
    T* __restrict d_i = d_gates, * __restrict d_f = d_i + H_, * __restrict d_g = d_f + H_, * __restrict d_o = d_g + H_, * __restrict by = d_c;
    for (std::size_t j = 0; j < H_; ++j) {
      const T by_c = by[j] + slope[j] * o[j] * (T(1) - tanh_c[j] * tanh_c[j]);
      d_i[j] = by_c * g[j] * i[j] * (T(1) - i[j]);
      d_g[j] = by_c * i[j] * (T(1) - g[j] * g[j]);
      d_o[j] = slope[j] * tanh_c[j] * o[j] * (T(1) - o[j]);
      by[j] = by_c * f[j];
    }
    if (first) {
      std::fill_n(d_f, H_, T(0));
      return;
    }
    const T* __restrict before = s.c + (row - 1) * H_;
    for (std::size_t j = 0; j < H_; ++j) d_f[j] = by[j] * (T(1) - f[j]) * before[j];  // `by` holds by_c f
  }
  bool last_;
  std::size_t biases_;
  double forget_bias_;
  std::size_t H_, L_ = 0, n_ = 0;
};

FL_REGISTER_PART(Module, Lstm, LstmOptions,
                 (PartInfo{"layer", "lstm", "long short-term memory over a sequence",
                           "Hochreiter and Schmidhuber, Neural Computation 1997"}));

}  // namespace fl::nn
