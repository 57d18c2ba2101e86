#include "server/device_aggregation.hpp"

#if defined(FL_WITH_CUDA)
#include "server/cuda/aggregation.hpp"
#endif

namespace fl {

template <class T>
std::unique_ptr<DeviceAggregation<T>> make_device_aggregation() {
#if defined(FL_WITH_CUDA)
  return cuda::make_aggregation<T>();
#else
  return nullptr;
#endif
}

template std::unique_ptr<DeviceAggregation<float>> make_device_aggregation();
template std::unique_ptr<DeviceAggregation<double>> make_device_aggregation();

}  // namespace fl
