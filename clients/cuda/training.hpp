// Training of many clients at a time on a GPU (clients/learning/device_training.hpp).
#pragma once

#include <memory>

#include "clients/learning/descent.hpp"
#include "clients/learning/device_training.hpp"
#include "clients/learning/local_optimizer.hpp"
#include "clients/learning/network_form.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl::cuda {

// Requires data that satisfy can_lie_on_device (clients/cuda/device_data.cuh). The optimizer is the CUDA half of the one that the descent
// names, or null.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceTraining<T>> make_training(const Descent& descent, const NetworkForm& form, const Dataset<T>& data,
                                                               const GradientOracle<T>& oracle, MatrixProducts products,
                                                               const ParameterKinds& kinds, const LocalOptimizer<T>* optimizer);
template <class T>
[[nodiscard]] bool can_lie_on_device(const Dataset<T>& data);

}  // namespace fl::cuda
