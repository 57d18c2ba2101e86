// Instructions of a GPU that CUDA C++ has no words for (PTX ISA, sm_80 and newer): copies from device memory to shared memory that pass
// through no register, and products of small matrices by the tensor cores. The emulator has the same functions in C++.
#pragma once

#include "fl_core/ops/cuda/check.cuh"

#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/instructions.hpp"
namespace fl::cuda {
using emulator::copy_async, emulator::end_copies, emulator::wait_for_copies, emulator::to_tf32, emulator::to_bf16_pair,
    emulator::multiply_tf32, emulator::multiply_bf16;
}  // namespace fl::cuda
#else
#include <cstdint>

namespace fl::cuda {

// Starts to copy a number to shared memory, or zero if it is not there; `from` is then not read. A thread sees its own copies after
// wait_for_copies(), others after the block has synchronised as well.
template <class T>
__device__ __forceinline__ void copy_async(T* to, const T* from, bool is_there) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(sizeof(T)),
               "r"(is_there ? unsigned{sizeof(T)} : 0u)
               : "memory");
}
// The copies that the thread has started since the last call are a group, which may be empty.
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all of the thread's groups but the last `kOnTheirWay` are there.
template <int kOnTheirWay>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOnTheirWay) : "memory");
}

// Rounds to TF32 (10 fraction bits), to nearest, ties away from zero.
[[nodiscard]] __device__ __forceinline__ std::uint32_t to_tf32(float x) {
  std::uint32_t word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return word;
}
// Rounds to BF16 (7 fraction bits), to nearest, ties to even.
[[nodiscard]] __device__ __forceinline__ std::uint32_t to_bf16_pair(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Adds the product of a [16,k] and b [k,8] to sum [16,8], with k = 8 in TF32 and 16 in BF16, for a warp together. With group = lane / 4 and
// place = lane % 4, a lane holds
//
//   sum   entries (group, 2 place), (group, 2 place + 1), (group + 8, 2 place), (group + 8, 2 place + 1)
//   a     words of the rows group, group + 8, group, group + 8: the first two of depth `place`, the others of depth place + 4
//   b     words of column `group`: depth `place`, and depth place + 4
//
// A word is one depth in TF32 and two in BF16. Any order of depths will do that is the same in a and b.
__device__ __forceinline__ void multiply_tf32(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply_bf16(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace fl::cuda
#endif
