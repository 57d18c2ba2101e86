// Products with the few rows of a minibatch, by tiles of (rows x vectors) of C that stay in registers: no matrix is packed.
//
// Packing weights [out,in] for a product with ten rows costs as much as the product. Every sum runs over k in order, or over k in the lanes
// of one vector and then in a tree, so bits depend on the shapes alone.
#pragma once

#include <cstddef>

namespace fl::nn::tiles {

// Computes C [m,n] = A' B, added to C if `add`, for B [k,n] row-major and A'(i,l) = A[i*ai + l*al]. Requires n of at least a vector's
// length (has_columns).
template <class T>
[[nodiscard]] bool has_columns(std::size_t n);
template <class T>
void multiply(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, const T* B, std::size_t ldb,
              bool add, T* C, std::size_t ldc);

// Computes C [m,n] = A B^T, added to C if `add`, for A [m,k] and B [n,k] row-major.
template <class T>
void multiply_transposed(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
                         T* C, std::size_t ldc);

}  // namespace fl::nn::tiles
