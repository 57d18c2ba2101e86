// Random rounding of a segment to s levels on each side of zero, used by qsgd, its schedules, terngrad and lpc.
//
//   a = s |x_j| / scale,   |level_j| = floor(a) + [u < a - floor(a)],   the receiver's number is level * scale / s: unbiased if a <= s
// With d the size of the largest segment and n(x) = scale, E|C(x) - x|^2 = sum_j (a_j - floor a_j)(1 - a_j + floor a_j) n(x)^2 / s^2:
//   scale = |x|_2     omega = min(d / s^2, sqrt(d) / s)                 (s = 1: the exact supremum is sqrt(d) - 1)
//   scale = max|x|    omega = min((d-1) / (4 s^2), sqrt(d-1) / (2 s))   (the largest entry is sent exactly)
// Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NeurIPS 2017; the constants of max|x| are derived and checked in tests/compressors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/ops/op_types.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class LevelNorm { l2, max };

// Returns omega of s levels for segments of at most d elements.
[[nodiscard]] inline double random_levels_omega(LevelNorm norm, double d, double s) {
  if (norm == LevelNorm::l2) return std::min(d / (s * s), std::sqrt(d) / s);
  return std::min((d - 1) / (4 * s * s), std::sqrt(d - 1) / (2 * s));
}

// Returns the domain in which the claims hold for levels that are multiples of unit times the segment's norm. Outside it, such a level
// would be a denormal number, and zeros are sent.
template <class T>
[[nodiscard]] Domain random_levels_domain(LevelNorm norm, double unit) {
  const MagnitudeRange range = sizeof(T) == sizeof(float) ? MagnitudeRange{1.2e-38 / unit} : MagnitudeRange{1e-150, 1e150};
  return norm == LevelNorm::max ? Domain{.largest = range} : Domain{.norm = range};
}

// Returns the format of levels -s .. s times scale * unit.
[[nodiscard]] inline LevelFormat random_levels_format(std::int64_t s, double unit) {
  return {.map = LevelMap::linear,
          .min_level = -static_cast<std::int32_t>(s),
          .bits = bits_for(2 * static_cast<std::uint64_t>(s) + 1),
          .unit = unit};
}

namespace FL_DEVICE_NS {

// Returns the scale of a segment from the sum of its squares or from its largest magnitude.
template <class T>
struct NormScale {
  LevelNorm norm;
  T smallest;  // below this value scale / s would be denormal
  FL_HD T operator()(double reduced, std::size_t) const {
    const T scale = static_cast<T>(norm == LevelNorm::l2 ? sqrt(reduced) : reduced);
    return scale < smallest ? T(0) : scale;
  }
};
template <class T>
[[nodiscard]] NormScale<T> norm_scale(LevelNorm norm, std::int64_t s) {
  return {norm, std::numeric_limits<T>::min() * static_cast<T>(s)};
}

template <class T>
struct RandomLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  T s;
  static constexpr bool kHasChance = true;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t) const {
    const T inverse = s / scale;  // infinite in a segment of zeros
    T a = (p < T(0) ? -p : p) * inverse;
    a = a < s ? a : s;  // rounding may exceed s; NaN becomes s
    a = scale > T(0) ? a : T(0);
    const std::int32_t whole = static_cast<std::int32_t>(a);
    const std::int32_t level = whole + (RandomStream::to_uniform<T>(word) < a - static_cast<T>(whole) ? 1 : 0);
    return p < T(0) ? -level : level;
  }
};

// As RandomLevel, for float32 and s <= 127, with a in fixed point of 24 binary places (as many as a random number has). It takes two thirds
// of the time.
struct RandomLevel8 {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  float s;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = true;
  FL_HD std::int32_t operator()(float p, float scale, std::uint32_t word, std::size_t) const {
    const float inverse = s / scale;
    float a = std::fabs(p) * inverse;
    a = a < s ? a : s;
    a = scale > 0 ? a : 0;
    const auto fixed = static_cast<std::uint32_t>(static_cast<std::int32_t>(a * 0x1p24f));
    const auto level = static_cast<std::int32_t>((fixed + (word >> 8)) >> 24);
    const std::int32_t negative = p < 0 ? -1 : 0;
    return (level ^ negative) - negative;
  }
};

// Calls `use` with the functor that rounds to s levels.
template <class T, class Use>
void with_random_level(std::int64_t s, Use use) {
  if constexpr (sizeof(T) == sizeof(float))
    if (s <= 127) return use(RandomLevel8{static_cast<float>(s)});
  use(RandomLevel<T>{static_cast<T>(s)});
}

// Sends every segment in s levels of its norm. The receiver reads level * scale * unit; unit = 1/s makes C unbiased.
template <class T>
void send_random_levels(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, LevelNorm norm,
                        std::int64_t s, double unit, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  const std::vector<RandomStream> streams = client_streams(context);
  const auto quantize = [&](auto map, Reduce reduce, auto level) {
    quantize_segments_fused(exec, input, scope, random_levels_format(s, unit), width_of(s), map, reduce, norm_scale<T>(norm, s), level,
                            std::span<const RandomStream>(streams), state, messages);
  };
  with_random_level<T>(s, [&](auto level) {
    if (norm == LevelNorm::l2)
      quantize(SquareOf{}, Reduce::sum, level);
    else
      quantize(MagnitudeOf{}, Reduce::max, level);
  });
}

}  // namespace FL_DEVICE_NS
}  // namespace fl
