// A model as what a GPU computes for many clients at once: its layers as plain numbers, and its loss.
//
// Activations are [B,n] as in clients/nn/module.hpp, images {channels, height, width}. What the numbers mean stands with the layers there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace fl {
namespace form {

// out [positions,outputs] = in [positions,inputs] W^T + b of every example. W [outputs,inputs], then b [outputs].
struct Dense {
  std::size_t positions = 1, inputs = 0, outputs = 0;
  bool bias = true;
};

// W [out_channels, channels kernel kernel], then b [out_channels].
struct Convolution {
  std::size_t channels = 0, height = 0, width = 0;
  std::size_t out_channels = 0, out_height = 0, out_width = 0;
  std::size_t kernel = 0, padding = 0, stride = 1;
  bool bias = true;
};

// The largest entry of a window (the first of equal ones), or the mean.
struct Pooling {
  bool takes_largest = true;
  std::size_t channels = 0, height = 0, width = 0, out_height = 0, out_width = 0;
  std::size_t window_height = 0, window_width = 0, stride_height = 0, stride_width = 0;
};

enum class Function { relu, tanh, gelu };
struct Elementwise {
  Function function = Function::relu;
};

struct Dropout {
  double rate = 0;
};

struct Flatten {};

using Layer = std::variant<Dense, Convolution, Pooling, Elementwise, Dropout, Flatten>;

}  // namespace form

struct NetworkForm {
  struct Layer {
    form::Layer form;
    std::size_t begin = 0;                // of its parameters in the model's vector
    std::size_t inputs = 0, outputs = 0;  // entries of an example
    std::uint32_t number = 0;             // in the network, for its random numbers
  };
  enum class Loss {
    softmax,   // log sum_c exp(z_c) - z_label
    logistic,  // log(1 + exp(-y z)), y = +1 of class 1 and -1 of class 0; one output
  };
  std::vector<Layer> layers;
  Loss loss = Loss::softmax;
};

}  // namespace fl
