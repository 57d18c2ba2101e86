// Tiles of matrix products (tiled_product.cuh). A block of threads computes a tile of one client's C from tiles of A and B in shared
// memory, while it loads the next tiles into registers.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "clients/device_room.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda::tiles {

constexpr unsigned kDepth = 16, kPart = kSumPart;
static_assert(kPart % (2 * kDepth) == 0);

// clients x parts products. The inner dimension of product k is part k % parts of the inner dimension of client k / parts; with one part it
// is the whole.
struct ProductShape {
  std::size_t clients;
  std::uint32_t m, n, d, parts = 1;
  [[nodiscard]] FL_HD std::uint32_t across(unsigned cols) const { return (n + cols - 1) / cols; }
  [[nodiscard]] FL_HD std::size_t tiles(unsigned rows, unsigned cols) const {
    return clients * parts * across(cols) * ((m + rows - 1) / rows);
  }
};

// A tile of product k, and the range of the inner dimension that it sums over.
struct TilePosition {
  std::size_t k, client;
  std::uint32_t row, col, begin, end;
  __device__ TilePosition(const ProductShape& shape, unsigned rows, unsigned cols, std::size_t number) {
    const std::size_t across = shape.across(cols), per_product = across * ((shape.m + rows - 1) / rows);
    k = number / per_product;
    const auto tile = static_cast<std::uint32_t>(number - k * per_product), own_row = tile / static_cast<std::uint32_t>(across);
    row = own_row * rows;
    col = (tile - own_row * static_cast<std::uint32_t>(across)) * cols;
    client = k / shape.parts;
    begin = static_cast<std::uint32_t>(k - client * shape.parts) * kPart;
    end = shape.parts > 1 && begin + kPart < shape.d ? begin + kPart : shape.d;
  }
};

// A thread's share of moving tiles of kLines lines and kDepth depths of an operand from device memory, through registers, to
// tile[depth][line]. If the operand runs inward, the thread loads one depth of several lines, otherwise several depths of one line.
template <class T, class Operand, unsigned kLines, unsigned kThreads>
class Carrier {
  static constexpr bool kInward = Operand::kRunsInward;
  static constexpr unsigned kLoads = kLines * kDepth / kThreads, kOwnLines = kInward ? kLoads : 1;
  static_assert(kLines * kDepth % kThreads == 0 && (kInward ? kThreads % 128 == 0 && kThreads <= kLines * kDepth : kThreads % kLines == 0));
  using View = decltype(std::declval<const Operand&>().open(0));
  using Line = decltype(std::declval<const View&>().line(0));
  using Deep = decltype(std::declval<const View&>().deep(0));

 public:
  static constexpr bool kHasTable = Operand::kTakesLong;
  // Positions that the block computes once for all of its threads, in shared memory: lines, or depths of this tile and of the next one.
  struct Table {
    Line line[kHasTable && kInward ? kLines : 1];
    Deep deep[2][kHasTable && !kInward ? kDepth : 1];
  };

  __device__ Carrier(const Operand& operand, std::size_t client, std::uint32_t first, std::uint32_t lines, Table& table)
      : view_(operand.open(client)), first_(first), lines_(lines), table_(table) {
    if constexpr (kHasTable && kInward) {
      for (unsigned i = threadIdx.x; i < kLines; i += kThreads) table_.line[i] = view_.line(first + i);
    } else {
      FL_UNROLL
      for (unsigned i = 0; i < kOwnLines; ++i) line_[i] = view_.line(first + line_of(i));
    }
  }
  // Writes the depths from `base` on into the table. All threads synchronise between this call, or the constructor, and load().
  __device__ void find_depths(std::uint32_t base) const {
    if constexpr (kHasTable && !kInward)
      if (threadIdx.x < kDepth) table_.deep[base / kDepth % 2][threadIdx.x] = view_.deep(base + threadIdx.x);
  }
  __device__ void load(std::uint32_t base, std::uint32_t end) {
    const auto line = [&](unsigned i) {
      if constexpr (kHasTable && kInward)
        return table_.line[line_of(i)];
      else
        return line_[kInward ? i : 0];
    };
    const auto deep = [&](unsigned i) {
      if constexpr (kHasTable && !kInward)
        return table_.deep[base / kDepth % 2][depth_of(i)];
      else
        return view_.deep(base + depth_of(i));
    };
    FL_UNROLL
    for (unsigned i = 0; i < kLoads; ++i)
      next_[i] = first_ + line_of(i) < lines_ && base + depth_of(i) < end ? view_.at(line(i), deep(i)) : T(0);
  }
  template <class Stored, unsigned kStride, class Rounded>
  __device__ void put(Stored (&tile)[kDepth][kStride], const Rounded& rounded) const {
    FL_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) tile[depth_of(i)][line_of(i)] = rounded(next_[i]);
  }

 private:
  // Inward, a warp has 4 depths of 8 lines: with rows 8 words longer than a multiple of 32, all of them lie in different banks.
  [[nodiscard]] static __device__ unsigned line_of(unsigned i) {
    return kInward ? threadIdx.x / 4 % 8 + threadIdx.x / 128 * 8 + i * (kThreads / kDepth) : threadIdx.x % kLines;
  }
  [[nodiscard]] static __device__ unsigned depth_of(unsigned i) {
    return kInward ? threadIdx.x % 4 + threadIdx.x / 32 % 4 * 4 : threadIdx.x / kLines + i * (kThreads / kLines);
  }
  View view_;
  std::uint32_t first_, lines_;
  Table& table_;
  Line line_[kOwnLines];
  T next_[kLoads];
};

constexpr unsigned kThreads = 128, kAcross = 16, kDown = kThreads / kAcross;  // of a block

// Blocks on a multiprocessor at the same time. Bounds the registers that the compiler uses.
template <class T, unsigned kRows>
inline constexpr unsigned kBlocksAtOnce = sizeof(T) == sizeof(double) ? 3
                                          : kRows >= 64               ? 4
                                                                      : 5;

// A thread's entries of a tile of kRows x kCols: kRows / kDown adjacent rows and kCols / kAcross columns.
template <class T, unsigned kRows, unsigned kCols>
struct OwnEntries {
  static constexpr unsigned kOwnRows = kRows / kDown, kOwnCols = kCols / kAcross, kPad = 32 / sizeof(T);
  // Adjacent columns of a thread. With one, neighbouring threads write neighbours in memory. With two, shared memory is read in pairs,
  // because threads with few rows would wait for it.
  static constexpr unsigned kRun = kRows >= 64 ? 1 : 2;
  using TileA = T[kDepth][kRows + kPad];
  using TileB = T[kDepth][kCols + kPad];
  T total[kOwnRows][kOwnCols] = {}, sum[kOwnRows][kOwnCols] = {};

  [[nodiscard]] static __device__ unsigned row(unsigned i) { return threadIdx.x / kAcross * kOwnRows + i; }
  [[nodiscard]] static __device__ unsigned col(unsigned j) { return j / kRun * kAcross * kRun + threadIdx.x % kAcross * kRun + j % kRun; }
  __device__ __forceinline__ void add_products(const TileA& a, const TileB& b) {
    FL_UNROLL
    for (unsigned e = 0; e < kDepth; ++e) {
      FL_UNROLL
      for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
      for (unsigned j = 0; j < kOwnCols; ++j) sum[i][j] = fma(a[e][row(i)], b[e][col(j)], sum[i][j]);
    }
  }
  __device__ __forceinline__ void end_part() {
    FL_UNROLL
    for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
    for (unsigned j = 0; j < kOwnCols; ++j) {
      total[i][j] += sum[i][j];
      sum[i][j] = T(0);
    }
  }
  template <class Store>
  __device__ __forceinline__ void store_to(const Store& store, const TilePosition& place, const ProductShape& shape) const {
    constexpr unsigned kStored = Store::kReads && sizeof(T) < sizeof(double) ? 2 : 1;  // rows at a time, as registers allow
    FL_NO_UNROLL
    for (unsigned first = 0; first < kOwnRows; first += kStored) {
      T found[kStored][kOwnCols];
      FL_UNROLL
      for (unsigned i = 0; i < kOwnRows; ++i) FL_UNROLL
      for (unsigned j = 0; j < kOwnCols; ++j)
        if (i / kStored * kStored == first) found[i % kStored][j] = total[i][j];
      typename Store::Before before[kStored][kOwnCols];
      const auto for_own = [&](const auto& use) {
        FL_UNROLL
        for (unsigned i = 0; i < kStored; ++i) FL_UNROLL
        for (unsigned j = 0; j < kOwnCols; ++j) {
          const std::uint32_t r = place.row + row(first + i), c = place.col + col(j);
          if (r < shape.m && c < shape.n) use(i, j, r, c);
        }
      };
      for_own([&](unsigned i, unsigned j, std::uint32_t r, std::uint32_t c) { before[i][j] = store.before(place.k, r, c); });
      for_own([&](unsigned i, unsigned j, std::uint32_t r, std::uint32_t c) { store(place.k, r, c, found[i][j], before[i][j]); });
    }
  }
};

// Moves the depths of `place` through the two carriers of a tile to a and b in shared memory. Calls use(base) when the depths from `base`
// on are there and the next ones are being loaded.
template <class CarryA, class CarryB, class TileA, class TileB, class Rounded, class Use>
__device__ __forceinline__ void for_depths(const TilePosition& place, CarryA& carry_a, CarryB& carry_b, TileA& a, TileB& b,
                                           const Rounded& rounded, const Use& use) {
  if constexpr (CarryA::kHasTable || CarryB::kHasTable) {
    carry_a.find_depths(place.begin);
    carry_b.find_depths(place.begin);
    __syncthreads();
  }
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
    use(base);
  }
}

// Computes tiles of kRows x kCols.
template <class T, unsigned kRows, unsigned kCols, class A, class B, class Store>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<T, kRows>) multiply(ProductShape shape, A a_operand, B b_operand, Store store) {
  using Own = OwnEntries<T, kRows, kCols>;
  using CarryA = Carrier<T, A, kRows, kThreads>;
  using CarryB = Carrier<T, B, kCols, kThreads>;
  __shared__ __align__(16) typename Own::TileA a;
  __shared__ __align__(16) typename Own::TileB b;
  __shared__ typename CarryA::Table table_a;
  __shared__ typename CarryB::Table table_b;
  const auto as_it_is = [](T number) { return number; };
  for (std::size_t number = blockIdx.x; number < shape.tiles(kRows, kCols); number += gridDim.x) {
    const TilePosition place(shape, kRows, kCols, number);
    CarryA carry_a(a_operand, place.client, place.row, shape.m, table_a);
    CarryB carry_b(b_operand, place.client, place.col, shape.n, table_b);
    Own own;
    for_depths(place, carry_a, carry_b, a, b, as_it_is, [&](std::uint32_t base) {
      own.add_products(a, b);
      __syncthreads();
      if ((base + kDepth) % kPart == 0) own.end_part();
    });
    own.end_part();
    own.store_to(store, place, shape);
  }
}

}  // namespace fl::cuda::tiles
