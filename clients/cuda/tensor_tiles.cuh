// Tiles of products (tiles.cuh) of numbers rounded to TF32 or BF16, computed by tensor cores. Sums are float, in ascending order of the
// tiles that one instruction multiplies.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#include "clients/cuda/tiles.cuh"

namespace fl::cuda::tiles {

// The formats in which operands lie in the block's memory and are multiplied.
struct Tf32 {
  using Stored = float;
  using Number = nvcuda::wmma::precision::tf32;
  static constexpr int kDeep = 8;  // depth of a tile that one instruction multiplies
  [[nodiscard]] static __device__ Stored rounded(float x) { return nvcuda::wmma::__float_to_tf32(x); }
};
struct Bf16 {
  using Stored = __nv_bfloat16;
  using Number = __nv_bfloat16;
  static constexpr int kDeep = 16;
  [[nodiscard]] static __device__ Stored rounded(float x) { return __float2bfloat16(x); }
};

// A tile is kRows x kTensorCols; a warp computes kWarpTile x kWarpTile of it.
constexpr unsigned kTensorCols = 128, kWarpTile = 32, kFragment = 16;
template <unsigned kRows>
inline constexpr unsigned kTensorThreads = kRows* kTensorCols / (kWarpTile * kWarpTile) * kWarp;

// Blocks on a multiprocessor at the same time. Bounds the registers that the compiler uses.
template <unsigned kRows>
inline constexpr unsigned kTensorBlocks = kRows >= 64 ? 2 : 3;

// A warp's kWarpTile x kWarpTile of a tile of kRows x kTensorCols, in the registers of its lanes.
template <class How, unsigned kRows>
struct WarpEntries {
  using Stored = typename How::Stored;
  using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kFragment, kFragment, How::kDeep, float>;
  template <class Layout>
  using Left = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kFragment, kFragment, How::kDeep, typename How::Number, Layout>;
  template <class Layout>
  using Right = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kFragment, kFragment, How::kDeep, typename How::Number, Layout>;
  static constexpr unsigned kPad = 32 / sizeof(Stored), kParts = kWarpTile / kFragment, kResultWidth = kWarpTile + 4;
  using TileA = Stored[kDepth][kRows + kPad];
  using TileB = Stored[kDepth][kTensorCols + kPad];
  using Found = float[kWarpTile * kResultWidth];
  Sum sum[kParts][kParts], total[kParts][kParts];
  unsigned row, col;  // where the warp's part begins

  __device__ __forceinline__ WarpEntries(unsigned own_row, unsigned own_col) : row(own_row), col(own_col) {
    FL_UNROLL
    for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
    for (unsigned j = 0; j < kParts; ++j) {
      nvcuda::wmma::fill_fragment(sum[i][j], 0.0f);
      nvcuda::wmma::fill_fragment(total[i][j], 0.0f);
    }
  }
  __device__ __forceinline__ void add_products(const TileA& a, const TileB& b) {
    FL_UNROLL
    for (unsigned e = 0; e < kDepth; e += How::kDeep) {
      Left<nvcuda::wmma::col_major> left[kParts];
      Right<nvcuda::wmma::row_major> right[kParts];
      FL_UNROLL
      for (unsigned i = 0; i < kParts; ++i) nvcuda::wmma::load_matrix_sync(left[i], &a[e][row + i * kFragment], kRows + kPad);
      FL_UNROLL
      for (unsigned j = 0; j < kParts; ++j) nvcuda::wmma::load_matrix_sync(right[j], &b[e][col + j * kFragment], kTensorCols + kPad);
      FL_UNROLL
      for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
      for (unsigned j = 0; j < kParts; ++j) nvcuda::wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
  }
  __device__ __forceinline__ void add_up(unsigned i, unsigned j) {
    FL_UNROLL
    for (int t = 0; t < Sum::num_elements; ++t) total[i][j].x[t] += sum[i][j].x[t];
  }
  __device__ __forceinline__ void end_part() {
    FL_UNROLL
    for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
    for (unsigned j = 0; j < kParts; ++j) {
      add_up(i, j);
      nvcuda::wmma::fill_fragment(sum[i][j], 0.0f);
    }
  }
  // Writes the totals to shared memory, row by row.
  __device__ __forceinline__ void put(Found& found) {
    FL_UNROLL
    for (unsigned i = 0; i < kParts; ++i) FL_UNROLL
    for (unsigned j = 0; j < kParts; ++j) {
      add_up(i, j);
      nvcuda::wmma::store_matrix_sync(&found[i * kFragment * kResultWidth + j * kFragment], total[i][j], kResultWidth,
                                      nvcuda::wmma::mem_row_major);
    }
    __syncwarp();
  }
  // Stores a column per lane of the totals that put() has written.
  template <class Store>
  __device__ __forceinline__ void store_to(const Store& store, const TilePosition& place, const ProductShape& shape, const Found& found,
                                           unsigned lane) const {
    constexpr unsigned kStored = Store::kReads ? 8 : 4;  // rows at a time, as registers allow
    const std::uint32_t c = place.col + col + lane;
    FL_NO_UNROLL
    for (unsigned first = 0; first < kWarpTile; first += kStored) {
      const std::uint32_t r = place.row + row + first;
      typename Store::Before before[kStored];
      FL_UNROLL
      for (unsigned s = 0; s < kStored; ++s)
        if (r + s < shape.m && c < shape.n) before[s] = store.before(place.k, r + s, c);
      FL_UNROLL
      for (unsigned s = 0; s < kStored; ++s)
        if (r + s < shape.m && c < shape.n) store(place.k, r + s, c, found[(first + s) * kResultWidth + lane], before[s]);
    }
  }
};

template <class How, unsigned kRows, class A, class B, class Store>
__global__ void __launch_bounds__(kTensorThreads<kRows>, kTensorBlocks<kRows>)
    multiply_on_tensor_cores(ProductShape shape, A a_operand, B b_operand, Store store) {
  constexpr unsigned kOwnThreads = kTensorThreads<kRows>, kWarpsAcross = kTensorCols / kWarpTile;
  using Own = WarpEntries<How, kRows>;
  using CarryA = Carrier<float, A, kRows, kOwnThreads>;
  using CarryB = Carrier<float, B, kTensorCols, kOwnThreads>;
  // The memory of the tiles also holds the warps' results after the last product.
  union Room {
    struct {
      typename Own::TileA a;
      typename Own::TileB b;
    } tiles;
    typename Own::Found found[kOwnThreads / kWarp];
  };
  __shared__ __align__(32) Room room;
  __shared__ typename CarryA::Table table_a;
  __shared__ typename CarryB::Table table_b;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const auto rounded = [](float x) { return How::rounded(x); };
  for (std::size_t number = blockIdx.x; number < shape.tiles(kRows, kTensorCols); number += gridDim.x) {
    const TilePosition place(shape, kRows, kTensorCols, number);
    CarryA carry_a(a_operand, place.client, place.row, shape.m, table_a);
    CarryB carry_b(b_operand, place.client, place.col, shape.n, table_b);
    Own own(warp / kWarpsAcross * kWarpTile, warp % kWarpsAcross * kWarpTile);
    for_depths(place, carry_a, carry_b, room.tiles.a, room.tiles.b, rounded, [&](std::uint32_t base) {
      __syncwarp();  // lanes that loaded less are ahead, and a warp multiplies together
      own.add_products(room.tiles.a, room.tiles.b);
      __syncthreads();
      if ((base + kDepth) % kPart == 0) own.end_part();
    });
    own.put(room.found[warp]);
    own.store_to(store, place, shape, room.found[warp], lane);
    __syncthreads();
  }
}

template <class How, class A, class B, class Store>
void multiply_rounded(const Exec& exec, const char* name, const ProductShape& shape, const A& a, const B& b, const Store& store) {
  constexpr unsigned kFewRows = 32, kRows = 64;
  if (shape.m <= kFewRows)
    Launch(exec, name, shape.tiles(kFewRows, kTensorCols), kTensorThreads<kFewRows>)(multiply_on_tensor_cores<How, kFewRows, A, B, Store>,
                                                                                     shape, a, b, store);
  else
    Launch(exec, name, shape.tiles(kRows, kTensorCols), kTensorThreads<kRows>)(multiply_on_tensor_cores<How, kRows, A, B, Store>, shape, a,
                                                                               b, store);
}

}  // namespace fl::cuda::tiles
