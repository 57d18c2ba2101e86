// The order of a network's parameter vector [P]: all weights, tensor by tensor, then all running statistics.
//
// So the weights are one stretch, which operators with scope = "model" treat as one vector. Layers hold their tensors side by side, a batch
// normalisation its statistics behind its weights: that order is the layers'. Models without statistics have one order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/message/layer_table.hpp"

namespace fl {

// The table of tensors that lie in the layers' order, without gaps.
[[nodiscard]] inline LayerTable weights_first(const std::vector<Layer>& tensors) {
  LayerTable table;
  for (const bool statistics : {false, true})
    for (Layer tensor : tensors) {
      if ((tensor.statistic_rate > 0) != statistics) continue;
      tensor.begin = table.size();
      table.layers.push_back(tensor);
    }
  return table;
}

// x [P] in the layers' order, where `statistics` lie, as weights first.
template <class T>
void put_weights_first(std::span<const Statistic> statistics, std::size_t P, const T* x, T* out) {
  for_each_run_of_weights(statistics, 0, P, [&](std::size_t begin, std::size_t end) { out = std::copy(x + begin, x + end, out); });
  gather_statistics(statistics, x, out);
}

// And back.
template <class T>
void put_in_order_of_layers(std::span<const Statistic> statistics, std::size_t P, const T* x, T* out) {
  for_each_run_of_weights(statistics, 0, P, [&](std::size_t begin, std::size_t end) {
    std::copy_n(x, end - begin, out + begin);
    x += end - begin;
  });
  scatter_statistics(statistics, x, out);
}

}  // namespace fl
