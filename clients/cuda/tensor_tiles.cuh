// Tiles of products (tiles.cuh) of numbers rounded to TF32 or BF16, computed by tensor cores. Sums are float, in ascending order of the
// tiles that one instruction multiplies.
#pragma once

#include "clients/cuda/tiles.cuh"

namespace fl::cuda::tiles {

// An input format of the tensor cores: an instruction multiplies kDeep depths. word() makes the first or second word that a lane supplies
// of a line, where number(q) is the line's number at depth q plus the lane's place. The lanes of a warp have the places 0 .. 3 in turn.
struct Tf32 {
  static constexpr unsigned kDeep = 8;
  template <class Number>
  [[nodiscard]] static __device__ __forceinline__ std::uint32_t word(unsigned half, const Number& number) {
    return to_tf32(number(4 * half));
  }
  static __device__ __forceinline__ void multiply(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    multiply_tf32(sum, a, b);
  }
};
struct Bf16 {
  static constexpr unsigned kDeep = 16;
  template <class Number>
  [[nodiscard]] static __device__ __forceinline__ std::uint32_t word(unsigned half, const Number& number) {
    return to_bf16_pair(number(8 * half), number(8 * half + 4));
  }
  static __device__ __forceinline__ void multiply(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    multiply_bf16(sum, a, b);
  }
};

// As ThreadForm, but own_rows x own_cols of a tile belong to a warp.
template <unsigned rows, unsigned cols, unsigned own_rows, unsigned own_cols, unsigned stages, unsigned blocks>
struct WarpForm {
  static constexpr unsigned kRows = rows, kCols = cols, kOwnRows = own_rows, kOwnCols = own_cols, kStages = stages, kBlocks = blocks;
  static constexpr unsigned kThreads = rows * cols / (own_rows * own_cols) * kWarp;
};

// A warp's sums of a tile, in pieces of 16 x 8 in the registers of its lanes.
template <class How, class Form>
class WarpSums {
  static constexpr unsigned kDown = Form::kOwnRows / 16, kAcross = Form::kOwnCols / 8, kWarpsAcross = Form::kCols / Form::kOwnCols;
  static_assert(Form::kOwnRows % 16 == 0 && Form::kOwnCols % 8 == 0 && Form::kCols % Form::kOwnCols == 0);

 public:
  __device__ WarpSums() {
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    group_ = lane / 4;
    place_ = lane % 4;
    row_ = warp / kWarpsAcross * Form::kOwnRows;
    col_ = warp % kWarpsAcross * Form::kOwnCols;
  }
  template <class Supplied>
  __device__ __forceinline__ void add_products(const typename Supplied::CopyA::Tile& a, const typename Supplied::CopyB::Tile& b) {
    using CopyA = typename Supplied::CopyA;
    using CopyB = typename Supplied::CopyB;
    FL_UNROLL
    for (unsigned e = 0; e < kDepth; e += How::kDeep) {
      std::uint32_t left[kDown][4], right[kAcross][2];
      FL_UNROLL
      for (unsigned i = 0; i < kDown; ++i) FL_UNROLL
      for (unsigned w = 0; w < 4; ++w)
        left[i][w] =
            How::word(w / 2, [&](unsigned q) { return a[e + q + place_][CopyA::place(row_ + i * 16 + w % 2 * 8 + group_, e + q)]; });
      FL_UNROLL
      for (unsigned j = 0; j < kAcross; ++j) FL_UNROLL
      for (unsigned w = 0; w < 2; ++w)
        right[j][w] = How::word(w, [&](unsigned q) { return b[e + q + place_][CopyB::place(col_ + j * 8 + group_, e + q)]; });
      FL_UNROLL
      for (unsigned i = 0; i < kDown; ++i) FL_UNROLL
      for (unsigned j = 0; j < kAcross; ++j) How::multiply(sum_[i][j], left[i], right[j]);
    }
  }
  // Adds the sums to total[entry][thread] in shared memory.
  __device__ __forceinline__ void end_part(float* total) {
    for_entries([&](float& sum, unsigned entry, unsigned, unsigned) {
      float& to = total[entry * Form::kThreads + threadIdx.x];
      to = has_total_ ? to + sum : sum;
      sum = 0.0f;
    });
    has_total_ = true;
  }
  __device__ __forceinline__ void put(const float* total, Found<float, Form>& found) {
    if (has_total_)
      for_entries([&](float& sum, unsigned entry, unsigned, unsigned) { sum = total[entry * Form::kThreads + threadIdx.x] + sum; });
    for_entries([&](float& sum, unsigned, unsigned row, unsigned col) { found.sum[row][col] = sum; });
  }

 private:
  template <class Use>
  __device__ __forceinline__ void for_entries(const Use& use) {
    FL_UNROLL
    for (unsigned i = 0; i < kDown; ++i) FL_UNROLL
    for (unsigned j = 0; j < kAcross; ++j) FL_UNROLL
    for (unsigned t = 0; t < 4; ++t)
      use(sum_[i][j][t], (i * kAcross + j) * 4 + t, row_ + i * 16 + t / 2 * 8 + group_, col_ + j * 8 + place_ * 2 + t % 2);
  }
  float sum_[kDown][kAcross][4] = {};
  bool has_total_ = false;
  unsigned group_, place_, row_, col_;
};

template <class How, class Form, class A, class B, class Store>
__global__ void __launch_bounds__(Form::kThreads, Form::kBlocks) multiply_on_tensor_cores(ProductShape shape, A a, B b, Store store) {
  multiply_tile_by_tile<float, Form, WarpSums<How, Form>>(shape, a, b, store);
}

using FewRowsByWarps = WarpForm<32, 64, 16, 32, 3, 6>;
using ManyRowsByWarps = WarpForm<64, 128, 32, 32, 3, 2>;

template <class How, class A, class B, class Store>
void multiply_rounded(const Exec& exec, const char* name, const ProductShape& shape, const A& a, const B& b, const Store& store) {
  const auto start = [&]<class Form>() {
    launch_tiles<float, Form>(exec, name, multiply_on_tensor_cores<How, Form, A, B, Store>, shape, a, b, store);
  };
  if (shape.m <= FewRowsByWarps::kRows)
    start.template operator()<FewRowsByWarps>();
  else
    start.template operator()<ManyRowsByWarps>();
}

}  // namespace fl::cuda::tiles
