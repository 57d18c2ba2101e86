#include "compressors/codec/device_tally.hpp"

#if defined(FL_WITH_CUDA)
#include "compressors/codec/cuda/tally.hpp"
#endif

namespace fl::codec {

template <class T>
std::unique_ptr<DeviceTally<T>> make_device_tally() {
#if defined(FL_WITH_CUDA)
  return cuda::make_tally<T>();
#else
  return nullptr;
#endif
}

template std::unique_ptr<DeviceTally<float>> make_device_tally();
template std::unique_ptr<DeviceTally<double>> make_device_tally();

}  // namespace fl::codec
