// Aggregation on a GPU (server/device_aggregation.hpp).
#pragma once

#include "server/device_aggregation.hpp"

namespace fl::cuda {

template <class T>
[[nodiscard]] std::unique_ptr<DeviceAggregation<T>> make_aggregation();

}  // namespace fl::cuda
