// IEEE 754 binary16 without hardware support: the same bits on every processor and on the GPU.
//
//   binary16 = sign:1 exponent:5 mantissa:10, value = (-1)^s 2^(e-15) (1 + m/1024), or (-1)^s 2^-24 m where e = 0
// Rounding is to nearest, ties to even, once (double is not rounded to float on the way). Magnitudes from 65520 on become infinity, those
// up to 2^-25 become zero, the numbers between 2^-25 and 2^-14 are subnormal and exact to 2^-24. Every NaN becomes the quiet NaN 0x7e00
// with its sign. The functions are free of branches, so that loops over them vectorise.
#pragma once

#include <cstdint>
#include <cstring>

#include "fl_core/device.hpp"

namespace fl {

namespace half_detail {

FL_HD inline std::uint32_t bits(float x) {
  std::uint32_t b = 0;
  memcpy(&b, &x, sizeof(b));
  return b;
}
FL_HD inline std::uint64_t bits(double x) {
  std::uint64_t b = 0;
  memcpy(&b, &x, sizeof(b));
  return b;
}
FL_HD inline float from_bits(std::uint32_t b) {
  float x = 0;
  memcpy(&x, &b, sizeof(x));
  return x;
}
FL_HD inline double from_bits(std::uint64_t b) {
  double x = 0;
  memcpy(&x, &b, sizeof(x));
  return x;
}

// T's layout, and the number whose last mantissa bit is worth 2^-24: adding it rounds a subnormal half to its grid.
template <class T>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kSubnormalGrid = 0.5F;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kSubnormalGrid = 268435456.0;  // 2^28
};

}  // namespace half_detail

// The nearest binary16, as bits.
template <class T>
[[nodiscard]] FL_HD inline std::uint16_t half_bits(T x) {
  using L = half_detail::Layout<T>;
  using Bits = typename L::Bits;
  constexpr int kDrop = L::kMantissa - 10;
  constexpr Bits kSign = Bits(1) << (8 * sizeof(T) - 1);
  const Bits all = half_detail::bits(x);
  const Bits magnitude = all & static_cast<Bits>(~kSign);
  // Normal: half an ulp less one, plus the bit that decides ties, then the exponent moved from T's bias to 15.
  const Bits odd = (magnitude >> kDrop) & 1;
  const Bits rebias = static_cast<Bits>(L::kBias - 15) << 10;
  const Bits normal = ((magnitude + ((Bits(1) << (kDrop - 1)) - 1) + odd) >> kDrop) - rebias;
  const T shifted = half_detail::from_bits(magnitude) + L::kSubnormalGrid;
  const Bits subnormal = half_detail::bits(shifted) - half_detail::bits(L::kSubnormalGrid);

  constexpr Bits kInfinity = static_cast<Bits>(2 * L::kBias + 1) << L::kMantissa;
  constexpr Bits kSmallestNormal = static_cast<Bits>(L::kBias - 14) << L::kMantissa;
  constexpr Bits kOverflow = (static_cast<Bits>(L::kBias + 15) << L::kMantissa) | (Bits(0x7ff) << (L::kMantissa - 11));  // 65520
  Bits half = magnitude < kSmallestNormal ? subnormal : normal;
  half = magnitude >= kOverflow ? Bits(0x7c00) : half;
  half = magnitude > kInfinity ? Bits(0x7e00) : half;
  return static_cast<std::uint16_t>((half & 0x7fff) | ((all & kSign) >> (8 * sizeof(T) - 16)));
}

// The number that the bits stand for, exactly.
template <class T>
[[nodiscard]] FL_HD inline T half_value(std::uint16_t half) {
  using L = half_detail::Layout<T>;
  using Bits = typename L::Bits;
  const Bits magnitude = half & 0x7fffU;
  const Bits normal = (magnitude << (L::kMantissa - 10)) + (static_cast<Bits>(L::kBias - 15) << L::kMantissa);
  const Bits special = (magnitude << (L::kMantissa - 10)) + (static_cast<Bits>(2 * L::kBias + 1 - 31) << L::kMantissa);
  const T subnormal = static_cast<T>(static_cast<std::int32_t>(magnitude)) * static_cast<T>(1.0 / 16777216.0);
  Bits value = magnitude >= 0x7c00 ? special : normal;
  value = magnitude < 0x0400 ? half_detail::bits(subnormal) : value;
  return half_detail::from_bits(static_cast<Bits>(value | (static_cast<Bits>(half & 0x8000U) << (8 * sizeof(T) - 16))));
}

// The nearest number that travels as binary16.
template <class T>
[[nodiscard]] FL_HD inline T round_to_half(T x) {
  return half_value<T>(half_bits(x));
}

}  // namespace fl
