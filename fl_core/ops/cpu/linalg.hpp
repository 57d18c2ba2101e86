// Dense algebra on the CPU, single-threaded; matrices are row-major and packed. Instantiated for float and double.
//
//   gemm            C [m,n] = alpha op(A) [m,k] op(B) [k,n] + beta C         (beta = 0: C is not read)
//   orthogonalize   A [n,r] -> orthonormal columns with the same span, modified Gram-Schmidt, each column projected twice
//   svd_small       A [m,n] = U diag(S) V^T, q = min(m,n): U [m,q], S [q] descending, V [n,q]; one-sided Jacobi
//   ridge_least_squares   X [m,r] = op(A) F (F^T F + rho I)^-1, the least squares |op(A) - X F^T|^2 + rho |X|^2; op(A) [m,n], F [n,r],
//                   rho = ridge * trace(F^T F) / r
//   hadamard_rows   every row of x [K,n] times the n x n Walsh-Hadamard matrix of +-1, n a power of two; twice gives n x
//
// Sums of orthogonalize and svd_small are in double, in order, so that their answer does not depend on vector width.
// Sources: Golub, Van Loan, "Matrix computations", chapters 5 and 8; Giraud, Langou, Rozloznik, "The loss of orthogonality in the
// Gram-Schmidt orthogonalization process", 2005 (twice is enough).
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cpu {

template <class T>
FL_API void gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
                 const T* A, const T* B, T beta, T* C);

// A column that lies in the span of those before it, up to rounding, becomes zeros.
template <class T>
FL_API void orthogonalize(const Exec& exec, T* A, std::size_t n, std::size_t r);

// Columns of U and V whose singular value is 0 are: zeros in the one with more rows, orthonormal in the other.
template <class T>
FL_API void svd_small(const Exec& exec, const T* A, std::size_t m, std::size_t n, T* U, T* S, T* V);

FL_API void ridge_least_squares(const Exec& exec, Transpose transpose_a, std::size_t m, std::size_t n, std::size_t r, const double* A,
                                const double* F, double ridge, double* X);

template <class T>
FL_API void hadamard_rows(const Exec& exec, T* x, std::size_t K, std::size_t n);

}  // namespace fl::cpu
