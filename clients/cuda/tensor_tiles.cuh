// Tiles of products (tiles.cuh) of numbers rounded to TF32 or BF16, by tensor cores: sums are float, in ascending order of the tiles that
// one instruction multiplies.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#include "clients/cuda/tiles.cuh"

namespace fl::cuda::tiles {

// How operands lie in the block's memory and are multiplied.
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

// Of a multiprocessor at the same time: bounds what the compiler takes of registers.
template <unsigned kRows>
inline constexpr unsigned kTensorBlocks = kRows >= 64 ? 2 : 3;

template <class How, unsigned kRows, class A, class B, class Store>
__global__ void __launch_bounds__(kTensorThreads<kRows>, kTensorBlocks<kRows>)
    multiply_on_tensor_cores(ProductShape shape, A a_operand, B b_operand, Store store) {
  namespace wmma = nvcuda::wmma;
  using Stored = typename How::Stored;
  constexpr unsigned kOwnThreads = kTensorThreads<kRows>, kPad = 32 / sizeof(Stored), kWarpsAcross = kTensorCols / kWarpTile;
  constexpr unsigned kParts = kWarpTile / kFragment, kResultWidth = kWarpTile + 4;
  using CarryA = Carrier<float, A, kRows, kOwnThreads>;
  using CarryB = Carrier<float, B, kTensorCols, kOwnThreads>;
  // The tiles' room is that of what warps have found, when these are done.
  union Room {
    struct {
      Stored a[kDepth][kRows + kPad], b[kDepth][kTensorCols + kPad];
    } tiles;
    float found[kOwnThreads / kWarp][kWarpTile * kResultWidth];
  };
  __shared__ __align__(32) Room room;
  auto& a = room.tiles.a;
  auto& b = room.tiles.b;
  __shared__ typename CarryA::Table table_a;
  __shared__ typename CarryB::Table table_b;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const unsigned own_row = warp / kWarpsAcross * kWarpTile, own_col = warp % kWarpsAcross * kWarpTile;
  const auto rounded = [](float x) { return How::rounded(x); };
  for (std::size_t number = blockIdx.x; number < shape.tiles(kRows, kTensorCols); number += gridDim.x) {
    const TilePosition place(shape, kRows, kTensorCols, number);
    CarryA carry_a(a_operand, place.client, place.row, shape.m, table_a);
    CarryB carry_b(b_operand, place.client, place.col, shape.n, table_b);
    if constexpr (CarryA::kHasTable || CarryB::kHasTable) {
      carry_a.find_depths(place.begin);
      carry_b.find_depths(place.begin);
      __syncthreads();
    }
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
    carry_a.load(place.begin, place.end);
    carry_b.load(place.begin, place.end);
    for (std::uint32_t base = place.begin; base < place.end; base += kDepth) {
      carry_a.put(a, rounded);
      carry_b.put(b, rounded);
      carry_a.find_depths(base + kDepth);
      carry_b.find_depths(base + kDepth);
      __syncthreads();
      if (base + kDepth < place.end) {
        carry_a.load(base + kDepth, place.end);
        carry_b.load(base + kDepth, place.end);
      }
      __syncwarp();  // lanes that loaded less are ahead, and a warp multiplies together
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
      wmma::store_matrix_sync(&room.found[warp][i * kFragment * kResultWidth + j * kFragment], total[i][j], kResultWidth,
                              wmma::mem_row_major);
    }
    __syncwarp();
    constexpr unsigned kStored = Store::kReads ? 8 : 4;  // rows at a time, as registers allow
    const std::uint32_t c = place.col + own_col + lane;
    FL_NO_UNROLL
    for (unsigned first = 0; first < kWarpTile; first += kStored) {
      const std::uint32_t row = place.row + own_row + first;
      typename Store::Before before[kStored];
      FL_UNROLL
      for (unsigned s = 0; s < kStored; ++s)
        if (row + s < shape.m && c < shape.n) before[s] = store.before(place.k, row + s, c);
      FL_UNROLL
      for (unsigned s = 0; s < kStored; ++s)
        if (row + s < shape.m && c < shape.n) store(place.k, row + s, c, room.found[warp][(first + s) * kResultWidth + lane], before[s]);
    }
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
