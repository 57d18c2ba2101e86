// Losses of rows under one model on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clients/learning/model.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl {

template <class T>
class DeviceEvaluation {
 public:
  virtual ~DeviceEvaluation() = default;
  // Writes loss [rows], without the regulariser, and correct [rows], 1 for a row that is classified correctly, at x [P]. All arrays are in
  // host memory. Waits for the GPU.
  virtual void run(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, std::span<double> loss,
                   std::span<std::uint32_t> correct) = 0;
};

// Returns null if the model or the data have no GPU form, or if this build has no CUDA. `data` has the features of the data that the model
// is bound to. The GPU holds one copy of the data for all evaluations.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceEvaluation<T>> make_device_evaluation(const Model<T>& model, const Dataset<T>& data);

extern template std::unique_ptr<DeviceEvaluation<float>> make_device_evaluation(const Model<float>&, const Dataset<float>&);
extern template std::unique_ptr<DeviceEvaluation<double>> make_device_evaluation(const Model<double>&, const Dataset<double>&);

}  // namespace fl
