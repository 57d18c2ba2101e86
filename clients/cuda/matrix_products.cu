#include "clients/cuda/matrix_products.cuh"
#include "clients/cuda/tiled_product.cuh"

namespace fl::cuda {

template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T, true>& b, const StoreMatrix<T>& store) {
  tiled_product<T>(pass.exec, pass.products, name, pass.clients, m, n, d, a, b, store);
}
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T>& a,
                    const RightMatrix<T>& b, const StoreMatrix<T>& store) {
  tiled_product<T>(pass.exec, pass.products, name, pass.clients, m, n, d, a, b, store);
}
template <class T>
void matrix_product(const LayerPass& pass, const char* name, std::size_t m, std::size_t n, std::size_t d, const LeftMatrix<T, true>& a,
                    const RightMatrix<T>& b, const StoreGradient<T>& store) {
  tiled_product<T>(pass.exec, pass.products, name, pass.clients, m, n, d, a, b, store);
}

#define FL_MATRIX_PRODUCTS(T)                                                                                                    \
  template void matrix_product(const LayerPass&, const char*, std::size_t, std::size_t, std::size_t, const LeftMatrix<T>&,       \
                               const RightMatrix<T, true>&, const StoreMatrix<T>&);                                              \
  template void matrix_product(const LayerPass&, const char*, std::size_t, std::size_t, std::size_t, const LeftMatrix<T>&,       \
                               const RightMatrix<T>&, const StoreMatrix<T>&);                                                    \
  template void matrix_product(const LayerPass&, const char*, std::size_t, std::size_t, std::size_t, const LeftMatrix<T, true>&, \
                               const RightMatrix<T>&, const StoreGradient<T>&);
FL_MATRIX_PRODUCTS(float)
FL_MATRIX_PRODUCTS(double)
#undef FL_MATRIX_PRODUCTS

}  // namespace fl::cuda
