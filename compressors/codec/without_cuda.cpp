// The CUDA half of the codecs in builds without CUDA: there is no tally, so the host counts. CMake links this file instead of
// compressors/codec/cuda/ (fedbits_part in cmake/FedbitsParts.cmake).
#include "compressors/codec/cuda/tally.hpp"

namespace fl::codec::cuda {

template <class T>
std::unique_ptr<DeviceTally<T>> make_tally() {
  return nullptr;
}

template std::unique_ptr<DeviceTally<float>> make_tally();
template std::unique_ptr<DeviceTally<double>> make_tally();

}  // namespace fl::codec::cuda
