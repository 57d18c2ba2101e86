// Integer sums within a warp and a block; integers, so that any order gives the same.
#pragma once

#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Over the lanes 0 .. own lane. All lanes of the warp take part.
[[nodiscard]] __device__ inline unsigned warp_inclusive_sum(unsigned x) {
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned width = 1; width < kWarp; width *= 2) {
    const unsigned left = __shfl_up_sync(kAllLanes, x, width);
    x += lane >= width ? left : 0;
  }
  return x;
}

// Over the threads before this one; `all` is the sum of the block. All threads take part; warp_sum: [32] in shared memory, free again when
// the call returns.
[[nodiscard]] __device__ inline unsigned block_exclusive_sum(unsigned x, unsigned* warp_sum, unsigned& all) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const unsigned inclusive = warp_inclusive_sum(x);
  if (lane == kWarp - 1) warp_sum[warp] = inclusive;
  __syncthreads();
  const unsigned mine = lane < warps ? warp_sum[lane] : 0, summed = warp_inclusive_sum(mine);
  all = __shfl_sync(kAllLanes, summed, static_cast<int>(kWarp - 1));
  const unsigned before = __shfl_sync(kAllLanes, summed - mine, static_cast<int>(warp));
  __syncthreads();
  return before + inclusive - x;
}

}  // namespace fl::cuda
