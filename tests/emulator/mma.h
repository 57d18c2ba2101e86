// The part of CUDA's header of that name that kernels use: products of tiles, computed by the lanes of a warp together. Every lane holds
// whole operands and eight entries of the sum; the choice of the entries is internal, as on a GPU. The lanes synchronise when operands are
// read.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tests/emulator/cuda_bf16.h"
#include "tests/emulator/cuda_runtime.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

namespace emulated {
template <class Number>
struct Storage {
  using Type = Number;
};
template <>
struct Storage<precision::tf32> {
  using Type = float;
};
[[nodiscard]] inline float to_float(float x) { return x; }
[[nodiscard]] inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
}  // namespace emulated

// An operand of `rows` x `columns`, or a lane's share of the sums.
template <class Use, int m, int n, int k, class Number, class Layout = void>
struct fragment {
  static constexpr int rows = std::is_same_v<Use, matrix_b> ? k : m, columns = std::is_same_v<Use, matrix_a> ? k : n;
  static_assert(m == 16 && n == 16 && (std::is_same_v<Number, precision::tf32> ? k == 8 : k == 16 || k == 8));
  static constexpr int kEntries = std::is_same_v<Use, accumulator> ? m * n / 32 : rows * columns;
  static constexpr int num_elements = kEntries;
  float x[kEntries];
};

template <class Fragment>
void fill_fragment(Fragment& to, float value) {
  for (float& x : to.x) x = value;
}

template <class Use, int m, int n, int k, class Number, class Layout>
void load_matrix_sync(fragment<Use, m, n, k, Number, Layout>& to, const typename emulated::Storage<Number>::Type* from, unsigned width) {
  using Fragment = fragment<Use, m, n, k, Number, Layout>;
  if (reinterpret_cast<std::uintptr_t>(from) % 32 != 0 || width * sizeof *from % 16 != 0) fl::emulator::report("a tile is not aligned");
  __syncwarp();
  for (int i = 0; i < Fragment::rows; ++i)
    for (int j = 0; j < Fragment::columns; ++j)
      to.x[i * Fragment::columns + j] =
          emulated::to_float(std::is_same_v<Layout, row_major> ? from[static_cast<unsigned>(i) * width + static_cast<unsigned>(j)]
                                                               : from[static_cast<unsigned>(j) * width + static_cast<unsigned>(i)]);
}

// Entry e of a lane: row lane / 2, column 8 (lane % 2) + e.
template <int m, int n, int k, class A, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, m, n, k, float>& d, const fragment<matrix_a, m, n, k, A, LayoutA>& a,
              const fragment<matrix_b, m, n, k, A, LayoutB>& b, const fragment<accumulator, m, n, k, float>& c) {
  const unsigned row = fl::emulator::lane() / 2, column = fl::emulator::lane() % 2 * 8;
  for (unsigned e = 0; e < 8; ++e) {
    float sum = c.x[e];
    for (unsigned i = 0; i < k; ++i) sum = std::fma(a.x[row * k + i], b.x[i * n + column + e], sum);
    d.x[e] = sum;
  }
}

template <int m, int n, int k>
void store_matrix_sync(float* to, const fragment<accumulator, m, n, k, float>& from, unsigned width, layout_t layout) {
  if (layout != mem_row_major) fl::emulator::report("only by rows");
  if (reinterpret_cast<std::uintptr_t>(to) % 32 != 0 || width * sizeof *to % 16 != 0) fl::emulator::report("a tile is not aligned");
  const unsigned row = fl::emulator::lane() / 2, column = fl::emulator::lane() % 2 * 8;
  for (unsigned e = 0; e < 8; ++e) to[row * width + column + e] = from.x[e];
}

// To the nearest with 10 fraction bits, ties away from zero.
[[nodiscard]] inline float __float_to_tf32(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  if ((word & 0x7F800000u) == 0x7F800000u) return x;
  return std::bit_cast<float>((word + 0x1000u) & ~0x1FFFu);
}

}  // namespace nvcuda::wmma
