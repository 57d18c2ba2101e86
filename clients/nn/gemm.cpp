#include "clients/nn/gemm.hpp"

#include <Eigen/Core>

namespace fl::nn {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using View = Eigen::Map<const Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Target = Eigen::Map<Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

Eigen::Index ix(std::size_t n) { return static_cast<Eigen::Index>(n); }

// Eigen cuts products into panels by the size of the caches, and so would round differently on another machine.
const bool kCachesAreFixed = [] {
  Eigen::setCpuCacheSizes(32 << 10, 1 << 20, 8 << 20);
  return true;
}();

template <class Left, class Right, class Out>
void multiply(const Left& left, const Right& right, bool add, Out& out) {
  if (add)
    out.noalias() += left * right;
  else
    out.noalias() = left * right;
}

}  // namespace

template <class T>
void gemm(Op op_a, Op op_b, std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
          T* C, std::size_t ldc) {
  Target<T> out(C, ix(m), ix(n), Eigen::OuterStride<>(ix(ldc)));
  const bool ta = op_a == Op::transposed, tb = op_b == Op::transposed;
  const View<T> a(A, ix(ta ? k : m), ix(ta ? m : k), Eigen::OuterStride<>(ix(lda)));
  const View<T> b(B, ix(tb ? n : k), ix(tb ? k : n), Eigen::OuterStride<>(ix(ldb)));
  if (ta && tb)
    multiply(a.transpose(), b.transpose(), add, out);
  else if (ta)
    multiply(a.transpose(), b, add, out);
  else if (tb)
    multiply(a, b.transpose(), add, out);
  else
    multiply(a, b, add, out);
}
template void gemm(Op, Op, std::size_t, std::size_t, std::size_t, const float*, std::size_t, const float*, std::size_t, bool, float*,
                   std::size_t);
template void gemm(Op, Op, std::size_t, std::size_t, std::size_t, const double*, std::size_t, const double*, std::size_t, bool, double*,
                   std::size_t);

}  // namespace fl::nn
