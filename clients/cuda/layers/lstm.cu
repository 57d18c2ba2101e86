// "lstm": one product for the inputs of all positions, and per position one product and one kernel for the gates.
//
// Rows are (example, position): gates [clients,B,L,4H], states c and h [clients,B,L,H]. The first bias enters the product for the inputs;
// the second, if there is one, enters the gates.
#include <math.h>

#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/bias.cuh"
#include "clients/cuda/matrix_products.cuh"
#include "clients/cuda/tiled_product.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

template <class T>
[[nodiscard]] __device__ T logistic(T x) {
  return T(1) / (T(1) + exp(-x));
}

// Computes position t of all examples, B of each client. `gates` holds sums, which the gates' functions replace by their values. bias.data,
// unless null, holds each client's [4H], which is added to the sums. last_h [examples,H], unless null, also receives h.
template <class T>
__global__ void take_position(std::size_t examples, std::size_t B, std::size_t H, std::size_t L, std::size_t t, LayerWeights<T> bias,
                              T* gates, T* c, T* h, T* last_h) {
  for (std::size_t n = thread_index(); n < examples * H; n += num_threads()) {
    const std::size_t example = n / H, j = n - example * H, row = example * L + t;
    T* gate = gates + row * 4 * H + j;
    T sum[4] = {gate[0], gate[H], gate[2 * H], gate[3 * H]};
    if (bias.data != nullptr)
      for (std::size_t number = 0; number < 4; ++number) sum[number] += bias.data[example / B * bias.stride + number * H + j];
    const T i = logistic(sum[0]), f = logistic(sum[1]), g = tanh(sum[2]), o = logistic(sum[3]);
    gate[0] = i;
    gate[H] = f;
    gate[2 * H] = g;
    gate[3 * H] = o;
    const T state = t == 0 ? i * g : f * c[(row - 1) * H + j] + i * g, out = o * tanh(state);
    c[row * H + j] = state;
    h[row * H + j] = out;
    if (last_h != nullptr) last_h[n] = out;
  }
}

// Computes the backward pass over position t. d_h [examples,H] is the slope by h_t from position t+1. d_c is the slope by c_t and becomes
// the slope by c_{t-1}. Neither is read at the last position. d_out, unless null, begins with the slope by h_t of the first example;
// examples are `stride` apart. The slopes by the gates' sums replace the gates.
template <class T>
__global__ void take_position_back(std::size_t examples, std::size_t H, std::size_t L, std::size_t t, T* gates, const T* c, const T* d_h,
                                   T* d_c, const T* d_out, std::size_t stride) {
  for (std::size_t n = thread_index(); n < examples * H; n += num_threads()) {
    const std::size_t example = n / H, j = n - example * H, row = example * L + t;
    T* gate = gates + row * 4 * H + j;
    const bool is_last = t + 1 == L;
    const T i = gate[0], f = gate[H], g = gate[2 * H], o = gate[3 * H], tanh_c = tanh(c[row * H + j]);
    T by_h = is_last ? T(0) : d_h[n];
    if (d_out != nullptr) by_h += d_out[example * stride + j];
    const T by_c = (is_last ? T(0) : d_c[n]) + by_h * o * (T(1) - tanh_c * tanh_c);
    gate[0] = by_c * g * i * (T(1) - i);
    gate[H] = t == 0 ? T(0) : by_c * f * (T(1) - f) * c[(row - 1) * H + j];
    gate[2 * H] = by_c * i * (T(1) - g * g);
    gate[3 * H] = by_h * tanh_c * o * (T(1) - o);
    d_c[n] = by_c * f;
  }
}

// h of the previous position, as a matrix [(example,position),H]; zeros before the first position.
template <class T>
struct BeforeView {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  const T* h;
  std::uint32_t H;
  Divisor length;
  [[nodiscard]] __device__ std::uint32_t line(std::uint32_t j) const { return j; }
  [[nodiscard]] __device__ std::uint32_t deep(std::uint32_t row) const {
    std::uint32_t example = row;
    return length.split(example) == 0 ? kNone : (row - 1) * H;
  }
  [[nodiscard]] __device__ Located<T> find(std::uint32_t line, std::uint32_t deep) const {
    return {h + (deep == kNone ? 0 : deep + line), deep != kNone};
  }
};
template <class T>
struct Before {
  static constexpr bool kRunsInward = false, kTakesLong = true;
  const T* h;
  std::size_t per_client;
  std::uint32_t H;
  Divisor length;
  [[nodiscard]] __device__ BeforeView<T> open(std::size_t k) const { return {h + k * per_client, H, length}; }
};

template <class T>
class LstmLayer final : public DeviceLayer<T> {
 public:
  explicit LstmLayer(const NetworkForm::Layer& layer)
      : L_(layer.form.size("length")),
        n_(layer.form.size("inputs")),
        H_(layer.form.size("units")),
        biases_(layer.form.size("biases")),
        kept_(layer.form.memory.kept),
        only_last_(layer.form.size("only_last") > 0) {}
  // Returns true if the output holds all states. If the output is the last state alone, all states are saved.
  [[nodiscard]] bool needs_output() const override { return !only_last_; }
  [[nodiscard]] std::size_t num_kernels() const override { return 6 * L_ + 9 + biases_; }

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    Workspace::Frame frame(*pass.exec.workspace);
    const std::size_t rows = pass.B * L_, examples = pass.examples();
    const States s = states(pass, pass.saved != nullptr ? static_cast<T*>(pass.saved) : frame.take<T>(examples * kept_), out);
    matrix_product<T>(pass, "lstm_inputs", rows, 4 * H_, n_, LeftMatrix<T>{in, rows * n_, n_}, RightMatrix<T, true>{w.data, w.stride, n_},
                      StoreMatrix<T>{s.gates, rows * 4 * H_, 4 * H_, false, w.data + bias(), w.stride});
    const LayerWeights<T> second{biases_ > 1 ? w.data + bias() + 4 * H_ : nullptr, w.stride};
    for (std::size_t t = 0; t < L_; ++t) {
      if (t > 0)
        matrix_product<T>(pass, "lstm_states", pass.B, 4 * H_, H_, LeftMatrix<T>{s.h + (t - 1) * H_, rows * H_, L_ * H_},
                          RightMatrix<T, true>{w.data + hidden(), w.stride, H_},
                          StoreMatrix<T>{s.gates + t * 4 * H_, rows * 4 * H_, L_ * 4 * H_, true});
      Launch(pass.exec, "lstm_position", blocks_for(examples * H_))(take_position<T>, examples, pass.B, H_, L_, t, second, s.gates, s.c,
                                                                    s.h, only_last_ && t + 1 == L_ ? out : nullptr);
    }
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T* out, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    Workspace::Frame frame(*pass.exec.workspace);
    const std::size_t rows = pass.B * L_, examples = pass.examples(), G = 4 * H_;
    const States s = states(pass, static_cast<T*>(pass.saved), const_cast<T*>(out));  // only read
    T *d_h = frame.take<T>(examples * H_), *d_c = frame.take<T>(examples * H_);
    for (std::size_t t = L_; t-- > 0;) {
      const T* from = !only_last_ ? d_out + t * H_ : t + 1 == L_ ? d_out : nullptr;
      Launch(pass.exec, "lstm_position_back", blocks_for(examples * H_))(take_position_back<T>, examples, H_, L_, t, s.gates, s.c, d_h, d_c,
                                                                         from, only_last_ ? H_ : L_ * H_);
      if (t > 0)
        matrix_product<T>(pass, "lstm_by_states", pass.B, H_, G, LeftMatrix<T>{s.gates + t * G, rows * G, L_ * G},
                          RightMatrix<T>{w.data + hidden(), w.stride, H_}, StoreMatrix<T>{d_h, pass.B * H_, H_});
    }
    if (d_in != nullptr)
      matrix_product<T>(pass, "lstm_by_inputs", rows, n_, G, LeftMatrix<T>{s.gates, rows * G, G}, RightMatrix<T>{w.data, w.stride, n_},
                        StoreMatrix<T>{d_in, rows * n_, n_});
    const LeftMatrix<T, true> slopes{s.gates, rows * G, G};
    matrix_product<T>(pass, "lstm_by_weights_in", G, n_, rows, slopes, RightMatrix<T>{in, rows * n_, n_}, StoreGradient<T>{by_weights, n_});
    tiled_product<T>(pass.exec, pass.products, "lstm_by_weights_h", pass.clients, G, H_, rows, slopes,
                     Before<T>{s.h, rows * H_, static_cast<std::uint32_t>(H_), Divisor(L_)},
                     StoreGradient<T>{by_weights.from(hidden()), H_});
    for (std::size_t number = 0; number < biases_; ++number) bias_slopes<T>(pass, G, L_, 1, s.gates, by_weights.from(bias() + number * G));
  }

 private:
  struct States {
    T *gates, *c, *h;
  };
  [[nodiscard]] States states(const LayerPass& pass, T* saved, T* out) const {
    const std::size_t n = pass.examples() * L_ * H_;
    return {saved, saved + 4 * n, only_last_ ? saved + 5 * n : out};
  }
  [[nodiscard]] std::size_t hidden() const { return 4 * H_ * n_; }
  [[nodiscard]] std::size_t bias() const { return 4 * H_ * (n_ + H_); }
  std::size_t L_, n_, H_, biases_, kept_;
  bool only_last_;  // the output is the last state alone
};

FL_REGISTER_CUDA_LAYER(LstmLayer, "lstm");

}  // namespace
}  // namespace fl::cuda
