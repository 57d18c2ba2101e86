#include "fl_core/ops/cpu/linalg.hpp"

// g++ 12 warns inside its own AVX-512 intrinsics, wherever Eigen uses them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fl::cpu {
namespace {

// Eigen sums a product in blocks that fit the caches of the processor it runs on, so that the last digit of a sum would depend on that
// processor. Here the sizes of the caches are stated for the whole library instead: one program then computes the same bytes on every
// machine. They are those of a server's processor of 2023, on which the published results were computed.
[[maybe_unused]] const bool kBlocksAreStated = [] {
  constexpr std::ptrdiff_t kKiB = 1024;
  Eigen::setCpuCacheSizes(48 * kKiB, 2048 * kKiB, 262144 * kKiB);
  return true;
}();

template <class T>
using Stored = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Matrix = Eigen::Map<Stored<T>>;
template <class T>
using ConstMatrix = Eigen::Map<const Stored<T>>;

template <class T>
ConstMatrix<T> matrix(const T* data, std::size_t rows, std::size_t cols) {
  return {data, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols)};
}

// Columns in double, one after another: [cols][rows].
struct DoubleColumns {
  double* data;
  std::size_t rows, cols;
  [[nodiscard]] double* operator[](std::size_t j) const { return data + j * rows; }
};

double dot(const double* x, const double* y, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// One Jacobi rotation of columns p and q of W and V; false when they are orthogonal already.
bool rotate(const DoubleColumns& W, const DoubleColumns& V, std::size_t p, std::size_t q) {
  const double a = dot(W[p], W[p], W.rows), b = dot(W[q], W[q], W.rows), c = dot(W[p], W[q], W.rows);
  if (!(std::fabs(c) > 1e-15 * std::sqrt(a) * std::sqrt(b))) return false;
  const double zeta = (b - a) / (2 * c);
  const double tangent = (zeta >= 0 ? 1.0 : -1.0) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (const DoubleColumns* M : {&W, &V}) {
    double *x = (*M)[p], *y = (*M)[q];
    for (std::size_t i = 0; i < M->rows; ++i) {
      const double xi = x[i];
      x[i] = cosine * xi - sine * y[i];
      y[i] = sine * xi + cosine * y[i];
    }
  }
  return true;
}

// W [tall] becomes U diag(S) in place, V gathers the rotations. Sweeps are bounded, so that NaN cannot hang.
void jacobi(const DoubleColumns& W, const DoubleColumns& V) {
  constexpr int kMaxSweeps = 60;
  for (std::size_t i = 0; i < V.cols; ++i)
    for (std::size_t j = 0; j < V.rows; ++j) V[i][j] = i == j ? 1 : 0;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool rotated = false;
    for (std::size_t p = 0; p + 1 < W.cols; ++p)
      for (std::size_t q = p + 1; q < W.cols; ++q) rotated = rotate(W, V, p, q) || rotated;
    if (!rotated) return;
  }
}

}  // namespace

template <class T>
void gemm(const Exec&, Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha, const T* A,
          const T* B, T beta, T* C) {
  Matrix<T> c(C, static_cast<Eigen::Index>(m), static_cast<Eigen::Index>(n));
  if (beta == T(0))
    c.setZero();
  else if (beta != T(1))
    c *= beta;
  // Transposed operands are copied, so that one kind of product is compiled and not four. The compiler takes a second for each.
  const auto plain = [](Transpose transpose, const T* data, std::size_t rows, std::size_t cols) -> Stored<T> {
    if (transpose == Transpose::yes) return matrix(data, cols, rows).transpose();
    return matrix(data, rows, cols);
  };
  c.noalias() += alpha * plain(transpose_a, A, m, k) * plain(transpose_b, B, k, n);
}

template <class T>
void orthogonalize(const Exec& exec, T* A, std::size_t n, std::size_t r) {
  Workspace::Frame frame(*exec.workspace);
  const DoubleColumns Q{frame.take<double>(n * r), n, r};
  for (std::size_t j = 0; j < r; ++j)
    for (std::size_t i = 0; i < n; ++i) Q[j][i] = static_cast<double>(A[i * r + j]);
  // A dependent column leaves only rounding errors: those of the input, carried through n additions.
  const double tolerance = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * std::sqrt(static_cast<double>(n));
  for (std::size_t j = 0; j < r; ++j) {
    double* q = Q[j];
    const double before = std::sqrt(dot(q, q, n));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < j; ++i) {
        const double along = dot(Q[i], q, n);
        for (std::size_t l = 0; l < n; ++l) q[l] -= along * Q[i][l];
      }
    }
    const double after = std::sqrt(dot(q, q, n));
    const double factor = after > tolerance * before ? 1 / after : 0;
    for (std::size_t l = 0; l < n; ++l) q[l] *= factor;
  }
  for (std::size_t j = 0; j < r; ++j)
    for (std::size_t i = 0; i < n; ++i) A[i * r + j] = static_cast<T>(Q[j][i]);
}

template <class T>
void svd_small(const Exec& exec, const T* A, std::size_t m, std::size_t n, T* U, T* S, T* V) {
  Workspace::Frame frame(*exec.workspace);
  const bool tall = m >= n;
  const std::size_t rows = tall ? m : n, cols = tall ? n : m;
  const DoubleColumns W{frame.take<double>(rows * cols), rows, cols}, R{frame.take<double>(cols * cols), cols, cols};
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t i = 0; i < rows; ++i) W[j][i] = static_cast<double>(tall ? A[i * n + j] : A[j * n + i]);
  jacobi(W, R);
  double* sigma = frame.take<double>(cols);
  auto* order = frame.take<std::size_t>(cols);
  for (std::size_t j = 0; j < cols; ++j) sigma[j] = std::sqrt(dot(W[j], W[j], rows));
  std::iota(order, order + cols, std::size_t{0});
  // Insertion sort, descending: stable, and safe with NaN.
  for (std::size_t j = 1; j < cols; ++j)
    for (std::size_t i = j; i > 0 && sigma[order[i - 1]] < sigma[order[i]]; --i) std::swap(order[i - 1], order[i]);
  T *left = tall ? U : V, *right = tall ? V : U;
  for (std::size_t j = 0; j < cols; ++j) {
    const std::size_t source = order[j];
    const double factor = sigma[source] > 0 ? 1 / sigma[source] : 0;
    S[j] = static_cast<T>(sigma[source]);
    for (std::size_t i = 0; i < rows; ++i) left[i * cols + j] = static_cast<T>(W[source][i] * factor);
    for (std::size_t i = 0; i < cols; ++i) right[i * cols + j] = static_cast<T>(R[source][i]);
  }
}

void ridge_least_squares(const Exec&, Transpose transpose_a, std::size_t m, std::size_t n, std::size_t r, const double* A, const double* F,
                         double ridge, double* X) {
  const bool transposed = transpose_a == Transpose::yes;
  // Copies by columns: which of Eigen's products is taken, and so its rounding, depends on how the operands lie.
  const Eigen::MatrixXd factor = matrix(F, n, r);
  const Eigen::MatrixXd a = transposed ? Eigen::MatrixXd(matrix(A, n, m).transpose()) : Eigen::MatrixXd(matrix(A, m, n));
  Eigen::MatrixXd normal = factor.transpose() * factor;
  const double rho = ridge * normal.trace() / static_cast<double>(normal.rows());
  normal.diagonal().array() += rho;
  Matrix<double>(X, static_cast<Eigen::Index>(m), static_cast<Eigen::Index>(r)) = normal.ldlt().solve((a * factor).transpose()).transpose();
}

template <class T>
void hadamard_rows(const Exec&, T* x, std::size_t K, std::size_t n) {
  for (std::size_t k = 0; k < K; ++k, x += n) {
    for (std::size_t half = 1; half < n; half *= 2) {
      for (std::size_t block = 0; block < n; block += 2 * half) {
        T *low = x + block, *high = low + half;
        for (std::size_t j = 0; j < half; ++j) {
          const T a = low[j], b = high[j];
          low[j] = a + b;
          high[j] = a - b;
        }
      }
    }
  }
}

#define FL_INSTANTIATE(T)                                                                                                        \
  template void gemm<T>(const Exec&, Transpose, Transpose, std::size_t, std::size_t, std::size_t, T, const T*, const T*, T, T*); \
  template void orthogonalize<T>(const Exec&, T*, std::size_t, std::size_t);                                                     \
  template void svd_small<T>(const Exec&, const T*, std::size_t, std::size_t, T*, T*, T*);                                       \
  template void hadamard_rows<T>(const Exec&, T*, std::size_t, std::size_t);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cpu
