// Evaluation on a GPU (clients/learning/device_evaluation.hpp).
#pragma once

#include "clients/learning/device_evaluation.hpp"
#include "clients/learning/network_form.hpp"

namespace fl::cuda {

template <class T>
[[nodiscard]] std::unique_ptr<DeviceEvaluation<T>> make_evaluation(const NetworkForm& form, std::size_t P, const Dataset<T>& data);

}  // namespace fl::cuda
