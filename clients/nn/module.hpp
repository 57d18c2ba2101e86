// A layer of a neural network: its output for one client's minibatch, and its gradients.
//
// Activations are [B,n]: one example after another, each of the layer's Shape, row-major. An image is {channels, height, width}, a sequence
// {length} of tokens or {length, features}. A module owns no parameters and no memory: weights are a contiguous part of the client's flat
// vector. Backward reads the layer's input and output, which the network keeps, or the numbers that forward wrote to `saved`.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/learning/network_form.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/random/random.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl::nn {

// The shape of one example. Sizes are at least 1.
struct Shape {
  std::vector<std::size_t> dims;

  [[nodiscard]] std::size_t size() const {
    std::size_t product = 1;
    for (const std::size_t d : dims) product *= d;
    return product;
  }
  [[nodiscard]] bool is_image() const { return dims.size() == 3; }
  [[nodiscard]] std::size_t channels() const { return dims[0]; }
  [[nodiscard]] std::size_t height() const { return dims[1]; }
  [[nodiscard]] std::size_t width() const { return dims[2]; }
  [[nodiscard]] FL_API std::string text() const;  // "1x28x28"
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The settings of one pass over a minibatch.
struct Pass {
  const Exec& exec;
  std::size_t B = 0;        // examples
  bool training = true;     // batch norm takes the statistics of the minibatch
  bool accumulate = false;  // backward adds to the gradient of the weights instead of setting it
  bool drops = false;       // dropout drops, using `random`
  RandomStream random{};    // the random numbers of this client, round, step and layer
  std::size_t first = 0;    // number of the first example in its minibatch, a multiple of 4: long minibatches are computed in pieces
};

// The initial distribution of a tensor. Bounds follow PyTorch's modules: uniform in +-1/sqrt(fan_in).
enum class Initial {
  pytorch,         // U(-1/sqrt(fan_in), 1/sqrt(fan_in)), weights and biases
  kaiming_normal,  // N(0, 2/fan_in); biases 0 (K. He et al., ICCV 2015)
  xavier_uniform,  // U(+-sqrt(6/(fan_in+fan_out))); biases 0 (X. Glorot and Y. Bengio, AISTATS 2010)
  zero,
};
[[nodiscard]] FL_API std::vector<std::pair<Initial, std::string>> initial_names();

// The cost of a layer for an example and for a minibatch. The derivative by the input is not computed below the first layer with weights.
struct LayerCost {
  PassCost forward = {}, by_weights = {}, by_input = {};
};
// Returns the cost of n outputs, each computed from one input with these operations, and of n derivatives.
template <class T>
[[nodiscard]] LayerCost cost_of_entries(std::size_t n, double forward, double backward) {
  const auto count = static_cast<double>(n);
  return {.forward = {.row = work_on<T>(forward * count, 2 * count)},
          .by_weights = {},
          .by_input = {.row = work_on<T>(backward * count, 3 * count)}};
}

template <class T>
class FL_API Module {
 public:
  virtual ~Module() = default;

  // Fixes the shapes. Called once. Throws ConfigError if the input does not fit.
  virtual Shape bind(const Shape& input) = 0;
  // Returns its tensors in order, with `begin` counted from the module's first parameter and names such as "weight".
  [[nodiscard]] virtual std::vector<Layer> tensors() const { return {}; }
  virtual void initial(RandomSequence&, T* /*w*/) const {}
  // Passes dataset constants (such as `classes`) to container layers. Call before bind().
  virtual void know(const std::map<std::string, std::int64_t>& /*names*/) {}
  // Returns how many entries forward leaves for backward, for B examples.
  [[nodiscard]] virtual std::size_t saved_size(std::size_t /*B*/) const { return 0; }
  // Returns the temporary entries of forward or backward for B examples, if these grow with B.
  [[nodiscard]] virtual std::size_t room_size(std::size_t /*B*/) const { return 0; }
  // Returns the fewest examples of a minibatch in training.
  [[nodiscard]] virtual std::size_t least_examples() const { return 1; }
  // Returns whether backward reads the layer's output (otherwise only its input).
  [[nodiscard]] virtual bool needs_output() const { return false; }
  // Returns the numbers from which the CUDA half is made and the layer's memory on a GPU. Call after bind(); the network adds the name. A
  // layer without a CUDA half need not override this: a run on a GPU then reports that the layer has no CUDA half. Returns no value if the
  // CPU computes these data whatever the device is.
  [[nodiscard]] virtual std::optional<LayerForm> as_form() const { return LayerForm{}; }
  // Returns the cost, or no value if the layer does not state it. Call after bind().
  [[nodiscard]] virtual std::optional<LayerCost> cost() const { return std::nullopt; }

  // Computes out [B,n_out] from in [B,n_in] and w.
  virtual void forward(const Pass& pass, const T* w, const T* in, T* out, T* saved) const = 0;
  // Computes d_in [B,n_in], unless null, and d_w from d_out [B,n_out]: derivatives of one number by the layer's input, weights and output.
  virtual void backward(const Pass& pass, const T* w, const T* in, const T* out, const T* saved, const T* d_out, T* d_in, T* d_w) const = 0;

  // The name as written in scenarios; set by the code that makes the layer.
  [[nodiscard]] const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::string name_;
};

// Returns the number of a module's parameters.
template <class T>
[[nodiscard]] std::size_t num_parameters(const Module<T>& module) {
  LayerTable table{module.tensors()};
  return table.size();
}

// Draws a weight tensor [fan_out x fan_in] of `size` entries.
template <class T>
FL_API void draw_initial(Initial how, RandomSequence& random, std::size_t fan_in, std::size_t fan_out, bool is_bias, T* w,
                         std::size_t size);

}  // namespace fl::nn
