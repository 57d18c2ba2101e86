// "residual" and "concat": networks inside a layer. The activations of the forward pass are kept for the backward pass.
#include "clients/cuda/network.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

// Derives the random streams of a branch's network (clients/nn/branch.hpp).
__global__ void salt_streams(std::size_t clients, std::uint32_t layer, std::uint32_t salt, const RandomStream* from, RandomStream* to) {
  for (std::size_t k = thread_index(); k < clients; k += num_threads()) {
    RandomStream own = from[k];
    own.step_layer += layer;
    own.key1 ^= salt ^ (own.step_layer << 8);
    to[k] = own;
  }
}

// Computes to = a + b; `to` may be the memory of a or b.
template <class T>
__global__ void add(std::size_t count, const T* a, const T* b, T* to) {
  for (std::size_t i = thread_index(); i < count; i += num_threads()) to[i] = a[i] + b[i];
}

// Copies `count` numbers of each row; rows begin every `from_stride` and `to_stride` entries.
template <class T>
__global__ void copy_columns(std::size_t rows, std::size_t count, const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
  for (std::size_t i = thread_index(); i < rows * count; i += num_threads()) {
    const std::size_t row = i / count, column = i - row * count;
    to[row * to_stride + column] = from[row * from_stride + column];
  }
}

template <class T>
class DeviceBranch {
 public:
  DeviceBranch(const NetworkForm& form, std::uint32_t layer, std::uint32_t salt)
      : network_(form, NetworkInput::of_others), layer_(layer), salt_(salt << 28) {}
  [[nodiscard]] const DeviceNetwork<T>& network() const { return network_; }

  // Returns z [clients,B,outputs] of `in`, in the frame or in `kept`, which is null if only forward runs.
  const T* forward(Workspace::Frame& frame, const LayerPass& pass, LayerWeights<T> w, const T* in, T* kept) const {
    const auto tape = kept == nullptr ? network_.open_forward(frame, pass.examples(), in) : network_.keep(kept, pass.examples(), in);
    return network_.forward(salted(frame, pass), w, tape);
  }
  // Calls fill(d_z), which writes the derivative by the output.
  template <class Fill>
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* kept, const Fill& fill, T* d_in,
                const GradientStore<T>& by_weights) const {
    Workspace::Frame frame(*pass.exec.workspace);
    auto tape = network_.keep(kept, pass.examples(), in);
    network_.take_slopes(frame, pass.examples(), tape);
    fill(network_.slope_of_output(tape));
    network_.backward(salted(frame, pass), w, tape, by_weights, d_in);
  }

 private:
  [[nodiscard]] LayerPass salted(Workspace::Frame& frame, const LayerPass& pass) const {
    LayerPass own = pass;
    if (pass.random == nullptr || !network_.draws()) return own;
    auto* random = frame.take<RandomStream>(pass.clients);
    Launch(pass.exec, "salt_streams", blocks_for(pass.clients))(salt_streams, pass.clients, layer_, salt_, pass.random, random);
    own.random = random;
    return own;
  }
  DeviceNetwork<T> network_;
  std::uint32_t layer_, salt_;
};

enum class Join {
  add,     // the sum of the networks; with one network, the input is added
  beside,  // one after the other
};

template <class T>
class BranchesLayer : public DeviceLayer<T> {
 public:
  BranchesLayer(const NetworkForm::Layer& layer, Join join) : adds_(join == Join::add), n_(layer.inputs) {
    for (const NetworkForm& network : layer.form.networks)
      branches_.emplace_back(network, layer.number, static_cast<std::uint32_t>(branches_.size() + 1));
  }

  [[nodiscard]] bool draws() const override {
    bool any = false;
    for (const auto& branch : branches_) any = any || branch.network().draws();
    return any;
  }
  [[nodiscard]] std::size_t num_kernels() const override {
    std::size_t kernels = 1;
    for (const auto& branch : branches_) kernels += branch.network().num_kernels() + 6;
    return kernels;
  }
  [[nodiscard]] std::vector<const DeviceNetwork<T>*> networks() const override {
    std::vector<const DeviceNetwork<T>*> all;
    for (const auto& branch : branches_) all.push_back(&branch.network());
    return all;
  }

  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    Workspace::Frame frame(*pass.exec.workspace);
    T* kept = static_cast<T*>(pass.saved);
    const std::size_t width = outputs();
    std::size_t column = 0;
    const T* sum = nullptr;
    for (const auto& branch : branches_) {
      const T* z = branch.forward(frame, pass, w, in, kept);
      const std::size_t own = branch.network().outputs();
      if (!adds_) {
        copy(pass, own, z, own, out + column, width);
      } else if (sum != nullptr || branches_.size() == 1) {
        add_up(pass, width, z, sum != nullptr ? sum : in, out);
      }
      sum = z;
      column += own;
      w.data += branch.network().size();
      if (kept != nullptr) kept += branch.network().kept_size(pass.examples());
    }
  }
  void backward(const LayerPass& pass, LayerWeights<T> w, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    Workspace::Frame frame(*pass.exec.workspace);
    T* kept = static_cast<T*>(pass.saved);
    const std::size_t width = outputs();
    T* beside = d_in != nullptr && branches_.size() > 1 ? frame.take<T>(pass.examples() * n_) : nullptr;
    std::size_t column = 0, weights = 0;
    bool is_first = true;
    for (const auto& branch : branches_) {
      const std::size_t own = branch.network().outputs();
      branch.backward(
          pass, w, in, kept, [&](T* d_z) { copy(pass, own, d_out + column, width, d_z, own); }, is_first ? d_in : beside,
          by_weights.from(weights));
      if (!is_first && d_in != nullptr) add_up(pass, n_, d_in, beside, d_in);
      is_first = false;
      column += adds_ ? 0 : own;
      w.data += branch.network().size();
      weights += branch.network().size();
      kept += branch.network().kept_size(pass.examples());
    }
    if (adds_ && branches_.size() == 1 && d_in != nullptr) add_up(pass, n_, d_in, d_out, d_in);
  }

 private:
  // Returns the entries per example.
  [[nodiscard]] std::size_t outputs() const {
    std::size_t entries = 0;
    for (const auto& branch : branches_) entries += branch.network().outputs();
    return adds_ ? branches_.front().network().outputs() : entries;
  }
  static void add_up(const LayerPass& pass, std::size_t entries, const T* a, const T* b, T* to) {
    const std::size_t count = pass.examples() * entries;
    Launch(pass.exec, "add_branches", blocks_for(count))(add<T>, count, a, b, to);
  }
  static void copy(const LayerPass& pass, std::size_t count, const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
    Launch(pass.exec, "copy_columns", blocks_for(pass.examples() * count))(copy_columns<T>, pass.examples(), count, from, from_stride, to,
                                                                           to_stride);
  }
  std::vector<DeviceBranch<T>> branches_;
  bool adds_;
  std::size_t n_;
};

template <class T>
struct ResidualLayer final : BranchesLayer<T> {
  explicit ResidualLayer(const NetworkForm::Layer& layer) : BranchesLayer<T>(layer, Join::add) {}
};
template <class T>
struct ConcatLayer final : BranchesLayer<T> {
  explicit ConcatLayer(const NetworkForm::Layer& layer) : BranchesLayer<T>(layer, Join::beside) {}
};

FL_REGISTER_CUDA_LAYER(ResidualLayer, "residual");
FL_REGISTER_CUDA_LAYER(ConcatLayer, "concat");

}  // namespace
}  // namespace fl::cuda
