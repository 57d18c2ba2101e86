// Rotations on a GPU (compressors/support/rotation.hpp), for several clients at once. All operations on single numbers or pairs are fused
// into the passes of the transforms.
//
//   forward   1  reads p and mixes it (B), signs D_0, first stages of H on the first N; writes the rest unchanged
//             2  further stages;   3, 4  the same of H on the last N, after signs D_1
//   inverse   5, 6  numbers of levels, H on the last N;   7, 8  signs D_1, H on the first N, signs D_0, B, signs D_2: gives c, and the
//             state from p, which is read again; pairs that lie among the first N follow afterwards
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "compressors/support/rotation_maths.hpp"
#include "fl_core/ops/cuda/hadamard.cuh"

namespace fl::cuda {

// One segment of several clients' vectors.
template <class T>
struct RotatedRows {
  const RandomStream* stream;  // [K]
  std::size_t begin, n, N;
  T factor;
  T* z;  // the segment's first number of the first client
  std::size_t P;

  [[nodiscard]] FL_HD T& at(std::size_t k, std::size_t i) const { return z[k * P + i]; }
  [[nodiscard]] FL_HD MixPairs<T> mix(std::size_t k, bool inverse) const { return {stream[k], begin, n, N, factor, inverse}; }
  [[nodiscard]] FL_HD T with_sign(std::size_t k, std::size_t i, unsigned bit, T x) const {
    return flipped(x, stream[k].bits(begin + i), bit, factor);
  }
};

// Pass 1. Also writes the numbers after the first N.
template <class T>
struct LoadMixed {
  Affine<T> p;
  RotatedRows<T> rows;
  [[nodiscard]] FL_HD T of(std::size_t k, std::size_t i) const { return p.at(k, rows.begin + i); }
  FL_HD T operator()(std::size_t k, std::size_t i) const {
    if (rows.n == rows.N) return rows.with_sign(k, i, 0, of(k, i));
    const MixPairs<T> mix = rows.mix(k, false);
    if (i >= mix.distance()) return mix(i - mix.distance(), of(k, i - mix.distance()), of(k, i)).second;
    if (mix.is_alone(i)) return mix.alone(i, of(k, i));
    const std::size_t j = i + mix.distance();
    const auto pair = mix(i, of(k, i), of(k, j));
    if (j >= rows.N) rows.at(k, j) = pair.second;
    return pair.first;
  }
};
// Pass 3. i counts from n - N on.
template <class T>
struct LoadLast {
  RotatedRows<T> rows;
  FL_HD T operator()(std::size_t k, std::size_t i) const {
    const std::size_t j = i + (rows.n - rows.N);
    return rows.with_sign(k, j, 1, rows.at(k, j));
  }
};
// Pass 5. Returns the numbers of the levels from `offset` on, times the scale of the segment.
template <class T, class Number>
struct LoadNumbers {
  const PayloadRow<T>* coded;  // [K]
  std::size_t offset, segment;
  Number number;
  FL_HD T operator()(std::size_t k, std::size_t i) const {
    const auto* level = reinterpret_cast<const std::int8_t*>(coded[k].levels);
    return number(static_cast<std::int32_t>(level[offset + i])) * coded[k].scale[segment];
  }
};
// Pass 7.
template <class T, class Number>
struct LoadFirst {
  RotatedRows<T> rows;
  LoadNumbers<T, Number> numbers;
  FL_HD T operator()(std::size_t k, std::size_t i) const {
    return i < rows.n - rows.N ? numbers(k, i) : rows.with_sign(k, i, 1, rows.at(k, i));
  }
};

// At the end of pass 8, writes the message and the state of numbers i and of their partners after the first N. Pairs whose two numbers are
// both among the first N wait in z.
template <class T>
struct FinishRotated {
  RotatedRows<T> rows;
  Affine<T> p;
  StateWrite<T> state;
  const PayloadRow<T>* out;  // [K]
  std::size_t offset;
  [[nodiscard]] FL_HD std::size_t distance() const { return rows.n - rows.n / 2; }
  // Returns the number of pairs that wait.
  [[nodiscard]] FL_HD std::size_t waiting() const { return rows.n == rows.N ? 0 : rows.N - distance(); }

  FL_HD void operator()(std::size_t k, std::size_t i, T x) const {
    if (rows.n == rows.N) return write(k, i, rows.with_sign(k, i, 0, x));
    if (i < waiting() || i >= distance()) {
      rows.at(k, i) = x;
      return;
    }
    const MixPairs<T> mix = rows.mix(k, true);
    if (mix.is_alone(i)) return write(k, i, mix.alone(i, x));
    const std::size_t j = i + distance();
    write_pair(k, i, mix(i, x, rows.with_sign(k, j, 1, rows.at(k, j))));
  }
  // Finishes one of the waiting pairs; `index` counts the pairs of all clients.
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / waiting(), i = index - k * waiting();
    write_pair(k, i, rows.mix(k, true)(i, rows.at(k, i), rows.at(k, i + distance())));
  }

 private:
  FL_HD void write_pair(std::size_t k, std::size_t i, const typename MixPairs<T>::Pair& pair) const {
    write(k, i, pair.first);
    write(k, i + distance(), pair.second);
  }
  FL_HD void write(std::size_t k, std::size_t i, T c) const {
    out[k].value[offset + i] = c;
    const std::size_t j = rows.begin + i;
    if (state.rule != StateRule::none) state.out.row(k)[j] = state_of_rotated(state.rule, p.at(k, j), c);
  }
};

// Sums squares and magnitudes in the order of reduce_rows and writes the signs as levels, reading each number once. The lanes of a tile are
// those of reduce_tiles (reduce.cuh). squares, magnitudes: [K,num_tiles]
template <class T>
__global__ void sum_and_take_signs(detail::RowsOf<T> z, std::size_t K, ScopePlan plan, double* squares, double* magnitudes,
                                   const PayloadRow<T>* rows) {
  constexpr int kAhead = detail::kReduceAhead;
  const std::size_t pieces = K * plan.num_tiles, stride = num_threads() / kReduceLanes, lane = threadIdx.x % kReduceLanes;
  // Both halves of a warp run the same iterations, because shuffles need all lanes.
  const std::size_t first = thread_index() / kReduceLanes, half = first % 2;
  for (std::size_t pair = first - half; pair < pieces; pair += stride) {
    const std::size_t piece = pair + half;
    double square = 0, magnitude = 0;
    if (piece < pieces) {
      const std::size_t k = piece / plan.num_tiles;
      const Tile tile = tile_at(plan, piece - k * plan.num_tiles);
      auto* level = reinterpret_cast<std::int8_t*>(rows[k].levels) + tile.offset;
      for (std::size_t i = lane; i < tile.count; i += kAhead * kReduceLanes) {
        T x[kAhead];
        FL_UNROLL
        for (std::size_t a = 0; a < kAhead; ++a) {
          const std::size_t at = i + a * kReduceLanes;
          x[a] = at < tile.count ? z.at(k, tile.begin + at) : T(0);
        }
        FL_UNROLL
        for (std::size_t a = 0; a < kAhead; ++a) {
          const std::size_t at = i + a * kReduceLanes;
          if (at >= tile.count) continue;
          square += SquareOf{}(x[a]);
          magnitude += MagnitudeOf{}(x[a]);
          level[at] = x[a] < T(0) ? 0 : 1;
        }
      }
    }
    square = detail::join_lanes<Reduce::sum>(square);
    magnitude = detail::join_lanes<Reduce::sum>(magnitude);
    if (lane != 0 || piece >= pieces) continue;
    squares[piece] = square;
    magnitudes[piece] = magnitude;
  }
}

template <class T, class ScaleOf>
struct ScaleOfSums {
  const double *squares, *magnitudes;  // [K,S]
  ScopePlan plan;
  ScaleOf scale_of;
  const PayloadRow<T>* rows;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / plan.num_segments, s = i - k * plan.num_segments;
    rows[k].scale[s] = scale_of(squares[i], magnitudes[i], static_cast<double>(plan.segment[s].size));
  }
};

// Writes the signs of z [K,P] as levels, and for each segment the scale scale_of(sum of squares, sum of magnitudes, size).
template <class T, class ScaleOf>
void quantise_signs(const Exec& exec, const Scope& scope, std::uint32_t K, T* z, ScaleOf scale_of, std::span<Payload<T>* const> coded) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const PayloadRow<T>* rows = prepare_levels(exec, plan, sign_format(), LevelWidth::w8, coded, frame);
  const std::size_t pieces = K * plan.num_tiles, sums = K * plan.num_segments;
  auto *tile_squares = frame.take<double>(pieces), *tile_magnitudes = frame.take<double>(pieces);
  auto *squares = frame.take<double>(sums), *magnitudes = frame.take<double>(sums);
  Launch(exec, "sum_and_take_signs", blocks_for(pieces * kReduceLanes))(sum_and_take_signs<T>, detail::RowsOf<T>{z, scope.P}, K, plan,
                                                                        tile_squares, tile_magnitudes, rows);
  const Launch join(exec, "reduce_rows, segments", blocks_for(sums * kWarp));
  join(detail::join_tiles<Reduce::sum>, plan, K, tile_squares, squares);
  join(detail::join_tiles<Reduce::sum>, plan, K, tile_magnitudes, magnitudes);
  for_each(exec, sums, ScaleOfSums<T, ScaleOf>{squares, magnitudes, plan, scale_of, rows});
}

// Returns the number of clients whose vectors are rotated together: all of them, or as many as fit into 64 MiB.
template <class T>
[[nodiscard]] std::uint32_t rotated_at_once(std::size_t K, std::size_t P) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(kMostBytes / (sizeof(T) * std::max<std::size_t>(P, 1)), 1, std::max<std::size_t>(K, 1)));
}

template <class T>
[[nodiscard]] RotatedRows<T> rotated_rows(const RandomStream* stream, const Segment& segment, T* z, std::size_t P) {
  const std::size_t n = segment.size(), N = std::bit_floor(n);
  return {stream, segment.begin, n, N, T(1) / std::sqrt(static_cast<T>(N)), z + segment.begin, P};
}

// Computes z = R p, segment by segment. z: [K,P]
template <class T>
void rotate_rows(const Exec& exec, std::span<const RandomStream> streams, const Affine<T>& p, const Scope& scope, T* z) {
  Workspace::Frame frame(*exec.workspace);
  const RandomStream* stream = upload(exec, streams, frame);
  for (const Segment& segment : scope.segments) {
    const RotatedRows<T> rows = rotated_rows(stream, segment, z, scope.P);
    hadamard_of_loaded(exec, streams.size(), rows.N, LoadMixed<T>{p, rows}, rows.z, scope.P);
    if (rows.n > rows.N) hadamard_of_loaded(exec, streams.size(), rows.N, LoadLast<T>{rows}, rows.z + (rows.n - rows.N), scope.P);
  }
}

// Writes the entries that the levels of `coded` represent, and the state that follows from p if `state` has a rule. `out` may be `coded`
// itself. z: [K,P], scratch
template <class T, class Number>
void decode_rotated(const Exec& exec, std::span<const RandomStream> streams, const Affine<T>& p, const Scope& scope,
                    std::span<Payload<T>* const> coded, Number number, T* z, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t K = out.size();
  for (std::size_t k = 0; k < K; ++k) {
    out[k]->place_on(kThisDevice);
    out[k]->value.resize_for_overwrite(coded[k]->num_sent);
  }
  const RandomStream* stream = upload(exec, streams, frame);
  const PayloadRow<T>*from = upload_rows(exec, coded, frame), *to = upload_rows(exec, out, frame);
  std::size_t offset = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    const RotatedRows<T> rows = rotated_rows(stream, scope.segments[s], z, scope.P);
    const std::size_t behind = rows.n - rows.N;
    const LoadNumbers<T, Number> numbers{from, offset, s, number};
    const FinishRotated<T> finish{rows, p, state, to, offset};
    if (behind == 0) {
      hadamard_of_loaded(exec, K, rows.N, numbers, rows.z, scope.P, finish);
    } else {
      hadamard_of_loaded(exec, K, rows.N, LoadNumbers<T, Number>{from, offset + behind, s, number}, rows.z + behind, scope.P);
      hadamard_of_loaded(exec, K, rows.N, LoadFirst<T, Number>{rows, numbers}, rows.z, scope.P, finish);
      for_each(exec, K * finish.waiting(), finish);
    }
    offset += rows.n;
  }
  for (std::size_t k = 0; k < K; ++k) {
    out[k]->positions = Positions::all;
    out[k]->values = kNativeWire<T>;
    out[k]->num_sent = coded[k]->num_sent;
    if (out[k] != coded[k]) continue;
    out[k]->level_bytes.resize_discard(0);
    out[k]->scale.resize_discard(0);
  }
}

}  // namespace fl::cuda
