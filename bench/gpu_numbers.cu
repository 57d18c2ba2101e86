#include "bench/gpu_numbers.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::bench {
namespace {

__global__ void draw(float* out, std::size_t count, std::size_t P) {
  for (std::size_t i = cuda::thread_index(); i < count; i += cuda::num_threads()) out[i] = operand_number(i / P, i % P);
}

}  // namespace

void draw_operands(const Exec& exec, float* out, std::size_t K, std::size_t P) {
  cuda::Launch(exec, "draw_operands", cuda::blocks_for(K * P))(draw, out, K * P, P);
}

}  // namespace fl::bench
