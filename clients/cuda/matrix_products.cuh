// Products of operands that lie in memory as matrices, for each client of a pass (tiled_product.cuh): those of dense and recurrent layers,
// compiled once for all of them.
#pragma once

#include <cstddef>

#include "clients/cuda/layer.hpp"
#include "clients/cuda/operands.cuh"

namespace fl::cuda {

// C [m,n] = A [m,d] B^T, of B [n,d].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T, true>& b, const StoreMatrix<T>& store);

// C [m,n] = A [m,d] B [d,n].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T>& b, const StoreMatrix<T>& store);

// The gradient C [m,n] = A^T B, of A [d,m] and B [d,n].
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T, true>& a,
                    const RightMatrix<T>& b, const StoreGradient<T>& store);

}  // namespace fl::cuda
