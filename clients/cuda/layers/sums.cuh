// Sums over threads in a fixed order.
#pragma once

#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Returns the sum of the lanes' numbers to every lane.
template <class T>
[[nodiscard]] __device__ T warp_sum(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) x += __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
  return x;
}

// Returns the sum over a block's threads to every thread, with warps added in order. `room` [kWarp] is shared memory.
[[nodiscard]] __device__ inline double block_sum(double x, double* room) {
  x = warp_sum(x);
  __syncthreads();  // earlier sums have been read
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += room[warp];
  return sum;
}

// Returns the number of threads in a block that adds up `count` numbers.
[[nodiscard]] inline int threads_for_sum(std::size_t count) { return count <= 256 ? static_cast<int>(kWarp) : kBlockThreads; }

}  // namespace fl::cuda
