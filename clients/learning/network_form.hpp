// A model in a form that a GPU computes for many clients at once: its layers by name with plain numbers, and its loss.
//
// Activations are [B,n] as in clients/nn/module.hpp, images {channels, height, width}. A layer describes itself (Module::as_form). The
// registry makes its CUDA half from the name (clients/cuda/layer.hpp), and clients/learning/device_room.hpp adds up the memory that layers
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/message/layer_table.hpp"

namespace fl {

class Interactions;
struct NetworkForm;

// The GPU memory of a layer besides its input and its output, in numbers of the run's precision. The figures are stated only here: the
// network allocates accordingly for the CUDA half, and `fedbits plan` adds them up.
struct LayerMemory {
  // A product of matrices [rows,inputs] [inputs,outputs]. Counted for the forward pass and for the backward pass by the weights and by the
  // input.
  struct Product {
    std::size_t rows = 1, outputs = 0, inputs = 0;  // per example
  };
  std::size_t kept = 0;                // per example: entries that forward leaves in LayerPass::saved for backward
  std::size_t room = 0;                // per example: approximate entries that a pass takes from the workspace while it is in the layer
  std::size_t windows = 0;             // per example: the largest matrix of windows that a pass may lay out
  std::vector<Product> products = {};  // products whose long sums are computed in parts
  bool writes_output = true;           // false: the output is the input's memory under another shape, and the layer computes nothing
};

// A bound layer for a GPU.
struct FL_API LayerForm {
  using Numbers = std::vector<std::pair<std::string, double>>;
  explicit LayerForm(Numbers given = {}, LayerMemory taken = {}, std::string called = {});

  std::string name;  // as written in scenarios; the network sets it
  Numbers numbers;   // numbers by name from which the CUDA half is made; whole numbers are exact
  LayerMemory memory;
  std::vector<NetworkForm> networks;  // inside the layer, on the same input, each with its parameters after those of the previous one

  // Return the number with that name. Throw Error if there is no such number; size() also throws if it is not whole.
  [[nodiscard]] double number(const std::string& of) const;
  [[nodiscard]] std::size_t size(const std::string& of) const;
};

struct NetworkForm {
  struct Layer {
    LayerForm form;
    std::size_t begin = 0;                // of its parameters in the model's vector
    std::size_t inputs = 0, outputs = 0;  // entries per example
    std::uint32_t number = 0;             // in the network, for its random numbers
  };
  enum class Loss {
    softmax,       // log sum_c exp(z_c) - z_label; the mean over positions if each has a label
    logistic,      // log(1 + exp(z)) - target z; without targets the class, 0 or 1, is the target; one output
    squared,       // mean over outputs of (z - target)^2
    half_squared,  // half of `squared`
  };
  std::vector<Layer> layers;
  std::size_t size = 0;                          // parameters
  std::vector<ParameterRange> running_averages;  // in the layers' order (weights_first.hpp), which is the order of Layer::begin
  Loss loss = Loss::softmax;
  // Whether layers take statistics of the minibatch, so that all rows of a client's minibatch or full gradient are computed at once.
  bool takes_whole_minibatches = false;
  // For ratings {user, item}: each row (target 1) gets `negatives` extra examples with items that the user has not rated (target 0). The
  // model owns the interactions.
  std::size_t negatives = 0;
  const Interactions* met = nullptr;
};

// Returns the layer out [positions,outputs] = in [positions,inputs] W^T + b of every example: W [outputs,inputs], then b [outputs].
[[nodiscard]] FL_API LayerForm dense_form(std::size_t positions, std::size_t inputs, std::size_t outputs, bool bias);

// Returns the network z = W x + b.
[[nodiscard]] FL_API NetworkForm linear_form(std::size_t inputs, std::size_t outputs, bool bias, NetworkForm::Loss loss);

// Returns the name of the first layer, including layers inside others, without a CUDA half in the registry; "" if every layer has one.
[[nodiscard]] FL_API std::string layer_without_cuda_half(const NetworkForm& form, Precision precision);

// Throws ConfigError if a layer has no CUDA half: a run on a GPU trains on the CPU only on request.
FL_API void require_cuda_halves(const NetworkForm& form, Precision precision);

}  // namespace fl
