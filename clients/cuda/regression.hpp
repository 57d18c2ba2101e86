// Local steps of softmax, logistic and linear regression: one block of threads per client, whose parameters stay on the chip from the first
// step to the last.
#pragma once

#include <cstdint>
#include <optional>

#include "clients/cuda/descent_step.cuh"
#include "clients/cuda/device_data.cuh"
#include "clients/network_form.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

// W [outputs,inputs], then b [outputs] unless there is none.
struct RegressionForm {
  std::size_t inputs = 0, outputs = 0;
  bool bias = true;
  NetworkForm::Loss loss = NetworkForm::Loss::softmax;
  [[nodiscard]] FL_HD std::size_t size() const { return outputs * (inputs + (bias ? 1 : 0)); }
};

// The network as a regression, if it is one whose parameters and whose slopes of minibatches of up to `most_rows` rows fit a block's
// memory.
template <class T>
[[nodiscard]] std::optional<RegressionForm> as_regression(const NetworkForm& form, std::size_t most_rows);

// Whether rows can be read where they lie: dense ones and images that are not changed, with a label or target each.
template <class T>
[[nodiscard]] bool reads_in_place(const DeviceRows<T>& data) {
  return (data.dense != nullptr || data.pixels != nullptr) && data.augment.is_none() && data.num_labels == 1;
}

// All local steps of clients 0 .. clients-1 of a wave. Client k takes count[k] steps; the rows of step t are rows[begin[t*stride + k]] ..
// rows[begin[t*stride + k + 1] - 1]. All on the GPU.
struct RegressionBatches {
  const std::uint32_t* count;
  const std::uint32_t* rows;
  const std::uint64_t* begin;
  std::size_t stride;
};
// y [clients,P]: the parameters after the steps, from step.w. v [clients,P], zeros, or null without momentum.
template <class T>
void descend_regression(const Exec& exec, const RegressionForm& form, const DeviceRows<T>& data, const RegressionBatches& batches,
                        std::size_t most_rows, std::size_t clients, const DescentStep<T>& step, const Regulariser& regulariser, T* v, T* y);

}  // namespace fl::cuda
