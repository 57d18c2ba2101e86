// Rotations on the host (compressors/support/rotation.hpp). Clients are processed one after another, so that each vector stays in the
// caches.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "compressors/support/rotation_maths.hpp"

namespace fl::cpu {

template <class T>
struct FlipSigns {
  T* x;
  RandomStream stream;
  std::size_t begin;  // parameter of x[0]
  unsigned bit;
  T factor;
  void operator()(std::size_t j) const { x[j] = flipped(x[j], stream.bits(begin + j), bit, factor); }
};

template <class T>
struct MixHalves {
  T* x;
  MixPairs<T> mix;
  void operator()(std::size_t i) const {
    if (mix.is_alone(i)) {
      x[i] = mix.alone(i, x[i]);
      return;
    }
    const std::size_t j = i + mix.distance();
    const auto pair = mix(i, x[i], x[j]);
    x[i] = pair.first;
    x[j] = pair.second;
  }
};

// Applies R and its inverse in place to the n numbers of a segment that starts at parameter `begin`.
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
  void mix(T* x, bool inverse) const {
    for_each(exec_, n_ - n_ / 2, MixHalves<T>{x, MixPairs<T>{stream_, begin_, n_, N_, factor_, inverse}});
  }
  const Exec& exec_;
  RandomStream stream_;
  std::size_t begin_, n_, N_;
  T factor_;
};

// Returns the number of clients whose vectors are rotated together.
template <class T>
[[nodiscard]] std::uint32_t rotated_at_once(std::size_t /*K*/, std::size_t /*P*/) {
  return 1;
}

template <class T>
struct LoadForRotation {
  Affine<T> input;
  std::size_t k;
  T* z;
  void operator()(std::size_t j) const { z[j] = input.at(k, j); }
};

// Computes z = R p, segment by segment. z: [K,P]
template <class T>
void rotate_rows(const Exec& exec, std::span<const RandomStream> streams, const Affine<T>& p, const Scope& scope, T* z) {
  for (std::size_t k = 0; k < streams.size(); ++k, z += scope.P) {
    for_each(exec, scope.P, LoadForRotation<T>{p, k, z});
    for (const Segment& segment : scope.segments) Rotation<T>(exec, streams[k], segment).forward(z + segment.begin);
  }
}

struct RotatedSign {
  using Map = std::integral_constant<LevelMap, LevelMap::sign>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  template <class T>
  std::int32_t operator()(T z, T, std::uint32_t, std::size_t) const {
    return z < T(0) ? 0 : 1;
  }
};

// Writes the signs of z [K,P] as levels, and for each segment the scale scale_of(sum of squares, sum of magnitudes, size).
template <class T, class ScaleOf>
void quantise_signs(const Exec& exec, const Scope& scope, std::uint32_t K, T* z, ScaleOf scale_of, std::span<Payload<T>* const> coded) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t S = scope.segments.size();
  Affine<T> input;
  input.add(T(1), BatchView<const T>{z, nullptr, K, scope.P, scope.P});
  auto *squares = frame.take<double>(K * S), *magnitudes = frame.take<double>(K * S);
  T* scale = frame.take<T>(K * S);
  reduce_rows(exec, input, scope, SquareOf{}, Reduce::sum, squares);
  reduce_rows(exec, input, scope, MagnitudeOf{}, Reduce::sum, magnitudes);
  for (std::size_t i = 0; i < K * S; ++i) scale[i] = scale_of(squares[i], magnitudes[i], static_cast<double>(scope.segments[i % S].size()));
  quantize_rows(exec, input, scope, sign_format(), LevelWidth::w8, scale, RotatedSign{}, std::span<const RandomStream>{}, StateWrite<T>{},
                coded);
}

// Computes out[i] = number(level_i) * scale over one segment's levels.
template <class T, class Number>
struct ScaledNumbers {
  const std::int8_t* level;
  const T* scale;
  Number number;
  T* out;
  void operator()(std::size_t i) const { out[i] = number(static_cast<std::int32_t>(level[i])) * *scale; }
};

template <class T>
struct WriteRotatedState {
  StateWrite<T> state;
  Affine<T> p;
  std::size_t k, begin;
  const T* c;  // of the segment
  void operator()(std::size_t i) const { state.out.row(k)[begin + i] = state_of_rotated(state.rule, p.at(k, begin + i), c[i]); }
};

// Writes the entries that the levels of `coded` represent, and the state that follows from p if `state` has a rule. `out` may be `coded`
// itself.
template <class T, class Number>
void decode_rotated(const Exec& exec, std::span<const RandomStream> streams, const Affine<T>& p, const Scope& scope,
                    std::span<Payload<T>* const> coded, Number number, T* /*z*/, const StateWrite<T>& state,
                    std::span<Payload<T>* const> out) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Payload<T>& from = *coded[k];
    Payload<T>& to = *out[k];
    to.place_on(kThisDevice);
    to.value.resize_discard(from.num_sent);
    T* c = to.value.data();
    std::size_t s = 0, offset = 0;
    for (const Segment& segment : scope.segments) {
      for_each(exec, segment.size(),
               ScaledNumbers<T, Number>{from.template levels<std::int8_t>() + offset, from.scale.data() + s, number, c + offset});
      Rotation<T>(exec, streams[k], segment).inverse(c + offset);
      if (state.rule != StateRule::none) for_each(exec, segment.size(), WriteRotatedState<T>{state, p, k, segment.begin, c + offset});
      offset += segment.size();
      ++s;
    }
    to.positions = Positions::all;
    to.values = kNativeWire<T>;
    to.num_sent = from.num_sent;
    if (&to == &from) {
      to.level_bytes.resize_discard(0);
      to.scale.resize_discard(0);
    }
  }
}

}  // namespace fl::cpu
