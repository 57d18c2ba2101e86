// Losses of rows under one model on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clients/model.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl {

template <class T>
class DeviceEvaluation {
 public:
  virtual ~DeviceEvaluation() = default;
  // loss [rows], without regulariser, and correct [rows], 1 where the row is classified right, at x [P]; all in host memory. Waits for the
  // GPU.
  virtual void run(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, std::span<double> loss,
                   std::span<std::uint32_t> correct) = 0;
};

// Null where the model or the data have no GPU form, or this build has no CUDA. `data` has the features of what the model is bound to; it
// lies on the GPU once, however many ask for it.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceEvaluation<T>> make_device_evaluation(const Model<T>& model, const Dataset<T>& data);

extern template std::unique_ptr<DeviceEvaluation<float>> make_device_evaluation(const Model<float>&, const Dataset<float>&);
extern template std::unique_ptr<DeviceEvaluation<double>> make_device_evaluation(const Model<double>&, const Dataset<double>&);

}  // namespace fl
