// Waits of random length on a stream, so that work which forgot to wait for another stream or for the host shows (FEDBITS_CUDA_DELAY).
#pragma once

#include <cuda_runtime.h>

#include "fl_core/config/device.hpp"

namespace fl::cuda {

// With FEDBITS_CUDA_DELAY lets the stream wait for up to 100 microseconds before the work that is given to it next; else does nothing.
FL_API void delay(cudaStream_t stream);

}  // namespace fl::cuda
