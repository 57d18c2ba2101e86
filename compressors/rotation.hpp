// Random rotations that both ends know: a vector turned so that its coordinates look like normal numbers, whatever they were.
//
// With N the largest power of two that is at most n, H_N the Walsh-Hadamard matrix over sqrt(N) and D_i random signs:
//   n = N    R = H_N D_0
//   n > N    R = (H_N on the last N) D_1 (H_N on the first N) D_0 B D_2,   B: x_i and x_(i + ceil(n/2)) become (their sum, difference) /
//   sqrt(2)
// Every factor is orthogonal, and n numbers stay n numbers: padding to 2N, as published code does, would send up to twice the bits.
// Sign i of parameter j is bit i of word j of the stream (operator's key, client, round): a rotation per client and round, for both ends.
//
// How flat the result is: by Khintchine's inequality with its best constant (Szarek 1976) E|(H_N D x)_j| >= |x| / sqrt(2 N), so
// E|Rx|_1 >= sqrt(n) |x| / sqrt(2) where n = N. Otherwise, with a = |first N|, b = |the others| after B, a^2 + b^2 = |x|^2, the last N hold
// at least max(b, sqrt(b^2 + a^2 (2N-n)/N) / sqrt(2)) after the first H_N (Kahane's inequality, constant sqrt(2)), and
// E|Rx|_1 >= sqrt(N/2) (that + (n/N - 1) a) >= sqrt(n) |x| / 2 (the minimum over a and n/N is at n -> N, found numerically).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "fl_core/verbs.hpp"

namespace fl {

// E|Rx|_1 >= flatness * sqrt(n) |x|, the same for all x of n numbers.
[[nodiscard]] inline double rotation_flatness(std::size_t n) { return n <= 1 ? 1 : std::has_single_bit(n) ? 0.70710678118654752 : 0.5; }
[[nodiscard]] inline double rotation_flatness(const Scope& scope) {
  double least = 1;
  for (const Segment& segment : scope.segments) least = std::min(least, rotation_flatness(segment.size()));
  return least;
}

// The stream of a client's rotation.
template <class T>
[[nodiscard]] RandomStream rotation_stream(const CompressContext<T>& context, std::size_t k) {
  return {context.random_key, context.clients[k], context.round, static_cast<std::uint32_t>(context.phase)};
}

namespace FL_DEVICE_NS {

// Signs of one bit of the words, and a factor.
template <class T>
[[nodiscard]] FL_HD T flipped(T x, std::uint32_t word, unsigned bit, T factor) {
  const T turned = factor * x;
  return (word >> bit & 1U) != 0 ? -turned : turned;
}
template <class T>
struct FlipSigns {
  T* x;
  RandomStream stream;
  std::size_t begin;  // parameter of x[0]
  unsigned bit;
  T factor;
  FL_HD void operator()(std::size_t j) const { x[j] = flipped(x[j], stream.bits(begin + j), bit, factor); }
};

// D_0 B D_2 where n > N, or its inverse D_2 B D_0 (without H_N's 1/sqrt(N), which goes with D_0 both times). B is its own inverse. For i
// below ceil(n/2): where n is odd the last one has no partner, and B leaves it.
template <class T>
struct MixHalves {
  T* x;
  RandomStream stream;
  std::size_t begin, n, N;
  T factor;
  bool inverse;
  FL_HD void operator()(std::size_t i) const {
    constexpr T kRoot = static_cast<T>(0.70710678118654752);
    const std::size_t distance = n - n / 2, j = i + distance;
    const std::uint32_t word = stream.bits(begin + i);
    if (i == n / 2) {
      x[i] = after(before(x[i], word, i), word, i);
      return;
    }
    const std::uint32_t other = stream.bits(begin + j);
    const T a = before(x[i], word, i), b = before(x[j], other, j);
    x[i] = after(kRoot * (a + b), word, i);
    x[j] = after(kRoot * (a - b), other, j);
  }

 private:
  [[nodiscard]] FL_HD T all(T y, std::uint32_t word) const { return flipped(y, word, 2, T(1)); }
  [[nodiscard]] FL_HD T first(T y, std::uint32_t word, std::size_t i) const { return i < N ? flipped(y, word, 0, factor) : y; }
  [[nodiscard]] FL_HD T before(T y, std::uint32_t word, std::size_t i) const { return inverse ? first(y, word, i) : all(y, word); }
  [[nodiscard]] FL_HD T after(T y, std::uint32_t word, std::size_t i) const { return inverse ? all(y, word) : first(y, word, i); }
};

// R and its inverse on the n numbers of a segment that starts at parameter `begin`, in place.
template <class T>
class Rotation {
 public:
  Rotation(const Exec& exec, const RandomStream& stream, const Segment& segment)
      : exec_(exec),
        stream_(stream),
        begin_(segment.begin),
        n_(segment.size()),
        N_(std::bit_floor(n_)),
        factor_(T(1) / std::sqrt(static_cast<T>(N_))) {}

  void forward(T* x) const {
    if (n_ > N_)
      mix(x, false);
    else
      flip(x, begin_, 0);
    hadamard_rows(exec_, x, 1, N_);
    if (n_ == N_) return;
    flip(x + (n_ - N_), begin_ + (n_ - N_), 1);
    hadamard_rows(exec_, x + (n_ - N_), 1, N_);
  }
  void inverse(T* x) const {
    if (n_ > N_) {
      hadamard_rows(exec_, x + (n_ - N_), 1, N_);
      flip(x + (n_ - N_), begin_ + (n_ - N_), 1);
    }
    hadamard_rows(exec_, x, 1, N_);
    if (n_ > N_)
      mix(x, true);
    else
      flip(x, begin_, 0);
  }

 private:
  void flip(T* x, std::size_t begin, unsigned bit) const { for_each(exec_, N_, FlipSigns<T>{x, stream_, begin, bit, factor_}); }
  void mix(T* x, bool inverse) const { for_each(exec_, n_ - n_ / 2, MixHalves<T>{x, stream_, begin_, n_, N_, factor_, inverse}); }
  const Exec& exec_;
  RandomStream stream_;
  std::size_t begin_, n_, N_;
  T factor_;
};

template <class T>
struct LoadForRotation {
  Affine<T> input;
  std::size_t k;
  T *p, *z;
  FL_HD void operator()(std::size_t j) const { z[j] = p[j] = input.at(k, j); }
};

template <class T>
struct WriteRotationState {
  StateWrite<T> state;
  std::size_t k, begin;
  const T *p, *c;  // of the segment
  FL_HD void operator()(std::size_t j) const { state.out.row(k)[begin + j] = state.rule == StateRule::residual ? p[j] - c[j] : T(0); }
};

// An operator on rotated segments: what it sends are levels of Rx, what it means is R^-1 of their numbers.
//
// Derived classes quantise: levels and scales of the rotated vector z [P] into a message; and say which number a level is, in units of the
// segment's scale: `number(level)`, an FL_HD functor that needs no memory.
template <class T>
class Rotated : public Compressor<T> {
 public:
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T *p = frame.take<T>(scope.P), *z = frame.take<T>(scope.P);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for_each(exec, scope.P, LoadForRotation<T>{input, k, p, z});
      const RandomStream stream = rotation_stream(context, k);
      for (const Segment& segment : scope.segments) Rotation<T>(exec, stream, segment).forward(z + segment.begin);
      Payload<T>* coded = &messages[k]->code();
      quantise(exec, scope, z, std::span<Payload<T>* const>(&coded, 1));
      decode(exec, stream, scope, *coded, *messages[k]);
      write_state(exec, scope, p, *messages[k], state, k);
    }
  }

  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    for (std::uint32_t k = 0; k < messages.size(); ++k)
      if (!messages[k]->silent && messages[k]->values == WireValue::levels)
        decode(exec, rotation_stream(context, k), scope, *messages[k], *messages[k]);
  }

 protected:
  // z [P] may be overwritten.
  virtual void quantise(const Exec& exec, const Scope& scope, T* z, std::span<Payload<T>* const> message) const = 0;
  // out [num_compressed]: the numbers of the levels, segment by segment, still rotated.
  virtual void numbers(const Exec& exec, const Scope& scope, const Payload<T>& coded, T* out) const = 0;

 private:
  // `out` may be `coded` itself.
  void decode(const Exec& exec, const RandomStream& stream, const Scope& scope, const Payload<T>& coded, Payload<T>& out) const {
    out.place_on(kThisDevice);
    out.value.resize_discard(coded.num_sent);
    numbers(exec, scope, coded, out.value.data());
    T* c = out.value.data();
    for (const Segment& segment : scope.segments) {
      Rotation<T>(exec, stream, segment).inverse(c);
      c += segment.size();
    }
    out.positions = Positions::all;
    out.values = kNativeWire<T>;
    out.num_sent = coded.num_sent;
    if (&out == &coded) {
      out.level_bytes.resize_discard(0);
      out.scale.resize_discard(0);
    }
  }
  static void write_state(const Exec& exec, const Scope& scope, const T* p, const Payload<T>& message, const StateWrite<T>& state,
                          std::size_t k) {
    if (state.rule == StateRule::none) return;
    const T* c = message.value.data();
    for (const Segment& segment : scope.segments) {
      for_each(exec, segment.size(), WriteRotationState<T>{state, k, segment.begin, p + segment.begin, c});
      c += segment.size();
    }
  }
};

// out[i] = number(level_i) * scale, over one segment's levels
template <class T, class Number>
struct ScaledNumbers {
  const std::int8_t* level;
  const T* scale;
  Number number;
  T* out;
  FL_HD void operator()(std::size_t i) const { out[i] = number(static_cast<std::int32_t>(level[i])) * *scale; }
};

// For messages of 8-bit levels with a scale per segment.
template <class T, class Number>
void scaled_numbers(const Exec& exec, const Scope& scope, const Payload<T>& coded, Number number, T* out) {
  std::size_t offset = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    for_each(exec, scope.segments[s].size(),
             ScaledNumbers<T, Number>{coded.template levels<std::int8_t>() + offset, coded.scale.data() + s, number, out + offset});
    offset += scope.segments[s].size();
  }
}

}  // namespace FL_DEVICE_NS
}  // namespace fl
