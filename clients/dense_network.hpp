// A model as what a GPU computes for many clients at once: dense layers with element-wise functions between them.
#pragma once

#include <cstddef>
#include <vector>

namespace fl {

struct DenseNetwork {
  enum class Activation { none, relu, tanh };
  enum class Loss {
    softmax,   // log sum_c exp(z_c) - z_label
    logistic,  // log(1 + exp(-y z)), y = +1 of class 1 and -1 of class 0; one output
  };
  static constexpr std::size_t kNoBias = static_cast<std::size_t>(-1);
  // out [B,outputs] = activation(in [B,inputs] W^T + b); W [outputs,inputs] and b [outputs] begin at these places of the model's vector.
  struct Layer {
    std::size_t inputs = 0, outputs = 0;
    std::size_t weight = 0, bias = kNoBias;
    Activation activation = Activation::none;
  };
  std::vector<Layer> layers;
  Loss loss = Loss::softmax;
};

}  // namespace fl
