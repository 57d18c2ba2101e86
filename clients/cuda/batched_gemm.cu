#include <math.h>

#include "clients/cuda/batched_gemm.cuh"
#include "fl_core/cuda/check.cuh"

namespace fl::cuda {
namespace {

// A block computes kRows x kCols of C with 8 x 16 threads, each 4 x 4; kDepth of the inner dimension at a time.
constexpr unsigned kRows = 32, kCols = 64, kDepth = 16, kOwn = 4;
constexpr unsigned kThreadsAcross = kCols / kOwn, kGemmThreads = kThreadsAcross * (kRows / kOwn);

template <class T>
__global__ void __launch_bounds__(kGemmThreads) multiply_batched(std::size_t clients, std::size_t m, std::size_t n, std::size_t d, T alpha,
                                                                 Matrices<const T> A, Matrices<const T> B, T beta, Matrices<T> C) {
  __shared__ T a[kDepth][kRows + 1];  // transposed, so that a thread's rows lie side by side
  __shared__ T b[kDepth][kCols + 1];
  const std::size_t across = (n + kCols - 1) / kCols, down = (m + kRows - 1) / kRows, pieces = clients * across * down;
  const unsigned x = threadIdx.x % kThreadsAcross, y = threadIdx.x / kThreadsAcross;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / (across * down), row = piece / across % down * kRows, col = piece % across * kCols;
    const T *Ak = A.data + k * A.stride, *Bk = B.data + k * B.stride;
    T sum[kOwn][kOwn] = {};
    for (std::size_t base = 0; base < d; base += kDepth) {
      // Neighbouring threads read neighbouring numbers, whichever way a matrix lies.
      for (unsigned i = threadIdx.x; i < kRows * kDepth; i += kGemmThreads) {
        const bool along = A.transpose == Transpose::no;
        const unsigned r = along ? i / kDepth : i % kRows, e = along ? i % kDepth : i / kRows;
        const bool inside = row + r < m && base + e < d;
        a[e][r] = !inside ? T(0) : along ? Ak[(row + r) * d + base + e] : Ak[(base + e) * m + row + r];
      }
      for (unsigned i = threadIdx.x; i < kCols * kDepth; i += kGemmThreads) {
        const bool along = B.transpose == Transpose::no;
        const unsigned c = along ? i % kCols : i / kDepth, e = along ? i / kCols : i % kDepth;
        const bool inside = col + c < n && base + e < d;
        b[e][c] = !inside ? T(0) : along ? Bk[(base + e) * n + col + c] : Bk[(col + c) * d + base + e];
      }
      __syncthreads();
      const unsigned deep = d - base < kDepth ? static_cast<unsigned>(d - base) : kDepth;
      for (unsigned e = 0; e < deep; ++e) {
        T left[kOwn], right[kOwn];
        FL_UNROLL
        for (unsigned i = 0; i < kOwn; ++i) left[i] = a[e][y * kOwn + i];
        FL_UNROLL
        for (unsigned j = 0; j < kOwn; ++j) right[j] = b[e][x + j * kThreadsAcross];
        FL_UNROLL
        for (unsigned i = 0; i < kOwn; ++i) FL_UNROLL
        for (unsigned j = 0; j < kOwn; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
      }
      __syncthreads();
    }
    T* Ck = C.data + k * C.stride;
    FL_UNROLL
    for (unsigned i = 0; i < kOwn; ++i) FL_UNROLL
    for (unsigned j = 0; j < kOwn; ++j) {
      const std::size_t r = row + y * kOwn + i, c = col + x + j * kThreadsAcross;
      if (r >= m || c >= n) continue;
      T& to = Ck[r * n + c];
      to = beta == T(0) ? alpha * sum[i][j] : fma(alpha, sum[i][j], beta * to);
    }
  }
}

}  // namespace

template <class T>
void batched_gemm(const Exec& exec, std::size_t clients, std::size_t m, std::size_t n, std::size_t d, T alpha, Matrices<const T> A,
                  Matrices<const T> B, T beta, Matrices<T> C) {
  const std::size_t blocks = clients * ((n + kCols - 1) / kCols) * ((m + kRows - 1) / kRows);
  Launch(exec, "batched_gemm", blocks, kGemmThreads)(multiply_batched<T>, clients, m, n, d, alpha, A, B, beta, C);
}

#define FL_INSTANTIATE(T)                                                                                                                 \
  template void batched_gemm<T>(const Exec&, std::size_t, std::size_t, std::size_t, std::size_t, T, Matrices<const T>, Matrices<const T>, \
                                T, Matrices<T>);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
