// Products of matrices whose second factor is packed into panels: columns of a few vectors' width, one term after another.
//
// Sums run over k in order, in blocks of kTermsOfBlock, so bits depend on k alone.
#pragma once

#include <cstddef>

#include "clients/nn/gemm.hpp"

namespace fl::nn::packed {

// Returns the entries of the panels of a matrix [k,n].
template <class T>
[[nodiscard]] std::size_t panels_size(std::size_t k, std::size_t n);
// Packs op(B) [k,n].
template <class T>
void pack_panels(Op op_b, std::size_t k, std::size_t n, const T* B, std::size_t ldb, T* panels);

// Computes C [m,n] = A' B, added to C if `add`, for A'(i,l) = A[i*ai + l*al] and the panels of B [k,n].
template <class T>
void multiply_panels(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, const T* panels, bool add,
                     T* C, std::size_t ldc);

// Computes the same with B as nn::gemm has it, packing it block by block.
template <class T>
void multiply(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, Op op_b, const T* B, std::size_t ldb,
              bool add, T* C, std::size_t ldc);

// Computes C [m,n] = A B^T, added to C if `add`, for A [m,k] of few rows and B [n,k], both row-major. Vectors run along the rows of A,
// which must nearly fill them (fills_vectors), and B is read where it lies.
template <class T>
[[nodiscard]] bool fills_vectors(std::size_t m);
template <class T>
void multiply_few_rows(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
                       T* C, std::size_t ldc);

}  // namespace fl::nn::packed
