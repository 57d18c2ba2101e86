// Local steps of softmax, logistic and linear regression. One block of threads computes a client, whose parameters stay on the chip from
// the first step to the last.
#pragma once

#include <cstdint>
#include <optional>

#include "clients/cuda/descent_step.cuh"
#include "clients/cuda/device_data.cuh"
#include "clients/learning/network_form.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

// W [outputs,inputs], then b [outputs] if there is a bias.
struct RegressionForm {
  std::size_t inputs = 0, outputs = 0;
  bool bias = true;
  NetworkForm::Loss loss = NetworkForm::Loss::softmax;
  [[nodiscard]] FL_HD std::size_t size() const { return outputs * (inputs + (bias ? 1 : 0)); }
};

// Returns the network as a regression if it is one and if its parameters and its slopes of minibatches of up to `most_rows` rows fit into a
// block's memory.
template <class T>
[[nodiscard]] std::optional<RegressionForm> as_regression(const NetworkForm& form, std::size_t most_rows);

// Returns whether rows can be read in place: dense rows, and images without augmentation, with one label or target each.
template <class T>
[[nodiscard]] bool reads_in_place(const DeviceRows<T>& data) {
  return (data.dense != nullptr || data.pixels != nullptr) && data.augment.is_none() && data.num_labels == 1;
}

// All local steps of clients 0 .. clients-1 of a wave. Client k takes count[k] steps; the rows of step t are rows[begin[t*stride + k]] ..
// rows[begin[t*stride + k + 1] - 1]. All arrays are on the GPU.
struct RegressionBatches {
  const std::uint32_t* count;
  const std::uint32_t* rows;
  const std::uint64_t* begin;
  std::size_t stride;
};
// Computes y [clients,P], the parameters after the steps that start at step.w. v [clients,P] is zero at the start, or null without
// momentum.
template <class T>
void descend_regression(const Exec& exec, const RegressionForm& form, const DeviceRows<T>& data, const RegressionBatches& batches,
                        std::size_t most_rows, std::size_t clients, const DescentStep<T>& step, const Regulariser& regulariser, T* v, T* y);

}  // namespace fl::cuda
