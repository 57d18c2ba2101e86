// Products of operands that lie in memory as matrices, for each client of a pass (tiled_product.cuh). They serve dense and recurrent layers
// and are compiled once for all of them.
#pragma once

#include <cstddef>

#include "clients/cuda/layer.hpp"
#include "clients/cuda/operands.cuh"

namespace fl::cuda {

// Computes C [m,n] = A [m,d] B^T with B [n,d].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T, true>& b, const StoreMatrix<T>& store);

// Computes C [m,n] = A [m,d] B [d,n].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T>& b, const StoreMatrix<T>& store);

// Computes the gradient C [m,n] = A^T B with A [d,m] and B [d,n].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T, true>& a,
                    const RightMatrix<T>& b, const StoreGradient<T>& store);

}  // namespace fl::cuda
