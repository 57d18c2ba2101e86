// Walsh-Hadamard transforms of rows that lie anywhere, whose numbers are made as they are read for the first time and used as they are
// written for the last time.
//
//   z_k [n] = H_n x_k,   H_n of +-1, n a power of two;   x_k[i] = load(k, i);   store(k, i, z_k[i])
//
// A block holds kHeldNumbers of a row, so that their stages go together: longer rows take another pass over z for each 9 stages more. The
// stages are those of hadamard_rows (linalg.cuh) in their order, so the numbers are the CPU's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace detail {

inline constexpr std::size_t kHeldOfRow = 4096;

// Rows k of a matrix whose rows are `stride` apart.
template <class T>
struct RowsOf {
  T* first;
  std::size_t stride;
  [[nodiscard]] FL_HD T& at(std::size_t k, std::size_t i) const { return first[k * stride + i]; }
  [[nodiscard]] FL_HD T operator()(std::size_t k, std::size_t i) const { return at(k, i); }
  FL_HD void operator()(std::size_t k, std::size_t i, T x) const { at(k, i) = x; }
};

// What a block holds of a row: `columns` neighbours in each of several places that are `stride` apart; or several rows that are shorter.
struct HeldPart {
  std::size_t n, stride, columns;
  [[nodiscard]] FL_HD std::size_t rows_held() const { return n < kHeldOfRow ? kHeldOfRow / n : 1; }
  [[nodiscard]] FL_HD std::size_t pieces(std::size_t K) const {
    return n < kHeldOfRow ? (K + rows_held() - 1) / rows_held() : K * (n / kHeldOfRow);
  }
};

// Stages of distance columns .. end / 2 on what a block holds.
template <class T, class Load, class Store>
__global__ void transform_rows(std::size_t K, HeldPart part, std::size_t end, Load load, Store store) {
  __shared__ T held[kHeldOfRow];
  const bool is_short = part.n < kHeldOfRow;
  const std::size_t pieces = part.pieces(K), each = is_short ? part.rows_held() : part.n / kHeldOfRow;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t row = is_short ? piece * each : piece / each, within = is_short ? 0 : piece % each;
    const std::size_t across = part.stride / part.columns, places = kHeldOfRow / part.columns;
    const std::size_t first = within / across * places * part.stride + within % across * part.columns;
    const unsigned count = is_short ? static_cast<unsigned>((K - row < each ? K - row : each) * part.n) : kHeldOfRow;
    const auto n = static_cast<unsigned>(part.n), columns = static_cast<unsigned>(part.columns);
    const auto row_of = [&](unsigned i) { return is_short ? row + i / n : row; };
    const auto place_of = [&](unsigned i) { return is_short ? std::size_t{i % n} : first + i / columns * part.stride + i % columns; };
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) held[i] = load(row_of(i), place_of(i));
    __syncthreads();
    for (unsigned distance = columns; distance < end; distance *= 2) {
      for (unsigned i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const unsigned low = i / distance * 2 * distance + i % distance;
        const T a = held[low], b = held[low + distance];
        held[low] = a + b;
        held[low + distance] = a - b;
      }
      __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) store(row_of(i), place_of(i), held[i]);
    __syncthreads();  // before the next piece comes into the same memory
  }
}

}  // namespace detail

// z: rows `stride` apart, where numbers wait between passes. load may read what it wants but other places of z, unless there is one pass.
template <class T, class Load, class Store>
void hadamard_of_loaded(const Exec& exec, std::size_t K, std::size_t n, const Load& load, T* z, std::size_t stride, const Store& store) {
  if (K == 0 || n == 0) return;
  using Rows = detail::RowsOf<T>;
  const Rows rows{z, stride};
  const std::size_t held = detail::kHeldOfRow;
  const detail::HeldPart whole{n, 1, 1};
  const Launch first(exec, "hadamard_of_loaded", whole.pieces(K));
  if (n <= held) return first(detail::transform_rows<T, Load, Store>, K, whole, n, load, store);
  first(detail::transform_rows<T, Load, Rows>, K, whole, held, load, rows);
  constexpr int kMostStages = 9;  // with 8 neighbours at the least
  std::size_t apart = held;
  for (int left = std::bit_width(n) - std::bit_width(held); left > 0;) {
    const int passes = (left + kMostStages - 1) / kMostStages, stages = (left + passes - 1) / passes;
    const detail::HeldPart part{n, apart, held >> stages};
    const Launch further(exec, "hadamard_of_loaded, further stages", part.pieces(K));
    if (passes == 1)
      further(detail::transform_rows<T, Rows, Store>, K, part, held, rows, store);
    else
      further(detail::transform_rows<T, Rows, Rows>, K, part, held, rows, rows);
    apart <<= stages;
    left -= stages;
  }
}
template <class T, class Load>
void hadamard_of_loaded(const Exec& exec, std::size_t K, std::size_t n, const Load& load, T* z, std::size_t stride) {
  hadamard_of_loaded(exec, K, n, load, z, stride, detail::RowsOf<T>{z, stride});
}

}  // namespace fl::cuda
