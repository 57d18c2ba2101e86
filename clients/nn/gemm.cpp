#include "clients/nn/gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "clients/nn/onednn.hpp"
#include "clients/nn/packed_product.hpp"
#include "clients/nn/tiles.hpp"

namespace fl::nn {

namespace {

// Small products by plain loops.
constexpr std::size_t kSmall = 32;  // of m + n + k
template <class T, class AtA, class AtB>
void multiply_plainly(std::size_t m, std::size_t n, std::size_t k, const AtA& a, const AtB& b, bool add, T* C, std::size_t ldc) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      T sum = add ? C[i * ldc + j] : T(0);
      for (std::size_t l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
      C[i * ldc + j] = sum;
    }
}

// Where tiles without packing were measured faster: the products of minibatches, and of layers of moderate size.
constexpr std::size_t kFew = 64, kModerate = 1024;
template <class T>
bool suits_tiles(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k) {
  // Adding up the lanes of a sum costs less the longer the sum, packing B less the more rows share it.
  if (op_b == Op::transposed) return op_a == Op::plain && m <= kFew && k >= std::max(2 * kFew, 12 * m);
  return tiles::has_columns<T>(n) && (m <= kFew || k <= (op_a == Op::plain ? kModerate : kFew));
}

}  // namespace

template <class T>
void gemm(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
          T* C, std::size_t ldc) {
  if (m + n + k < kSmall) {
    const std::size_t ai = op_a == Op::plain ? lda : 1, al = op_a == Op::plain ? 1 : lda;
    const std::size_t bl = op_b == Op::plain ? ldb : 1, bj = op_b == Op::plain ? 1 : ldb;
    multiply_plainly(
        m, n, k, [=](std::size_t i, std::size_t l) { return A[i * ai + l * al]; },
        [=](std::size_t l, std::size_t j) { return B[l * bl + j * bj]; }, add, C, ldc);
    return;
  }
  if (op_a == Op::plain && op_b == Op::transposed && packed::fills_vectors<T>(m) && n >= kFew)
    return packed::multiply_few_rows(m, n, k, A, lda, B, ldb, add, C, ldc);
  const bool by_tiles = suits_tiles<T>(op_a, op_b, m, n, k);
#ifdef FL_WITH_ONEDNN
  if constexpr (std::is_same_v<T, float>)
    if (onednn::is_worth_it(op_b, m, n, k, by_tiles)) return onednn::gemm(op_a, op_b, m, n, k, A, lda, B, ldb, add, C, ldc);
#endif
  if (by_tiles) {
    if (op_b == Op::transposed) return tiles::multiply_transposed(m, n, k, A, lda, B, ldb, add, C, ldc);
    return tiles::multiply(m, n, k, A, op_a == Op::plain ? lda : 1, op_a == Op::plain ? 1 : lda, B, ldb, add, C, ldc);
  }
  packed::multiply(m, n, k, A, op_a == Op::plain ? lda : 1, op_a == Op::plain ? 1 : lda, op_b, B, ldb, add, C, ldc);
}
template void gemm(Op, Op, std::size_t, std::size_t, std::size_t, const float*, std::size_t, const float*, std::size_t, bool, float*,
                   std::size_t);
template void gemm(Op, Op, std::size_t, std::size_t, std::size_t, const double*, std::size_t, const double*, std::size_t, bool, double*,
                   std::size_t);

}  // namespace fl::nn
