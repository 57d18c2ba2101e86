// One matrix product for each of many clients, for operands that need not lie in memory as matrices (operands.cuh):
//
//   C_k(i, j) = sum over e < d of A_k(i, e) B_k(e, j)          i < m, j < n, k < clients
//
// Each entry of the product is passed to `store(k, i, j, value)`. Sums are in ascending order of e. Every kSumPart terms are summed
// separately, which limits the rounding error of long sums. The bits are the same in every run, whatever the operands' layout. For TF32 or
// BF16 (MatrixProducts), tensor cores multiply the tiles.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "clients/cuda/operands.cuh"
#include "clients/cuda/tensor_tiles.cuh"
#include "clients/cuda/tiles.cuh"
#include "clients/learning/device_room.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/matrix_products.hpp"

namespace fl::cuda {

// Gives the store the sums of partial [clients,parts,m,n] over parts, in ascending order.
template <class T, class Store>
__global__ void add_parts(std::size_t clients, std::uint32_t m, std::uint32_t n, std::uint32_t parts, const T* partial, Store store) {
  const std::size_t per_client = std::size_t{m} * n, blocks = (per_client + blockDim.x - 1) / blockDim.x;
  for (std::size_t block = blockIdx.x; block < clients * blocks; block += gridDim.x) {
    const std::size_t k = block / blocks, at = (block - k * blocks) * blockDim.x + threadIdx.x;
    if (at >= per_client) continue;
    T total = partial[k * parts * per_client + at];
    for (std::uint32_t part = 1; part < parts; ++part) total += partial[(k * parts + part) * per_client + at];
    const auto i = static_cast<std::uint32_t>(at / n), j = static_cast<std::uint32_t>(at % n);
    const typename Store::Client to = store.open(k);
    to(i, j, total, to.before(i, j));
  }
}

// The destination of a tile kernel's sums: complete sums go to the store, partial sums go to memory [clients,parts,m,n] until they are
// added up. One kernel serves both cases, because it is compiled for every product of every layer.
template <class T, class Store>
struct StoreTile {
  Store whole;
  T* partial = nullptr;
  std::uint32_t m = 0, n = 0;
  using Before = typename Store::Before;
  struct Client {
    typename Store::Client whole;
    T* partial;
    std::uint32_t n;
    [[nodiscard]] __device__ Before before(std::uint32_t i, std::uint32_t j) const {
      return partial != nullptr ? Before() : whole.before(i, j);
    }
    __device__ void operator()(std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
      if (partial != nullptr)
        partial[i * n + j] = value;
      else
        whole(i, j, value, before);
    }
  };
  [[nodiscard]] __device__ Client open(std::size_t k) const {
    if (partial != nullptr) return {whole.open(0), partial + k * m * n, n};
    return {whole.open(k), nullptr, n};
  }
};

// Requires m, n and d below 2^31. `products` other than full are for float alone.
template <class T, class A, class B, class Store>
void multiply_tiles(const Exec& exec, MatrixProducts products, const char* name, const tiles::ProductShape& shape, const A& a, const B& b,
                    const Store& store) {
  if constexpr (std::is_same_v<T, float>) {
    if (products == MatrixProducts::tf32) return tiles::multiply_rounded<tiles::Tf32>(exec, name, shape, a, b, store);
    if (products == MatrixProducts::bf16) return tiles::multiply_rounded<tiles::Bf16>(exec, name, shape, a, b, store);
  }
  tiles::multiply_in_full<T>(exec, name, shape, a, b, store);
}

// Computes the product. If there are few tiles of long sums, parts of the sums are computed in parallel, with the same bits.
template <class T, class A, class B, class Store>
void tiled_product(const Exec& exec, MatrixProducts products, const char* name, std::size_t clients, std::size_t m, std::size_t n,
                   std::size_t d, const A& a, const B& b, const Store& store) {
  constexpr std::size_t kTile = 64 * 64, kFewTiles = 256;
  tiles::ProductShape shape{clients, static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(d)};
  const std::size_t parts = (d + tiles::kPart - 1) / tiles::kPart, entries = clients * m * n;
  const bool has_few_tiles = clients * ((m * n + kTile - 1) / kTile) < kFewTiles;
  if (parts < 2 || !has_few_tiles || entries * parts * sizeof(T) > kMostPartialBytes) {
    multiply_tiles<T>(exec, products, name, shape, a, b, StoreTile<T, Store>{store});
    return;
  }
  Workspace::Frame frame(*exec.workspace);
  T* partial = frame.take<T>(entries * parts);
  shape.parts = static_cast<std::uint32_t>(parts);
  multiply_tiles<T>(exec, products, name, shape, a, b, StoreTile<T, Store>{store, partial, shape.m, shape.n});
  Launch(exec, "add_parts", clients * blocks_for(m * n))(add_parts<T, Store>, clients, shape.m, shape.n, shape.parts, partial, store);
}

// ---- operands that are first written as matrices ----------------------------------------------------------------------------------

// The division of a matrix [d,n] among blocks. A block takes `columns` of it, a power of two, in rows that neighbour each other; a thread
// takes one column and every (kBlockThreads / columns)-th of the rows.
struct LaidOut {
  static constexpr std::uint32_t kRowsOfThread = 16, kLeastColumns = 16;
  static constexpr std::uint32_t kMostRows = kRowsOfThread * kBlockThreads / kLeastColumns;
  std::uint32_t d, n, columns, log_columns, rows, across, down;
  LaidOut(std::size_t d_, std::size_t n_) : d(static_cast<std::uint32_t>(d_)), n(static_cast<std::uint32_t>(n_)) {
    columns = std::clamp<std::uint32_t>(std::bit_ceil(n), kLeastColumns, kBlockThreads);
    log_columns = static_cast<std::uint32_t>(std::bit_width(columns) - 1);
    rows = kRowsOfThread * kBlockThreads / columns;
    across = (n + columns - 1) / columns;
    down = (d + rows - 1) / rows;
  }
};

// Writes to [clients,d,n] = B of clients first .. first+clients-1. What a view needs to know of a row is computed once for the block, and
// of a column once for the thread.
template <class T, class B>
__global__ void lay_out(std::size_t first, std::size_t clients, LaidOut cut, B operand, T* to) {
  using View = decltype(operand.open(0));
  __shared__ decltype(std::declval<View>().deep(0)) deep[LaidOut::kMostRows];
  const std::uint32_t apart = kBlockThreads >> cut.log_columns, row = threadIdx.x >> cut.log_columns;
  const std::size_t blocks = std::size_t{cut.across} * cut.down;
  for (std::size_t block = blockIdx.x; block < clients * blocks; block += gridDim.x) {
    const std::size_t k = block / blocks;
    const auto within = static_cast<std::uint32_t>(block - k * blocks);
    const std::uint32_t begin = within / cut.across * cut.rows, left = cut.d - begin, rows = left < cut.rows ? left : cut.rows;
    const std::uint32_t j = within % cut.across * cut.columns + (threadIdx.x & (cut.columns - 1));
    const View view = operand.open(first + k);
    if (threadIdx.x < rows) deep[threadIdx.x] = view.deep(begin + threadIdx.x);
    __syncthreads();
    if (j < cut.n) {
      const auto line = view.line(j);
      T* column = to + (k * cut.d + begin) * cut.n + j;
      FL_UNROLL
      for (std::uint32_t i = 0; i < LaidOut::kRowsOfThread; ++i)
        if (const std::uint32_t e = row + i * apart; e < rows) column[std::size_t{e} * cut.n] = number_at(view, line, deep[e]);
    }
    __syncthreads();  // before the next rows come into the same memory
  }
}

// Computes the same product with the same bits, but first writes B to memory as a matrix: entries that many tiles read are computed once.
template <class T, class A, class B, class Store>
void laid_out_product(const Exec& exec, MatrixProducts products, const char* name, std::size_t clients, std::size_t m, std::size_t n,
                      std::size_t d, const A& a, const B& b, const Store& store) {
  const std::size_t most = std::max<std::size_t>(1, std::min(clients, kMostLaidOutBytes / (n * d * sizeof(T))));
  Workspace::Frame frame(*exec.workspace);
  T* matrix = frame.take<T>(most * n * d);
  for (std::size_t first = 0; first < clients; first += most) {
    const std::size_t here = std::min(most, clients - first);
    const LaidOut cut(d, n);
    Launch(exec, "lay_out", here * cut.across * cut.down)(lay_out<T, B>, first, here, cut, b, matrix);
    tiled_product<T>(exec, products, name, here, m, n, d, FromClient<A>{first, a}, RightMatrix<T>{matrix, n * d, n},
                     StoreFromClient<Store>{first, store});
  }
}

}  // namespace fl::cuda
