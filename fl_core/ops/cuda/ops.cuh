// Every operation on the GPU. All work of a call goes to exec.stream; scratch comes from exec.workspace, which must be a Device::cuda one.
//
// What the input, the state and the shared data point to is device memory, the `rows` of a BatchView included; scopes and counts per
// segment are host memory. Payloads are placed on the device by the operation that fills them. Only operations that must learn how much
// memory a message takes (select_rows, top_k_rows) wait for the device. Everything is deterministic: no result depends on which block came
// first.
#pragma once

#include <cstddef>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/dense.cuh"
#include "fl_core/ops/cuda/gather.cuh"
#include "fl_core/ops/cuda/kept_levels.cuh"
#include "fl_core/ops/cuda/linalg.cuh"
#include "fl_core/ops/cuda/quantize.cuh"
#include "fl_core/ops/cuda/reduce.cuh"
#include "fl_core/ops/cuda/select.cuh"
#include "fl_core/ops/cuda/sort.cuh"
#include "fl_core/ops/cuda/ternary.cuh"
#include "fl_core/ops/cuda/top_k.cuh"

namespace fl::cuda {
namespace detail {

template <class F>
__global__ void call_each(std::size_t n, F f) {
  for (std::size_t i = thread_index(); i < n; i += num_threads()) f(i);
}

}  // namespace detail

// f(i) for i = 0 .. n-1, which do not depend on each other.
template <class F>
void for_each(const Exec& exec, std::size_t n, F f) {
  Launch(exec, "for_each", blocks_for(n))(detail::call_each<F>, n, f);
}

}  // namespace fl::cuda

#include "fl_core/ops/cuda/low_rank.cuh"  // built on for_each
#include "fl_core/ops/cuda/vectors.cuh"
