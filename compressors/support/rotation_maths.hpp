// Random rotations that client and server know. A rotated vector has coordinates that look normally distributed, whatever the input.
//
// With N the largest power of two that is at most n, H_N the Walsh-Hadamard matrix over sqrt(N) and D_i random signs:
//   n = N    R = H_N D_0
//   n > N    R = (H_N on the last N) D_1 (H_N on the first N) D_0 B D_2
//            B: x_i and x_(i + ceil(n/2)) become (their sum, difference) / sqrt(2)
// Every factor is orthogonal, and n numbers stay n numbers. Padding to 2N, as published code does, would send up to twice the bits. The
// sign of parameter j in D_i is bit i of word j of the stream (operator's key, client, round), so client and server draw the same rotation
// for each client and round.
//
// Flatness of the result: by Khintchine's inequality with its best constant (Szarek 1976) E|(H_N D x)_j| >= |x| / sqrt(2 N), so E|Rx|_1 >=
// sqrt(n) |x| / sqrt(2) if n = N. Otherwise, with a = |first N|, b = |the others| after B, a^2 + b^2 = |x|^2, the last N have norm at least
// max(b, sqrt(b^2 + a^2 (2N-n)/N) / sqrt(2)) =: m after the first H_N (Kahane's inequality, constant sqrt(2)), and E|Rx|_1 >= sqrt(N/2) (m
// + (n/N - 1) a) >= sqrt(n) |x| / 2 (the minimum over a and n/N is at n -> N, found numerically).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "compressors/compressor.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

// Returns the flatness: E|Rx|_1 >= flatness * sqrt(n) |x| for all x of n numbers.
[[nodiscard]] inline double rotation_flatness(std::size_t n) { return n <= 1 ? 1 : std::has_single_bit(n) ? 0.70710678118654752 : 0.5; }
[[nodiscard]] inline double rotation_flatness(const Scope& scope) {
  double least = 1;
  for (const Segment& segment : scope.segments) least = std::min(least, rotation_flatness(segment.size()));
  return least;
}

// Returns the random stream of a client's rotation.
template <class T>
[[nodiscard]] RandomStream rotation_stream(const CompressContext<T>& context, std::size_t k) {
  return {context.random_key, context.clients[k], context.round, static_cast<std::uint32_t>(context.phase)};
}

namespace FL_DEVICE_NS {

// Returns factor * x with the sign given by one bit of the word.
template <class T>
[[nodiscard]] FL_HD T flipped(T x, std::uint32_t word, unsigned bit, T factor) {
  const T turned = factor * x;
  return (word >> bit & 1U) != 0 ? -turned : turned;
}

// Computes D_0 B D_2 for n > N, or its inverse D_2 B D_0, on numbers i and i + distance. H_N's factor 1/sqrt(N) is applied together with
// D_0 in both directions. B is its own inverse. i is below ceil(n/2). If n is odd, the last i has no partner, and B leaves its number
// unchanged.
template <class T>
struct MixPairs {
  RandomStream stream;
  std::size_t begin, n, N;
  T factor;
  bool inverse;
  struct Pair {
    T first, second;
  };

  [[nodiscard]] FL_HD std::size_t distance() const { return n - n / 2; }
  [[nodiscard]] FL_HD bool is_alone(std::size_t i) const { return i == n / 2; }
  [[nodiscard]] FL_HD T alone(std::size_t i, T x) const {
    const std::uint32_t word = stream.bits(begin + i);
    return after(before(x, word, i), word, i);
  }
  [[nodiscard]] FL_HD Pair operator()(std::size_t i, T x, T y) const {
    constexpr T kRoot = static_cast<T>(0.70710678118654752);
    const std::size_t j = i + distance();
    const std::uint32_t word = stream.bits(begin + i), other = stream.bits(begin + j);
    const T a = before(x, word, i), b = before(y, other, j);
    return {after(kRoot * (a + b), word, i), after(kRoot * (a - b), other, j)};
  }

 private:
  [[nodiscard]] FL_HD T all(T y, std::uint32_t word) const { return flipped(y, word, 2, T(1)); }
  [[nodiscard]] FL_HD T first(T y, std::uint32_t word, std::size_t i) const { return i < N ? flipped(y, word, 0, factor) : y; }
  [[nodiscard]] FL_HD T before(T y, std::uint32_t word, std::size_t i) const { return inverse ? first(y, word, i) : all(y, word); }
  [[nodiscard]] FL_HD T after(T y, std::uint32_t word, std::size_t i) const { return inverse ? all(y, word) : first(y, word, i); }
};

// Returns the new state after c was sent for p.
template <class T>
[[nodiscard]] FL_HD T state_of_rotated(StateRule rule, T p, T c) {
  return rule == StateRule::residual ? p - c : T(0);
}

}  // namespace FL_DEVICE_NS
}  // namespace fl
