// The part of CUB's sort that fl_core/ops/cuda uses, on the CPU.
#pragma once

#include <cuda_runtime.h>
#if defined(FL_CUDA_COUNT_BYTES)
#include "tests/emulator/traffic.hpp"
#endif

#include <algorithm>

namespace cub {

struct DeviceRadixSort {
  // Ascending by the bits of the key, as radix sort orders floating-point numbers: -0 before 0.
  template <class T>
  static cudaError_t SortKeys(void* scratch, std::size_t& scratch_bytes, const T* in, T* out, std::size_t n, int /*begin_bit*/,
                              int /*end_bit*/, cudaStream_t stream) {
    if (scratch == nullptr) {
      scratch_bytes = 1;
      return cudaSuccess;
    }
    fl::emulator::submit(stream, [=] {
      const fl::emulator::DeviceAccess access;
      std::copy_n(in, n, out);
      std::sort(out, out + n, [](T a, T b) { return radix_key(a) < radix_key(b); });
#if defined(FL_CUDA_COUNT_BYTES)
      constexpr std::size_t kPasses = sizeof(T);  // of 8 bits, after one that counts the digits
      fl::emulator::count_read("cub::DeviceRadixSort", in, n * sizeof(T), kPasses + 1);
      fl::emulator::count_written("cub::DeviceRadixSort", out, n * sizeof(T), kPasses);
#endif
    });
    return cudaSuccess;
  }

  // The key whose bits, as a whole number, are in the order of sorting.
  template <class T>
  static auto radix_key(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
      const auto bits = std::bit_cast<Bits>(x);
      return (bits & kSign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
    } else {
      return x;
    }
  }
};

}  // namespace cub
