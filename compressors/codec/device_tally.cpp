#include "compressors/codec/device_tally.hpp"

#include "compressors/codec/cuda/tally.hpp"

namespace fl::codec {

template <class T>
std::unique_ptr<DeviceTally<T>> make_device_tally() {
  return cuda::make_tally<T>();
}

template std::unique_ptr<DeviceTally<float>> make_device_tally();
template std::unique_ptr<DeviceTally<double>> make_device_tally();

}  // namespace fl::codec
