// One matrix product for each of many clients, of operands that need not lie in memory as matrices:
//
//   C_k(i, j) = sum over e < d of A_k(i, e) B_k(e, j)          i < m, j < n, k < clients
//
// An operand says how it is read: `open(k)` gives what `at(i, e)` (of B: at(e, j)) is asked of, `kRunsInward` whether neighbours in memory
// are neighbours in e. The product is handed to `store(k, i, j, value)`. A block of threads computes a tile of one client's C from tiles of
// A and B in shared memory; the next ones are on their way into registers meanwhile. Sums are in ascending order of e, and every kPart of
// them are added up by themselves, so that long ones lose little: the same bits in every run, whatever the operands' layout.
//
// Rounded to TF32 or BF16 (MatrixProducts) the tiles are multiplied by tensor cores, whose sums are float and in ascending order of tiles.
#pragma once

#include <cuda_bf16.h>
#include <math.h>
#include <mma.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "clients/cuda/gradient_store.cuh"
#include "clients/device_room.hpp"
#include "fl_core/cuda/check.cuh"
#include "fl_core/matrix_products.hpp"

namespace fl::cuda {

// Quotients by a number that is known when a kernel starts, without a division: n / divisor = (n multiplier / 2^32 + n) >> shift for n
// below 2^31. T. Granlund, P. Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  std::uint32_t divisor = 1, multiplier = 0, shift = 0;
  Divisor() = default;
  explicit Divisor(std::size_t by) : divisor(static_cast<std::uint32_t>(by)) {
    while ((std::uint64_t{1} << shift) < by) ++shift;
    multiplier = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - by) / by + 1);
  }
  [[nodiscard]] FL_HD std::uint32_t quotient(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32);
    return static_cast<std::uint32_t>((std::uint64_t{high} + n) >> shift);
  }
  // n = quotient * divisor + what is returned; n becomes the quotient.
  FL_HD std::uint32_t split(std::uint32_t& n) const {
    const std::uint32_t whole = n, q = quotient(n);
    n = q;
    return whole - q * divisor;
  }
};

namespace tiles {

constexpr unsigned kDepth = 16, kThreads = 128, kPart = kSumPart;
constexpr unsigned kAcross = 16, kDown = kThreads / kAcross;  // threads of a block

// A tile of kRows x kCols; each thread has kRows / kDown rows and kCols / kAcross columns that lie side by side.
template <class T, unsigned kRows, unsigned kCols, class A, class B, class Store>
__global__ void __launch_bounds__(kThreads)
    multiply(std::size_t clients, std::uint32_t m, std::uint32_t n, std::uint32_t d, A a_operand, B b_operand, Store store) {
  constexpr unsigned kOwnRows = kRows / kDown, kOwnCols = kCols / kAcross, kPad = 16 / sizeof(T);
  constexpr unsigned kLoadsA = kRows * kDepth / kThreads, kLoadsB = kCols * kDepth / kThreads;
  __shared__ __align__(16) T a[kDepth][kRows + kPad], b[kDepth][kCols + kPad];
  const std::uint32_t across = (n + kCols - 1) / kCols, down = (m + kRows - 1) / kRows;
  const std::size_t per_client = std::size_t{across} * down, pieces = clients * per_client;
  const unsigned x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / per_client;
    const auto tile = static_cast<std::uint32_t>(piece - k * per_client);
    const std::uint32_t row = tile / across * kRows, col = tile % across * kCols;
    const auto a_k = a_operand.open(k);
    const auto b_k = b_operand.open(k);
    T next_a[kLoadsA], next_b[kLoadsB];
    const auto row_of = [](unsigned i) { return A::kRunsInward ? i / kDepth : i % kRows; };
    const auto deep_of_a = [](unsigned i) { return A::kRunsInward ? i % kDepth : i / kRows; };
    const auto col_of = [](unsigned i) { return B::kRunsInward ? i / kDepth : i % kCols; };
    const auto deep_of_b = [](unsigned i) { return B::kRunsInward ? i % kDepth : i / kCols; };
    const auto load = [&](std::uint32_t base) {
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsA; ++i) {
        const unsigned at = threadIdx.x + i * kThreads;
        const std::uint32_t r = row + row_of(at), e = base + deep_of_a(at);
        next_a[i] = r < m && e < d ? a_k.at(r, e) : T(0);
      }
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsB; ++i) {
        const unsigned at = threadIdx.x + i * kThreads;
        const std::uint32_t c = col + col_of(at), e = base + deep_of_b(at);
        next_b[i] = c < n && e < d ? b_k.at(e, c) : T(0);
      }
    };
    T total[kOwnRows][kOwnCols] = {}, sum[kOwnRows][kOwnCols] = {};
    load(0);
    for (std::uint32_t base = 0; base < d; base += kDepth) {
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsA; ++i) a[deep_of_a(threadIdx.x + i * kThreads)][row_of(threadIdx.x + i * kThreads)] = next_a[i];
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsB; ++i) b[deep_of_b(threadIdx.x + i * kThreads)][col_of(threadIdx.x + i * kThreads)] = next_b[i];
      __syncthreads();
      if (base + kDepth < d) load(base + kDepth);
      FL_UNROLL
      for (unsigned e = 0; e < kDepth; ++e) {
        FL_UNROLL
        for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
        for (unsigned j = 0; j < kOwnCols; ++j) sum[i][j] = fma(a[e][y * kOwnRows + i], b[e][x * kOwnCols + j], sum[i][j]);
      }
      __syncthreads();
      if ((base + kDepth) % kPart != 0) continue;
      FL_UNROLL
      for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
      for (unsigned j = 0; j < kOwnCols; ++j) {
        total[i][j] += sum[i][j];
        sum[i][j] = T(0);
      }
    }
    FL_UNROLL
    for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
    for (unsigned j = 0; j < kOwnCols; ++j) {
      const std::uint32_t r = row + y * kOwnRows + i, c = col + x * kOwnCols + j;
      if (r < m && c < n) store(k, r, c, total[i][j] + sum[i][j]);
    }
  }
}

// ---- on tensor cores --------------------------------------------------------------------------------------------------------------

// How operands lie in the block's memory and are multiplied; sums are float.
struct Tf32 {
  using Stored = float;
  using Number = nvcuda::wmma::precision::tf32;
  static constexpr int kDeep = 8;  // of a tile that one instruction multiplies
  [[nodiscard]] static __device__ Stored rounded(float x) { return nvcuda::wmma::__float_to_tf32(x); }
};
struct Bf16 {
  using Stored = __nv_bfloat16;
  using Number = __nv_bfloat16;
  static constexpr int kDeep = 16;
  [[nodiscard]] static __device__ Stored rounded(float x) { return __float2bfloat16(x); }
};

// A tile of kRows x kTensorCols; a warp has kWarpTile x kWarpTile of it.
constexpr unsigned kTensorCols = 128, kWarpTile = 32, kFragment = 16;
template <unsigned kRows>
inline constexpr unsigned kTensorThreads = kRows* kTensorCols / (kWarpTile * kWarpTile) * kWarp;

template <class How, unsigned kRows, class A, class B, class Store>
__global__ void __launch_bounds__(kTensorThreads<kRows>) multiply_on_tensor_cores(std::size_t clients, std::uint32_t m, std::uint32_t n,
                                                                                  std::uint32_t d, A a_operand, B b_operand, Store store) {
  namespace wmma = nvcuda::wmma;
  using Stored = typename How::Stored;
  constexpr unsigned kOwnThreads = kTensorThreads<kRows>, kPad = 32 / sizeof(Stored), kWarpsAcross = kTensorCols / kWarpTile;
  constexpr unsigned kLoadsA = kRows * kDepth / kOwnThreads, kLoadsB = kTensorCols * kDepth / kOwnThreads;
  constexpr unsigned kParts = kWarpTile / kFragment, kResultWidth = kFragment + 4;
  __shared__ __align__(32) Stored a[kDepth][kRows + kPad], b[kDepth][kTensorCols + kPad];
  __shared__ __align__(32) float result[kOwnThreads / kWarp][kFragment * kResultWidth];
  const std::uint32_t across = (n + kTensorCols - 1) / kTensorCols, down = (m + kRows - 1) / kRows;
  const std::size_t per_client = std::size_t{across} * down, pieces = clients * per_client;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const unsigned own_row = warp / kWarpsAcross * kWarpTile, own_col = warp % kWarpsAcross * kWarpTile;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / per_client;
    const auto tile = static_cast<std::uint32_t>(piece - k * per_client);
    const std::uint32_t row = tile / across * kRows, col = tile % across * kTensorCols;
    const auto a_k = a_operand.open(k);
    const auto b_k = b_operand.open(k);
    float next_a[kLoadsA], next_b[kLoadsB];
    const auto row_of = [](unsigned i) { return A::kRunsInward ? i / kDepth : i % kRows; };
    const auto deep_of_a = [](unsigned i) { return A::kRunsInward ? i % kDepth : i / kRows; };
    const auto col_of = [](unsigned i) { return B::kRunsInward ? i / kDepth : i % kTensorCols; };
    const auto deep_of_b = [](unsigned i) { return B::kRunsInward ? i % kDepth : i / kTensorCols; };
    const auto load = [&](std::uint32_t base) {
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsA; ++i) {
        const unsigned at = threadIdx.x + i * kOwnThreads;
        const std::uint32_t r = row + row_of(at), e = base + deep_of_a(at);
        next_a[i] = r < m && e < d ? a_k.at(r, e) : 0.0f;
      }
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsB; ++i) {
        const unsigned at = threadIdx.x + i * kOwnThreads;
        const std::uint32_t c = col + col_of(at), e = base + deep_of_b(at);
        next_b[i] = c < n && e < d ? b_k.at(e, c) : 0.0f;
      }
    };
    using Sum = wmma::fragment<wmma::accumulator, kFragment, kFragment, How::kDeep, float>;
    Sum sum[kParts][kParts], total[kParts][kParts];
    FL_UNROLL
    for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
    for (unsigned j = 0; j < kParts; ++j) {
      wmma::fill_fragment(sum[i][j], 0.0f);
      wmma::fill_fragment(total[i][j], 0.0f);
    }
    const auto add_up = [&](unsigned i, unsigned j) {
      FL_UNROLL
      for (int t = 0; t < Sum::num_elements; ++t) total[i][j].x[t] += sum[i][j].x[t];
    };
    load(0);
    for (std::uint32_t base = 0; base < d; base += kDepth) {
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsA; ++i) {
        const unsigned at = threadIdx.x + i * kOwnThreads;
        a[deep_of_a(at)][row_of(at)] = How::rounded(next_a[i]);
      }
      FL_UNROLL
      for (unsigned i = 0; i < kLoadsB; ++i) {
        const unsigned at = threadIdx.x + i * kOwnThreads;
        b[deep_of_b(at)][col_of(at)] = How::rounded(next_b[i]);
      }
      __syncthreads();
      if (base + kDepth < d) load(base + kDepth);
      FL_UNROLL
      for (unsigned e = 0; e < kDepth; e += How::kDeep) {
        wmma::fragment<wmma::matrix_a, kFragment, kFragment, How::kDeep, typename How::Number, wmma::col_major> left[kParts];
        wmma::fragment<wmma::matrix_b, kFragment, kFragment, How::kDeep, typename How::Number, wmma::row_major> right[kParts];
        FL_UNROLL
        for (unsigned i = 0; i < kParts; ++i) wmma::load_matrix_sync(left[i], &a[e][own_row + i * kFragment], kRows + kPad);
        FL_UNROLL
        for (unsigned j = 0; j < kParts; ++j) wmma::load_matrix_sync(right[j], &b[e][own_col + j * kFragment], kTensorCols + kPad);
        FL_UNROLL
        for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
        for (unsigned j = 0; j < kParts; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
      }
      __syncthreads();
      if ((base + kDepth) % kPart != 0) continue;
      FL_UNROLL
      for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
      for (unsigned j = 0; j < kParts; ++j) {
        add_up(i, j);
        wmma::fill_fragment(sum[i][j], 0.0f);
      }
    }
    FL_UNROLL
    for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
    for (unsigned j = 0; j < kParts; ++j) {
      add_up(i, j);
      wmma::store_matrix_sync(result[warp], total[i][j], kResultWidth, wmma::mem_row_major);
      __syncwarp();
      for (unsigned at = lane; at < kFragment * kFragment; at += kWarp) {
        const unsigned within_row = at / kFragment, within_col = at % kFragment;
        const std::uint32_t r = row + own_row + i * kFragment + within_row, c = col + own_col + j * kFragment + within_col;
        if (r < m && c < n) store(k, r, c, result[warp][within_row * kResultWidth + within_col]);
      }
      __syncwarp();
    }
  }
}

template <class How, class A, class B, class Store>
void multiply_rounded(const Exec& exec, const char* name, std::size_t clients, std::uint32_t m, std::uint32_t n, std::uint32_t d,
                      const A& a, const B& b, const Store& store) {
  constexpr unsigned kFewRows = 32, kRows = 64;
  const auto blocks = [&](unsigned rows) { return clients * ((n + kTensorCols - 1) / kTensorCols) * ((m + rows - 1) / rows); };
  if (m <= kFewRows)
    Launch(exec, name, blocks(kFewRows), kTensorThreads<kFewRows>)(multiply_on_tensor_cores<How, kFewRows, A, B, Store>, clients, m, n, d,
                                                                   a, b, store);
  else
    Launch(exec, name, blocks(kRows), kTensorThreads<kRows>)(multiply_on_tensor_cores<How, kRows, A, B, Store>, clients, m, n, d, a, b,
                                                             store);
}

}  // namespace tiles

// ---- operands that are matrices ------------------------------------------------------------------------------------------------

// Row-major of `width` columns, each client's `stride` after the one before (0 = shared); read as it is or transposed.
template <class T, bool kTransposed>
struct MatrixView {
  const T* data;
  std::uint32_t width;
  [[nodiscard]] __device__ T at(std::uint32_t i, std::uint32_t j) const {
    return kTransposed ? data[std::size_t{j} * width + i] : data[std::size_t{i} * width + j];
  }
};
template <class T, bool kTransposed, bool kInward>
struct Matrix {
  static constexpr bool kRunsInward = kInward;
  const T* data;
  std::size_t stride, width;
  [[nodiscard]] __device__ MatrixView<T, kTransposed> open(std::size_t k) const {
    return {data + k * stride, static_cast<std::uint32_t>(width)};
  }
};
// A (i, e) from [m,d] or, transposed, [d,m]; B (e, j) from [d,n] or, transposed, [n,d].
template <class T, bool kTransposed = false>
using LeftMatrix = Matrix<T, kTransposed, !kTransposed>;
template <class T, bool kTransposed = false>
using RightMatrix = Matrix<T, kTransposed, kTransposed>;

// Into [m,n] of row length `width`, or added to it.
template <class T>
struct StoreMatrix {
  T* data;
  std::size_t stride, width;
  bool adds = false;
  const T* bias = nullptr;  // [n] of client k at bias + k * bias_stride, added to every row
  std::size_t bias_stride = 0;
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value) const {
    T& to = data[k * stride + i * width + j];
    if (bias != nullptr) value += bias[k * bias_stride + j];
    to = adds ? to + value : value;
  }
};

// Into the gradient by weights [m,n].
template <class T>
struct StoreGradient {
  GradientStore<T> gradient;
  std::size_t width;
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value) const { gradient(k, i * width + j, value); }
};

// ---- the product ----------------------------------------------------------------------------------------------------------------

// Of the inner dimension, part p of `parts`: client k of the product is part k % parts of client k / parts.
template <class View>
struct PartOfView {
  View of;
  std::uint32_t from, d;
};
template <class View>
struct PartOfLeft : PartOfView<View> {
  template <class I>
  [[nodiscard]] __device__ auto at(I i, std::uint32_t e) const {
    using T = decltype(this->of.at(i, e));
    return this->from + e < this->d ? this->of.at(i, this->from + e) : T(0);
  }
};
template <class View>
struct PartOfRight : PartOfView<View> {
  template <class J>
  [[nodiscard]] __device__ auto at(std::uint32_t e, J j) const {
    using T = decltype(this->of.at(e, j));
    return this->from + e < this->d ? this->of.at(this->from + e, j) : T(0);
  }
};
template <template <class> class PartOf, class Operand>
struct Parts {
  static constexpr bool kRunsInward = Operand::kRunsInward;
  Operand of;
  std::uint32_t parts, d;
  [[nodiscard]] __device__ auto open(std::size_t k) const {
    const std::size_t client = k / parts;
    const auto part = static_cast<std::uint32_t>(k - client * parts);
    return PartOf<decltype(of.open(client))>{{of.open(client), part * tiles::kPart, d}};
  }
};

// store(k, i, j, the sum of partial [clients,parts,m,n] over parts, in ascending order).
template <class T, class Store>
__global__ void add_parts(std::size_t clients, std::uint32_t m, std::uint32_t n, std::uint32_t parts, const T* partial, Store store) {
  const std::size_t per_client = std::size_t{m} * n, blocks = (per_client + blockDim.x - 1) / blockDim.x;
  for (std::size_t block = blockIdx.x; block < clients * blocks; block += gridDim.x) {
    const std::size_t k = block / blocks, at = (block - k * blocks) * blockDim.x + threadIdx.x;
    if (at >= per_client) continue;
    T total = T(0);
    for (std::uint32_t part = 0; part < parts; ++part) total += partial[(k * parts + part) * per_client + at];
    store(k, static_cast<std::uint32_t>(at / n), static_cast<std::uint32_t>(at % n), total);
  }
}

// m, n and d below 2^31. `products` other than full are for float alone.
template <class T, class A, class B, class Store>
void whole_product(const Exec& exec, MatrixProducts products, const char* name, std::size_t clients, std::size_t m, std::size_t n,
                   std::size_t d, const A& a, const B& b, const Store& store) {
  constexpr unsigned kCols = 64, kLeastRows = 16, kFewRows = 32, kRows = 64;
  const auto blocks = [&](unsigned rows) { return clients * ((n + kCols - 1) / kCols) * ((m + rows - 1) / rows); };
  const auto M = static_cast<std::uint32_t>(m), N = static_cast<std::uint32_t>(n), D = static_cast<std::uint32_t>(d);
  if constexpr (std::is_same_v<T, float>) {
    if (products == MatrixProducts::tf32) return tiles::multiply_rounded<tiles::Tf32>(exec, name, clients, M, N, D, a, b, store);
    if (products == MatrixProducts::bf16) return tiles::multiply_rounded<tiles::Bf16>(exec, name, clients, M, N, D, a, b, store);
    if (m <= kLeastRows) {
      Launch(exec, name, blocks(kLeastRows), tiles::kThreads)(tiles::multiply<T, kLeastRows, kCols, A, B, Store>, clients, M, N, D, a, b,
                                                              store);
      return;
    }
  }
  if (m <= kFewRows)
    Launch(exec, name, blocks(kFewRows), tiles::kThreads)(tiles::multiply<T, kFewRows, kCols, A, B, Store>, clients, M, N, D, a, b, store);
  else
    Launch(exec, name, blocks(kRows), tiles::kThreads)(tiles::multiply<T, kRows, kCols, A, B, Store>, clients, M, N, D, a, b, store);
}

// The same product of the same bits; where there are few tiles of long sums, parts of these are computed side by side.
template <class T, class A, class B, class Store>
void tiled_product(const Exec& exec, MatrixProducts products, const char* name, std::size_t clients, std::size_t m, std::size_t n,
                   std::size_t d, const A& a, const B& b, const Store& store) {
  constexpr std::size_t kTile = 64 * 64, kFewTiles = 256;
  const std::size_t parts = (d + tiles::kPart - 1) / tiles::kPart, entries = clients * m * n;
  const bool has_few_tiles = clients * ((m * n + kTile - 1) / kTile) < kFewTiles;
  if (parts < 2 || !has_few_tiles || entries * parts * sizeof(T) > kMostPartialBytes) {
    whole_product<T>(exec, products, name, clients, m, n, d, a, b, store);
    return;
  }
  Workspace::Frame frame(*exec.workspace);
  T* partial = frame.take<T>(entries * parts);
  const auto P = static_cast<std::uint32_t>(parts), D = static_cast<std::uint32_t>(d);
  whole_product<T>(exec, products, name, clients * parts, m, n, tiles::kPart, Parts<PartOfLeft, A>{a, P, D}, Parts<PartOfRight, B>{b, P, D},
                   StoreMatrix<T>{partial, m * n, n});
  Launch(exec, "add_parts", clients * blocks_for(m * n))(add_parts<T, Store>, clients, static_cast<std::uint32_t>(m),
                                                         static_cast<std::uint32_t>(n), P, partial, store);
}

// ---- operands that are laid out as matrices first ---------------------------------------------------------------------------------

// to [clients,d,n] = B of clients first .. first+clients-1.
template <class T, class B>
__global__ void lay_out(std::size_t first, std::size_t clients, std::uint32_t d, std::uint32_t n, Divisor width, B operand, T* to) {
  const std::size_t per_client = std::size_t{d} * n, blocks = (per_client + blockDim.x - 1) / blockDim.x;
  for (std::size_t block = blockIdx.x; block < clients * blocks; block += gridDim.x) {
    const std::size_t k = block / blocks, at = (block - k * blocks) * blockDim.x + threadIdx.x;
    if (at >= per_client) continue;
    auto e = static_cast<std::uint32_t>(at);
    const std::uint32_t j = width.split(e);
    to[k * per_client + at] = operand.open(first + k).at(e, j);
  }
}

// An operand or a store of clients `first` and on.
template <class Operand>
struct FromClient {
  static constexpr bool kRunsInward = Operand::kRunsInward;
  std::size_t first;
  Operand of;
  [[nodiscard]] __device__ auto open(std::size_t k) const { return of.open(first + k); }
};
template <class Store>
struct StoreFromClient {
  std::size_t first;
  Store of;
  template <class T>
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value) const {
    of(first + k, i, j, value);
  }
};

// The same product, of the same bits, with B written to memory as a matrix before: entries that many tiles read are found once.
template <class T, class A, class B, class Store>
void laid_out_product(const Exec& exec, MatrixProducts products, const char* name, std::size_t clients, std::size_t m, std::size_t n,
                      std::size_t d, const A& a, const B& b, const Store& store) {
  const std::size_t most = std::max<std::size_t>(1, std::min(clients, kMostLaidOutBytes / (n * d * sizeof(T))));
  Workspace::Frame frame(*exec.workspace);
  T* matrix = frame.take<T>(most * n * d);
  for (std::size_t first = 0; first < clients; first += most) {
    const std::size_t here = std::min(most, clients - first);
    Launch(exec, "lay_out", here * blocks_for(n * d))(lay_out<T, B>, first, here, static_cast<std::uint32_t>(d),
                                                      static_cast<std::uint32_t>(n), Divisor(n), b, matrix);
    tiled_product<T>(exec, products, name, here, m, n, d, FromClient<A>{first, a}, RightMatrix<T>{matrix, n * d, n},
                     StoreFromClient<Store>{first, store});
  }
}

}  // namespace fl::cuda
