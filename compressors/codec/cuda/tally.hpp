// Counts messages on a GPU (compressors/codec/device_tally.hpp).
#pragma once

#include "compressors/codec/device_tally.hpp"

namespace fl::codec::cuda {

template <class T>
[[nodiscard]] std::unique_ptr<DeviceTally<T>> make_tally();

}  // namespace fl::codec::cuda
