// Sums over threads in a fixed order.
#pragma once

#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// The sum of the lanes' numbers, for every lane.
template <class T>
[[nodiscard]] __device__ T warp_sum(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) x += __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
  return x;
}

// The sum of the numbers of a block's threads, for every thread: warps in their order. `room` [kWarp] is shared memory.
[[nodiscard]] __device__ inline double block_sum(double x, double* room) {
  x = warp_sum(x);
  __syncthreads();  // earlier sums have been read
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += room[warp];
  return sum;
}

// Threads of a block that add up `count` numbers.
[[nodiscard]] inline int threads_for_sum(std::size_t count) { return count <= 256 ? static_cast<int>(kWarp) : kBlockThreads; }

}  // namespace fl::cuda
