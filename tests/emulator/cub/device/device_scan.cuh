// The part of CUB's scan that fl_core/ops/cuda uses, on the CPU.
#pragma once

#include <cuda_runtime.h>
#if defined(FL_CUDA_COUNT_BYTES)
#include "tests/emulator/traffic.hpp"
#endif

#include <numeric>

namespace cub {

struct DeviceScan {
  template <class T>
  static cudaError_t ExclusiveSum(void* scratch, std::size_t& scratch_bytes, const T* in, T* out, std::size_t n, cudaStream_t stream) {
    if (scratch == nullptr) {
      scratch_bytes = 1;
      return cudaSuccess;
    }
    fl::emulator::submit(stream, [=] {
      const fl::emulator::DeviceAccess access;
      std::exclusive_scan(in, in + n, out, T(0));
#if defined(FL_CUDA_COUNT_BYTES)
      fl::emulator::count_read("cub::DeviceScan", in, n * sizeof(T));
      fl::emulator::count_written("cub::DeviceScan", out, n * sizeof(T));
#endif
    });
    return cudaSuccess;
  }
};

}  // namespace cub
