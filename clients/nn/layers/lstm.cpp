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
  // The first position has no product with a state. An element takes five functions and four operations forward, and 22
  // backward: those of step_back() and the sum of d_h.
  [[nodiscard]] std::optional<LayerCost> cost() const override {
    const auto L = static_cast<double>(L_), H = static_cast<double>(H_), n = static_cast<double>(n_);
    const double by_input = 8 * L * H * n, by_state = 8 * (L - 1) * H * H, sums = 4 * L * H;
    const double weights = 4 * H * (n + H), biases = 4 * H * static_cast<double>(biases_);
    const double outputs = last_ ? H : L * H;
    return LayerCost{
        .forward = {.row = work_on<T>(by_input + by_state + sums + L * H * (5 * kFunctionOperations + 4), L * (n + 9 * H) + 2 * outputs),
                    .minibatch = work_on<T>(0, weights + biases)},
        .by_weights = {.row = work_on<T>(by_input + 2 * by_state + sums + 22 * L * H, L * (2 * n + 18 * H) + outputs),
                       .minibatch = work_on<T>(0, weights + 4 * H * H + biases)},
        .by_input = {.row = work_on<T>(by_input, L * (4 * H + 2 * n)), .minibatch = work_on<T>(0, 4 * H * n)}};
  }
  [[nodiscard]] std::size_t room_size(std::size_t B) const override { return B * (L_ * (4 * H_ + n_) + 2 * H_) + positions(B) * B * n_; }
  // Gates after their functions [L,B,4H], c [L,B,H], tanh(c) [L,B,H], h [L,B,H].
  [[nodiscard]] std::size_t saved_size(std::size_t B) const override { return B * L_ * 7 * H_; }

  void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const override {
    const std::size_t B = pass.B;
    const Saved<T> s = parts_of(saved, B);
    Workspace::Frame frame(*pass.exec.workspace);
    const T *of_input = packed_panels(frame, Op::transposed, w, n_), *of_state = packed_panels(frame, Op::transposed, w + hidden(), H_);
    T *start = frame.take<T>(4 * H_), *x = frame.take<T>(positions(B) * B * n_);
    std::copy_n(w + bias(), 4 * H_, start);
    for (std::size_t j = 0; biases_ > 1 && j < 4 * H_; ++j) start[j] += w[bias() + 4 * H_ + j];
    for (std::size_t t = 0; t < L_; ++t) {
      T* gates = s.gates + t * B * 4 * H_;
      if (t % positions(B) == 0) {
        const std::size_t rows = std::min(positions(B), L_ - t) * B;
        to_positions(B, t, std::min(L_, t + positions(B)), in, x);
        for (std::size_t r = 0; r < rows; ++r) std::copy_n(start, 4 * H_, gates + r * 4 * H_);
        packed::multiply_panels(rows, 4 * H_, n_, x, n_, std::size_t{1}, of_input, true, gates, 4 * H_);
      }
      if (t > 0) packed::multiply_panels(B, 4 * H_, H_, s.h + (t - 1) * B * H_, H_, std::size_t{1}, of_state, true, gates, 4 * H_);
      for (std::size_t b = 0; b < B; ++b) step(s, t * B + b, t == 0 ? nullptr : s.c + ((t - 1) * B + b) * H_);
    }
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t t = last_ ? L_ - 1 : 0; t < L_; ++t) std::copy_n(s.h + (t * B + b) * H_, H_, out + (last_ ? b : b * L_ + t) * H_);
  }

  void backward(const Pass& pass, const T* w, const T* in, const T*, const T* saved, const T* d_out, T* d_in, T* d_w) const override {
    const std::size_t B = pass.B;
    const Saved<const T> s = parts_of(saved, B);
    Workspace::Frame frame(*pass.exec.workspace);
    T *d_gates = frame.take<T>(B * L_ * 4 * H_), *x = frame.take<T>(B * L_ * n_), *d_x = frame.take<T>(positions(B) * B * n_);
    T *d_h = frame.take<T>(B * H_), *d_c = frame.take<T>(B * H_), *d_bias = frame.take<T>(4 * H_);
    std::fill_n(d_h, B * H_, T(0));
    std::fill_n(d_c, B * H_, T(0));
    std::fill_n(d_bias, 4 * H_, T(0));
    const T* of_state = packed_panels(frame, Op::plain, w + hidden(), H_);
    const T* of_input = d_in == nullptr ? nullptr : packed_panels(frame, Op::plain, w, n_);
    for (std::size_t t = L_; t-- > 0;) {
      T* d = d_gates + t * B * 4 * H_;
      for (std::size_t b = 0; b < B; ++b) {
        if (!last_ || t + 1 == L_) {
          const T* from = last_ ? d_out + b * H_ : d_out + (b * L_ + t) * H_;
          for (std::size_t j = 0; j < H_; ++j) d_h[b * H_ + j] += from[j];
        }
        step_back(s, t * B + b, t == 0 ? nullptr : s.c + ((t - 1) * B + b) * H_, d_h + b * H_, d_c + b * H_, d + b * 4 * H_);
        for (std::size_t j = 0; j < 4 * H_; ++j) d_bias[j] += d[b * 4 * H_ + j];
      }
      if (t > 0) packed::multiply_panels(B, H_, 4 * H_, d, 4 * H_, std::size_t{1}, of_state, false, d_h, H_);
      if (d_in == nullptr || t % positions(B) != 0) continue;
      const std::size_t last = std::min(L_, t + positions(B));
      packed::multiply_panels((last - t) * B, n_, 4 * H_, d, 4 * H_, std::size_t{1}, of_input, false, d_x, n_);
      from_positions(B, t, last, d_x, d_in);
    }
    to_positions(B, 0, L_, in, x);
    gemm(Op::transposed, Op::plain, 4 * H_, n_, B * L_, d_gates, 4 * H_, x, n_, pass.accumulate, d_w, n_);
    // Rows of gates and of the state before them are B rows apart.
    if (L_ > 1)
      gemm(Op::transposed, Op::plain, 4 * H_, H_, B * (L_ - 1), d_gates + B * 4 * H_, 4 * H_, s.h, H_, pass.accumulate, d_w + hidden(), H_);
    else if (!pass.accumulate)
      std::fill_n(d_w + hidden(), 4 * H_ * H_, T(0));
    for (std::size_t j = 0; j < biases_ * 4 * H_; ++j) {  // both biases have the same derivative
      T& by = d_w[bias() + j];
      by = pass.accumulate ? by + d_bias[j % (4 * H_)] : d_bias[j % (4 * H_)];
    }
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

  // Positions whose products with the input are computed together, so that rows of a few examples share the weights.
  [[nodiscard]] static std::size_t positions(std::size_t B) { return std::max<std::size_t>(1, 64 / std::max<std::size_t>(1, B)); }

  const T* packed_panels(Workspace::Frame& frame, Op op, const T* matrix, std::size_t columns) const {
    const std::size_t k = op == Op::plain ? 4 * H_ : columns, n = op == Op::plain ? columns : 4 * H_;
    T* panels = frame.take<T>(packed::panels_size<T>(k, n));
    packed::pack_panels(op, k, n, matrix, columns, panels);
    return panels;
  }
  // Rows [B,L,n] of some positions to [position,B,n], and back.
  void to_positions(std::size_t B, std::size_t first, std::size_t last, const T* from, T* to) const {
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t t = first; t < last; ++t) std::copy_n(from + (b * L_ + t) * n_, n_, to + ((t - first) * B + b) * n_);
  }
  void from_positions(std::size_t B, std::size_t first, std::size_t last, const T* from, T* to) const {
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t t = first; t < last; ++t) std::copy_n(from + ((t - first) * B + b) * n_, n_, to + (b * L_ + t) * n_);
  }
  // One row (time, example): its gates hold sums. c_before is c of the position before, null at the first.
  void step(const Saved<T>& s, std::size_t row, const T* c_before) const {
    T *gates = s.gates + row * 4 * H_, *c = s.c + row * H_, *tanh_c = s.tanh_c + row * H_, *h = s.h + row * H_;
    logistic_of(2 * H_, gates, gates);
    tanh_of(H_, gates + 2 * H_, gates + 2 * H_);
    logistic_of(H_, gates + 3 * H_, gates + 3 * H_);
    const T *i = gates, *f = gates + H_, *g = gates + 2 * H_, *o = gates + 3 * H_;
    if (c_before == nullptr)
      for (std::size_t j = 0; j < H_; ++j) c[j] = i[j] * g[j];
    else
      for (std::size_t j = 0; j < H_; ++j) c[j] = f[j] * c_before[j] + i[j] * g[j];
    tanh_of(H_, c, tanh_c);
    for (std::size_t j = 0; j < H_; ++j) h[j] = o[j] * tanh_c[j];
  }
  // d_h [H] by h_t; d_c [H] by c_t from later steps, on return by c_{t-1}; d_gates [4H] by the gates' sums.
  void step_back(const Saved<const T>& s, std::size_t row, const T* c_before, const T* d_h, T* d_c, T* d_gates) const {
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
    if (c_before == nullptr) {
      std::fill_n(d_f, H_, T(0));
      return;
    }
    const T* __restrict before = c_before;
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
