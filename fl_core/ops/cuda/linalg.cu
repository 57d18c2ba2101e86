#include <algorithm>
#include <bit>
#include <limits>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/linalg.cuh"

namespace fl::cuda {
namespace {

constexpr unsigned kSide = 16;  // a block computes kSide x kSide elements of C
static_assert(kSide * kSide == kBlockThreads);

// op(M)(row, col); `cols` are those of M as it lies.
template <class T>
struct Operand {
  const T* data;
  std::size_t cols;
  Transpose transpose;
  [[nodiscard]] __device__ double at(std::size_t row, std::size_t col) const {
    return static_cast<double>(transpose == Transpose::no ? data[row * cols + col] : data[col * cols + row]);
  }
};

template <class T>
__global__ void multiply(Operand<T> A, Operand<T> B, std::size_t m, std::size_t n, std::size_t k, T alpha, T beta, T* C) {
  __shared__ double a[kSide][kSide + 1], b[kSide][kSide + 1];
  const unsigned x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const std::size_t across = (n + kSide - 1) / kSide, pieces = across * ((m + kSide - 1) / kSide);
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t row = piece / across * kSide + y, col = piece % across * kSide + x;
    double sum = 0;
    for (std::size_t base = 0; base < k; base += kSide) {
      a[y][x] = row < m && base + x < k ? A.at(row, base + x) : 0.0;
      b[y][x] = base + y < k && col < n ? B.at(base + y, col) : 0.0;
      __syncthreads();
      const std::size_t depth = k - base < kSide ? k - base : kSide;
      for (std::size_t i = 0; i < depth; ++i) sum += a[y][i] * b[i][x];
      __syncthreads();
    }
    if (row >= m || col >= n) continue;
    const double product = static_cast<double>(alpha) * sum;
    T& c = C[row * n + col];
    c = static_cast<T>(beta == T(0) ? product : product + static_cast<double>(beta) * static_cast<double>(c));
  }
}

// ---- one block on columns in double, one after another: [cols][rows] ----

struct Columns {
  double* data;
  std::size_t rows, cols;
  [[nodiscard]] __device__ double* operator[](std::size_t j) const { return data + j * rows; }
};

// Threads sum strided parts in order, then a binary tree joins them. All threads take part and get the answer.
__device__ double block_dot(const double* x, const double* y, std::size_t n) {
  __shared__ double part[kBlockThreads];
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * y[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned width = kBlockThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    __syncthreads();
  }
  const double total = part[0];
  __syncthreads();
  return total;
}

template <class T>
__global__ void orthogonalize_block(T* A, Columns Q, double tolerance) {
  const std::size_t n = Q.rows, r = Q.cols;
  for (std::size_t i = threadIdx.x; i < n * r; i += blockDim.x) Q[i % r][i / r] = static_cast<double>(A[i]);
  __syncthreads();
  for (std::size_t j = 0; j < r; ++j) {
    double* q = Q[j];
    const double before = sqrt(block_dot(q, q, n));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < j; ++i) {
        const double along = block_dot(Q[i], q, n);
        for (std::size_t l = threadIdx.x; l < n; l += blockDim.x) q[l] -= along * Q[i][l];
        __syncthreads();
      }
    }
    const double after = sqrt(block_dot(q, q, n));
    const double factor = after > tolerance * before ? 1 / after : 0;
    for (std::size_t l = threadIdx.x; l < n; l += blockDim.x) q[l] *= factor;
    __syncthreads();
  }
  for (std::size_t i = threadIdx.x; i < n * r; i += blockDim.x) A[i] = static_cast<T>(Q[i % r][i / r]);
}

__device__ void rotate_columns(const Columns& M, std::size_t p, std::size_t q, double cosine, double sine) {
  double *x = M[p], *y = M[q];
  for (std::size_t i = threadIdx.x; i < M.rows; i += blockDim.x) {
    const double xi = x[i];
    x[i] = cosine * xi - sine * y[i];
    y[i] = sine * xi + cosine * y[i];
  }
}

// One Jacobi rotation of columns p and q of W and V; false when they are orthogonal already.
__device__ bool rotate(const Columns& W, const Columns& V, std::size_t p, std::size_t q) {
  const double a = block_dot(W[p], W[p], W.rows), b = block_dot(W[q], W[q], W.rows), c = block_dot(W[p], W[q], W.rows);
  if (!(fabs(c) > 1e-15 * sqrt(a) * sqrt(b))) return false;
  const double zeta = (b - a) / (2 * c);
  const double tangent = (zeta >= 0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  const double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
  rotate_columns(W, p, q, cosine, sine);
  rotate_columns(V, p, q, cosine, sine);
  __syncthreads();
  return true;
}

// W [tall] becomes U diag(S) in place, V gathers the rotations. Sweeps are bounded, so that NaN cannot hang.
__device__ void jacobi(const Columns& W, const Columns& V) {
  constexpr int kMaxSweeps = 60;
  for (std::size_t i = threadIdx.x; i < V.rows * V.cols; i += blockDim.x) V.data[i] = i / V.rows == i % V.rows ? 1 : 0;
  __syncthreads();
  bool rotated = true;
  for (int sweep = 0; sweep < kMaxSweeps && rotated; ++sweep) {
    rotated = false;
    for (std::size_t p = 0; p + 1 < W.cols; ++p)
      for (std::size_t q = p + 1; q < W.cols; ++q) rotated = rotate(W, V, p, q) || rotated;
  }
}

// Largest first; insertion sort: stable, and safe with NaN.
__device__ void sort_descending(const double* sigma, std::size_t count, std::size_t* order) {
  for (std::size_t j = 0; j < count; ++j) {
    order[j] = j;
    for (std::size_t i = j; i > 0 && sigma[order[i - 1]] < sigma[order[i]]; --i) {
      const std::size_t moved = order[i];
      order[i] = order[i - 1];
      order[i - 1] = moved;
    }
  }
}

// left [rows,cols] and right [cols,cols] are U and V of a tall A, V and U of a wide one.
template <class T>
__global__ void svd_block(const T* A, bool tall, Columns W, Columns R, double* sigma, std::size_t* order, T* left, T* S, T* right) {
  const std::size_t rows = W.rows, cols = W.cols;
  for (std::size_t i = threadIdx.x; i < rows * cols; i += blockDim.x)
    W.data[i] = static_cast<double>(tall ? A[i % rows * cols + i / rows] : A[i]);
  __syncthreads();
  jacobi(W, R);
  for (std::size_t j = 0; j < cols; ++j) {
    const double square = block_dot(W[j], W[j], rows);
    if (threadIdx.x == 0) sigma[j] = sqrt(square);
  }
  if (threadIdx.x == 0) sort_descending(sigma, cols, order);
  __syncthreads();
  for (std::size_t j = 0; j < cols; ++j) {
    const std::size_t source = order[j];
    const double factor = sigma[source] > 0 ? 1 / sigma[source] : 0;
    if (threadIdx.x == 0) S[j] = static_cast<T>(sigma[source]);
    for (std::size_t i = threadIdx.x; i < rows; i += blockDim.x) left[i * cols + j] = static_cast<T>(W[source][i] * factor);
    for (std::size_t i = threadIdx.x; i < cols; i += blockDim.x) right[i * cols + j] = static_cast<T>(R[source][i]);
  }
}

// ---- one block on the normal matrix N [r,r] of least squares ----

// N = L D L^T in place: D on the diagonal, L below it.
__global__ void factor_normal(double* N, std::size_t r, double ridge) {
  double trace = 0;
  for (std::size_t i = 0; i < r; ++i) trace += N[i * r + i];
  const double rho = ridge * trace / static_cast<double>(r);
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < r; i += blockDim.x) N[i * r + i] += rho;
  __syncthreads();
  for (std::size_t j = 0; j < r; ++j) {
    const std::size_t left = r - j - 1;
    for (std::size_t i = threadIdx.x; i < left * left; i += blockDim.x) {
      const std::size_t row = j + 1 + i / left, col = j + 1 + i % left;
      if (col <= row) N[row * r + col] -= N[row * r + j] * N[col * r + j] / N[j * r + j];
    }
    __syncthreads();
    for (std::size_t i = j + 1 + threadIdx.x; i < r; i += blockDim.x) N[i * r + j] /= N[j * r + j];
    __syncthreads();
  }
}

// x N = b for every row b of X [m,r], in place; one thread per row.
__global__ void solve_normal(const double* N, std::size_t r, double* X, std::size_t m) {
  for (std::size_t row = thread_index(); row < m; row += num_threads()) {
    double* x = X + row * r;
    for (std::size_t i = 0; i < r; ++i)
      for (std::size_t j = 0; j < i; ++j) x[i] -= N[i * r + j] * x[j];
    for (std::size_t i = 0; i < r; ++i) x[i] /= N[i * r + i];
    for (std::size_t i = r; i-- > 0;)
      for (std::size_t j = i + 1; j < r; ++j) x[i] -= N[j * r + i] * x[j];
  }
}

// Several stages of butterflies on what a block holds in shared memory: kHeldNumbers of x, as a matrix of `columns` neighbours in each row
// and rows that are `stride` apart. A butterfly joins two rows, so that a stage of distance d in the matrix is one of d / columns * stride
// in x. Where columns = stride = 1 the matrix is a stretch of x, which may hold several vectors, the last of them not whole.
constexpr std::size_t kHeldNumbers = 4096;
template <class T>
__global__ void butterflies(T* x, std::size_t total, std::size_t stride, std::size_t columns, std::size_t end) {
  __shared__ T held[kHeldNumbers];
  const std::size_t rows = kHeldNumbers / columns, across = stride / columns, pieces = (total + kHeldNumbers - 1) / kHeldNumbers;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    T* first = x + piece / across * rows * stride + piece % across * columns;
    const std::size_t left = total - piece * kHeldNumbers, count = left < kHeldNumbers ? left : kHeldNumbers;
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) held[i] = first[i / columns * stride + i % columns];
    __syncthreads();
    for (std::size_t distance = columns; distance < end; distance *= 2) {
      for (std::size_t i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const std::size_t low = i / distance * 2 * distance + i % distance;
        const T a = held[low], b = held[low + distance];
        held[low] = a + b;
        held[low + distance] = a - b;
      }
      __syncthreads();
    }
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) first[i / columns * stride + i % columns] = held[i];
    __syncthreads();  // before the next piece comes into the same memory
  }
}

}  // namespace

template <class T>
void gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha, const T* A,
          const T* B, T beta, T* C) {
  const Operand<T> a{A, transpose_a == Transpose::no ? k : m, transpose_a}, b{B, transpose_b == Transpose::no ? n : k, transpose_b};
  const std::size_t blocks = ((m + kSide - 1) / kSide) * ((n + kSide - 1) / kSide);
  Launch(exec, "gemm", blocks)(multiply<T>, a, b, m, n, k, alpha, beta, C);
}

template <class T>
void orthogonalize(const Exec& exec, T* A, std::size_t n, std::size_t r) {
  if (n == 0 || r == 0) return;
  Workspace::Frame frame(*exec.workspace);
  const double tolerance = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * sqrt(static_cast<double>(n));
  Launch(exec, "orthogonalize", 1)(orthogonalize_block<T>, A, Columns{frame.take<double>(n * r), n, r}, tolerance);
}

template <class T>
void svd_small(const Exec& exec, const T* A, std::size_t m, std::size_t n, T* U, T* S, T* V) {
  if (m == 0 || n == 0) return;
  Workspace::Frame frame(*exec.workspace);
  const bool tall = m >= n;
  const std::size_t rows = tall ? m : n, cols = tall ? n : m;
  const Columns W{frame.take<double>(rows * cols), rows, cols}, R{frame.take<double>(cols * cols), cols, cols};
  Launch(exec, "svd_small", 1)(svd_block<T>, A, tall, W, R, frame.take<double>(cols), frame.take<std::size_t>(cols), tall ? U : V, S,
                               tall ? V : U);
}

void ridge_least_squares(const Exec& exec, Transpose transpose_a, std::size_t m, std::size_t n, std::size_t r, const double* A,
                         const double* F, double ridge, double* X) {
  Workspace::Frame frame(*exec.workspace);
  auto* N = frame.take<double>(r * r);
  gemm(exec, Transpose::yes, Transpose::no, r, r, n, 1.0, F, F, 0.0, N);
  gemm(exec, transpose_a, Transpose::no, m, r, n, 1.0, A, F, 0.0, X);
  Launch(exec, "factor_normal", 1)(factor_normal, N, r, ridge);
  Launch(exec, "solve_normal", blocks_for(m))(solve_normal, N, r, X, m);
}

template <class T>
void hadamard_rows(const Exec& exec, T* x, std::size_t K, std::size_t n) {
  if (K == 0 || n < 2) return;
  const std::size_t total = K * n, blocks = (total + kHeldNumbers - 1) / kHeldNumbers;
  const auto pass = [&](std::size_t stride, std::size_t columns, std::size_t end) {
    Launch(exec, "hadamard_rows", blocks)(butterflies<T>, x, total, stride, columns, end);
  };
  pass(1, 1, std::min(n, kHeldNumbers));
  // As few passes over the rest as there can be with rows of 8 numbers at the least.
  constexpr int kMostStages = 9;
  static_assert(kHeldNumbers >> kMostStages == 8);
  std::size_t stride = kHeldNumbers;
  for (int left = std::bit_width(n) - std::bit_width(kHeldNumbers); left > 0;) {
    const int passes = (left + kMostStages - 1) / kMostStages, stages = (left + passes - 1) / passes;
    pass(stride, kHeldNumbers >> stages, kHeldNumbers);
    stride <<= stages;
    left -= stages;
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

}  // namespace fl::cuda
