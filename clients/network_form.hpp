// A model as what a GPU computes for many clients at once: its layers by name with plain numbers, and its loss.
//
// Activations are [B,n] as in clients/nn/module.hpp, images {channels, height, width}. A layer describes itself (Module::as_form); the
// registry makes its CUDA half from the name (clients/cuda/layer.hpp), and clients/device_room.hpp adds up the memory that layers state.
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

// What a layer takes of a GPU's memory beside its input and its output, in numbers of the run's precision. The figures stand here alone:
// the network gives the CUDA half what they say, and `fedbits plan` adds them up.
struct LayerMemory {
  // A product of matrices [rows,inputs] [inputs,outputs]: forward, and on the way back by the weights and by the input.
  struct Product {
    std::size_t rows = 1, outputs = 0, inputs = 0;  // rows of an example
  };
  std::size_t kept = 0;                // of an example: what forward leaves in LayerPass::saved for backward
  std::size_t room = 0;                // of an example: about what a pass takes from the workspace while it is in the layer
  std::size_t windows = 0;             // of an example: the largest matrix of windows that a pass may lay out
  std::vector<Product> products = {};  // whose long sums are taken in parts
  bool writes_output = true;           // false: the output is the input's memory under another shape, and there is nothing to compute
};

// A bound layer for a GPU.
struct FL_API LayerForm {
  using Numbers = std::vector<std::pair<std::string, double>>;
  explicit LayerForm(Numbers given = {}, LayerMemory taken = {}, std::string called = {});

  std::string name;  // as scenarios write it; the network sets it
  Numbers numbers;   // what the CUDA half is made from, by name; whole numbers are exact
  LayerMemory memory;
  std::vector<NetworkForm> networks;  // inside of the layer, on the same input, each with its parameters after those of the one before

  // Return the number of that name. Throw Error if there is no such number; size() also throws if it is not whole.
  [[nodiscard]] double number(const std::string& of) const;
  [[nodiscard]] std::size_t size(const std::string& of) const;
};

struct NetworkForm {
  struct Layer {
    LayerForm form;
    std::size_t begin = 0;                // of its parameters in the model's vector
    std::size_t inputs = 0, outputs = 0;  // entries of an example
    std::uint32_t number = 0;             // in the network, for its random numbers
  };
  enum class Loss {
    softmax,       // log sum_c exp(z_c) - z_label; the mean over positions where each has a label
    logistic,      // log(1 + exp(z)) - target z, the target being the class, 0 or 1, where the data have none; one output
    squared,       // mean over outputs of (z - target)^2
    half_squared,  // half of it
  };
  std::vector<Layer> layers;
  std::size_t size = 0;               // parameters
  std::vector<Statistic> statistics;  // in the layers' order (weights_first.hpp), which is that of Layer::begin
  Loss loss = Loss::softmax;
  // Whether layers take statistics of the minibatch, so that all rows of a client's minibatch or full gradient go through at once.
  bool takes_whole_minibatches = false;
  // Of ratings {user, item}: a row is so many examples more, of its user and items that the user has not met; their targets are 0, its own
  // is 1. Interactions are the model's.
  std::size_t negatives = 0;
  const Interactions* met = nullptr;
};

// Returns the layer out [positions,outputs] = in [positions,inputs] W^T + b of every example: W [outputs,inputs], then b [outputs].
[[nodiscard]] FL_API LayerForm dense_form(std::size_t positions, std::size_t inputs, std::size_t outputs, bool bias);

// Returns the network z = W x + b.
[[nodiscard]] FL_API NetworkForm linear_form(std::size_t inputs, std::size_t outputs, bool bias, NetworkForm::Loss loss);

// Returns the name of the first layer, also inside of others, that the registry has no CUDA half of; "" where every one has its half.
[[nodiscard]] FL_API std::string layer_without_cuda_half(const NetworkForm& form, Precision precision);

// Throws ConfigError where a layer has no CUDA half: a run on a GPU does not train on the CPU unasked.
FL_API void require_cuda_halves(const NetworkForm& form, Precision precision);

}  // namespace fl
