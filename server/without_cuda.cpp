// The CUDA half of the server in builds without CUDA: the host adds the messages up. CMake links this file instead of server/cuda/
// (fedbits_part in cmake/FedbitsParts.cmake).
#include "server/cuda/aggregation.hpp"

namespace fl::cuda {

template <class T>
std::unique_ptr<DeviceAggregation<T>> make_aggregation() {
  return nullptr;
}

template std::unique_ptr<DeviceAggregation<float>> make_aggregation();
template std::unique_ptr<DeviceAggregation<double>> make_aggregation();

}  // namespace fl::cuda
