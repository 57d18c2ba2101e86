// Dense matrix products on one core, row-major.
#pragma once

#include <cstddef>

#include "fl_core/config/device.hpp"

namespace fl::nn {

enum class Op { plain, transposed };

// Computes C [m,n] = op(A) op(B), added to C if `add`; op(A) is [m,k] and op(B) [k,n]. Row-major: lda, ldb, ldc are distances between rows
// as stored. The order of every sum depends on the shapes alone, not on the machine's caches.
template <class T>
FL_API void gemm(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb,
                 bool add, T* C, std::size_t ldc);

}  // namespace fl::nn
