// One matrix product for each of many clients:  C_k [m,n] = alpha op(A_k) [m,d] op(B_k) [d,n] + beta C_k.
//
// Row-major and packed; *_stride is the distance between clients' matrices, 0 where they share one. A block of threads computes a tile of
// one client's C from tiles of A and B in shared memory, in ascending order of d: the same bits in every run.
#pragma once

#include <cstddef>

#include "fl_core/exec.hpp"
#include "fl_core/verb_types.hpp"

namespace fl::cuda {

template <class T>
struct Matrices {
  T* data = nullptr;
  std::size_t stride = 0;
  Transpose transpose = Transpose::no;
};

// beta = 0: C is not read.
template <class T>
void batched_gemm(const Exec& exec, std::size_t clients, std::size_t m, std::size_t n, std::size_t d, T alpha, Matrices<const T> A,
                  Matrices<const T> B, T beta, Matrices<T> C);

}  // namespace fl::cuda
