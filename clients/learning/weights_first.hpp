// The order of a network's parameter vector [P]: all weights, tensor by tensor, then all running averages.
//
// The weights are therefore contiguous, and operators with scope = "model" treat them as one vector. Layers hold their tensors next to each
// other, with the running averages of a batch normalisation behind its weights: this is the layers' order. Models without running averages
// have one order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/message/layer_table.hpp"

namespace fl {

// Returns the table of tensors that lie in the layers' order, without gaps.
[[nodiscard]] inline LayerTable weights_first(const std::vector<Layer>& tensors) {
  LayerTable table;
  for (const bool is_average : {false, true})
    for (Layer tensor : tensors) {
      if ((tensor.running_rate > 0) != is_average) continue;
      tensor.begin = table.size();
      table.layers.push_back(tensor);
    }
  return table;
}

// Writes x [P], given in the layers' order with the positions of `averages`, with the weights first.
template <class T>
void put_weights_first(std::span<const ParameterRange> averages, std::size_t P, const T* x, T* out) {
  for_each_run_outside(averages, 0, P, [&](std::size_t begin, std::size_t end) { out = std::copy(x + begin, x + end, out); });
  gather_ranges(averages, x, out);
}

// Writes x [P], given with the weights first, in the layers' order.
template <class T>
void put_in_order_of_layers(std::span<const ParameterRange> averages, std::size_t P, const T* x, T* out) {
  for_each_run_outside(averages, 0, P, [&](std::size_t begin, std::size_t end) {
    std::copy_n(x, end - begin, out + begin);
    x += end - begin;
  });
  scatter_ranges(averages, x, out);
}

}  // namespace fl
