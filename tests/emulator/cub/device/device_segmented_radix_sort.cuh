// The part of CUB's sort of segments that fl_core/ops/cuda uses, on the CPU.
#pragma once

#include <cub/device/device_radix_sort.cuh>

namespace cub {

struct DeviceSegmentedRadixSort {
  // Ascending within each segment, as DeviceRadixSort.
  template <class T, class Offset>
  static cudaError_t SortKeys(void* scratch, std::size_t& scratch_bytes, const T* in, T* out, Offset n, Offset segments,
                              const Offset* begin, const Offset* end, int /*begin_bit*/, int /*end_bit*/, cudaStream_t stream) {
    if (scratch == nullptr) {
      scratch_bytes = 1;
      return cudaSuccess;
    }
    fl::emulator::submit(stream, [=] {
      const fl::emulator::DeviceAccess access;
      std::copy_n(in, n, out);
      for (Offset s = 0; s < segments; ++s)
        std::sort(out + begin[s], out + end[s], [](T a, T b) { return DeviceRadixSort::radix_key(a) < DeviceRadixSort::radix_key(b); });
#if defined(FL_CUDA_COUNT_BYTES)
      constexpr std::size_t kPasses = sizeof(T);  // of 8 bits, after one that counts the digits
      const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
      fl::emulator::count_read("cub::DeviceSegmentedRadixSort", in, bytes, 2 * kPasses);
      fl::emulator::count_written("cub::DeviceSegmentedRadixSort", out, bytes, kPasses);
#endif
    });
    return cudaSuccess;
  }
};

}  // namespace cub
