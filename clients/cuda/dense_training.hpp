// Networks of dense layers on a GPU, many clients at a time (clients/device_training.hpp).
#pragma once

#include <memory>

#include "clients/dense_network.hpp"
#include "clients/descent.hpp"
#include "clients/device_training.hpp"
#include "fl_core/dataset.hpp"

namespace fl::cuda {

// Dense rows, images as bytes that are not changed at random, and sparse rows of up to 4096 features; one label per row.
template <class T>
[[nodiscard]] bool can_train_on(const Dataset<T>& data);

template <class T>
[[nodiscard]] std::unique_ptr<DeviceTraining<T>> make_dense_training(const Descent& descent, const DenseNetwork& network,
                                                                     const Dataset<T>& data, const GradientOracle<T>& oracle);

}  // namespace fl::cuda
