// Walsh-Hadamard transforms of rows that lie anywhere, whose numbers are made as they are read for the first time and used as they are
// written for the last time.
//
//   z_k [n] = H_n x_k,   H_n of +-1, n a power of two;   x_k[i] = load(k, i);   store(k, i, z_k[i])
//
// A block holds kHeldOfRow numbers of a row, so that their stages go together: longer rows take another pass over z for each 9 stages
// more. A thread takes four stages in registers between two visits to shared memory. The stages are those of hadamard_rows (linalg.cuh) in
// their order, so the numbers are the CPU's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace detail {

inline constexpr std::size_t kHeldOfRow = 4096;
inline constexpr unsigned kStagesTogether = 4;

// Where number i lies in shared memory: with a gap behind each sixteen, so that neighbouring threads, which begin sixteen numbers apart in
// the first stages, use different banks.
[[nodiscard]] FL_HD constexpr unsigned with_gaps(unsigned i) { return i + i / 16; }

// Rows k of a matrix whose rows are `stride` apart.
template <class T>
struct RowsOf {
  T* first;
  std::size_t stride;
  [[nodiscard]] FL_HD T& at(std::size_t k, std::size_t i) const { return first[k * stride + i]; }
  [[nodiscard]] FL_HD T operator()(std::size_t k, std::size_t i) const { return at(k, i); }
  FL_HD void operator()(std::size_t k, std::size_t i, T x) const { at(k, i) = x; }
};

// The part of a row in a block: `columns` neighbours in each of several places that are `stride` apart; or several rows that are shorter.
struct HeldPart {
  std::size_t n, stride, columns;
  unsigned log_n, log_columns;
  HeldPart(std::size_t n_, std::size_t stride_, std::size_t columns_)
      : n(n_), stride(stride_), columns(columns_), log_n(log_of(n_)), log_columns(log_of(columns_)) {}
  [[nodiscard]] static unsigned log_of(std::size_t power) { return static_cast<unsigned>(std::bit_width(power) - 1); }
  [[nodiscard]] FL_HD std::size_t rows_held() const { return n < kHeldOfRow ? kHeldOfRow / n : 1; }
  [[nodiscard]] FL_HD std::size_t pieces(std::size_t K) const {
    return n < kHeldOfRow ? (K + rows_held() - 1) / rows_held() : K * (n / kHeldOfRow);
  }
};

// Computes kStages stages on the `count` numbers that a block holds. The first stage has the distance 2^log_distance.
template <unsigned kStages, class T>
__device__ void take_stages(T* held, unsigned count, unsigned log_distance) {
  constexpr unsigned kNumbers = 1u << kStages;
  const unsigned distance = 1u << log_distance;
  for (unsigned i = threadIdx.x; i < count >> kStages; i += blockDim.x) {
    const unsigned first = (i >> log_distance << (log_distance + kStages)) + (i & (distance - 1));
    T x[kNumbers];
    FL_UNROLL
    for (unsigned j = 0; j < kNumbers; ++j) x[j] = held[with_gaps(first + (j << log_distance))];
    FL_UNROLL
    for (unsigned half = 1; half < kNumbers; half *= 2) {
      FL_UNROLL
      for (unsigned j = 0; j < kNumbers; ++j) {
        if ((j & half) != 0) continue;
        const T a = x[j], b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;
      }
    }
    FL_UNROLL
    for (unsigned j = 0; j < kNumbers; ++j) held[with_gaps(first + (j << log_distance))] = x[j];
  }
  __syncthreads();
}

// Stages of distance columns .. 2^log_end / 2 on what a block holds. All sizes are powers of two, but for the number of rows.
template <class T, class Load, class Store>
__global__ void transform_rows(std::size_t K, HeldPart part, unsigned log_end, Load load, Store store) {
  __shared__ T held[with_gaps(kHeldOfRow)];
  const bool is_short = part.n < kHeldOfRow;
  const std::size_t pieces = part.pieces(K), each = is_short ? part.rows_held() : part.n / kHeldOfRow;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t row = is_short ? piece * each : piece / each, within = is_short ? 0 : piece % each;
    const std::size_t across = part.stride / part.columns, places = kHeldOfRow / part.columns;
    const std::size_t first = within / across * places * part.stride + within % across * part.columns;
    const unsigned count = is_short ? static_cast<unsigned>((K - row < each ? K - row : each) * part.n) : kHeldOfRow;
    const auto n = static_cast<unsigned>(part.n), columns = static_cast<unsigned>(part.columns);
    const auto row_of = [&](unsigned i) { return is_short ? row + (i >> part.log_n) : row; };
    const auto place_of = [&](unsigned i) {
      return is_short ? std::size_t{i & (n - 1)} : first + (i >> part.log_columns) * part.stride + (i & (columns - 1));
    };
    FL_UNROLL_BY(4)
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) held[with_gaps(i)] = load(row_of(i), place_of(i));
    __syncthreads();
    unsigned stage = part.log_columns;
    for (; stage + kStagesTogether <= log_end; stage += kStagesTogether) take_stages<kStagesTogether>(held, count, stage);
    switch (log_end - stage) {
      case 1: take_stages<1>(held, count, stage); break;
      case 2: take_stages<2>(held, count, stage); break;
      case 3: take_stages<3>(held, count, stage); break;
      default: break;
    }
    FL_UNROLL_BY(4)
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) store(row_of(i), place_of(i), held[with_gaps(i)]);
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
  const detail::HeldPart whole(n, 1, 1);
  const unsigned log_held = detail::HeldPart::log_of(held);
  const Launch first(exec, "hadamard_of_loaded", whole.pieces(K));
  if (n <= held) return first(detail::transform_rows<T, Load, Store>, K, whole, whole.log_n, load, store);
  first(detail::transform_rows<T, Load, Rows>, K, whole, log_held, load, rows);
  constexpr int kMostStages = 9;  // with 8 neighbours at the least
  std::size_t apart = held;
  for (int left = std::bit_width(n) - std::bit_width(held); left > 0;) {
    const int passes = (left + kMostStages - 1) / kMostStages, stages = (left + passes - 1) / passes;
    const detail::HeldPart part(n, apart, held >> stages);
    const Launch further(exec, "hadamard_of_loaded, further stages", part.pieces(K));
    if (passes == 1)
      further(detail::transform_rows<T, Rows, Store>, K, part, log_held, rows, store);
    else
      further(detail::transform_rows<T, Rows, Rows>, K, part, log_held, rows, rows);
    apart <<= stages;
    left -= stages;
  }
}
template <class T, class Load>
void hadamard_of_loaded(const Exec& exec, std::size_t K, std::size_t n, const Load& load, T* z, std::size_t stride) {
  hadamard_of_loaded(exec, K, n, load, z, stride, detail::RowsOf<T>{z, stride});
}

}  // namespace fl::cuda
