#include "server/device_aggregation.hpp"

#include "server/cuda/aggregation.hpp"

namespace fl {

template <class T>
std::unique_ptr<DeviceAggregation<T>> make_device_aggregation() {
  return cuda::make_aggregation<T>();
}

template std::unique_ptr<DeviceAggregation<float>> make_device_aggregation();
template std::unique_ptr<DeviceAggregation<double>> make_device_aggregation();

}  // namespace fl
