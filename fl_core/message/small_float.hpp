// Floating-point formats of 16 and 8 bits without hardware support: the same bits on every processor and on the GPU.
//
//   sign:1 exponent:E mantissa:M, bias b = 2^(E-1) - 1
//   value = (-1)^s 2^(e-b) (1 + m/2^M), or (-1)^s 2^(1-b) m/2^M where e = 0
//
//   binary16   E 5  M 10   largest 65504        IEEE 754-2019
//   bfloat16   E 8  M 7    largest 3.39e38      the upper half of a binary32; Intel, BFLOAT16 hardware numerics definition, 2018
//   fp8_e5m2   E 5  M 2    largest 57344        Micikevicius et al., OCP 8-bit floating point specification (OFP8), rev. 1.0, 2023
//   fp8_e4m3   E 4  M 3    largest 448          the same; no infinity: only the exponent and mantissa of all ones are NaN
// Rounding is to nearest, ties to even, in one step (double is not rounded to float first). Numbers below the smallest normal number are
// rounded to the subnormal grid. Above the largest number, the 16-bit formats return infinity, as IEEE 754 does; the 8-bit formats
// saturate at their largest number (OFP8's saturating mode), also for infinity. NaN stays NaN and keeps its sign. The functions have no
// branches, so that loops over them vectorise.
// The functions are free of branches, so that loops over them vectorise.
#pragma once

#include <cstdint>
#include <cstring>

#include "fl_core/config/device.hpp"

namespace fl {

namespace small_float_detail {

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

FL_HD constexpr double power_of_two(int exponent) {
  double power = 1;
  for (; exponent > 0; --exponent) power *= 2;
  for (; exponent < 0; ++exponent) power /= 2;
  return power;
}

template <class T>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};

enum class Beyond { infinity, largest };

template <class Code_, int kExponentBits, int kMantissaBits, std::uint32_t kLargestCode, std::uint32_t kNaNCode, Beyond kBeyond>
struct SmallFloat {
  using Code = Code_;
  static constexpr int kMantissa = kMantissaBits, kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kSmallest = 1 - kBias - kMantissaBits;  // the grid of subnormal numbers is 2^kSmallest
  // Codes of magnitudes: the largest finite one, the first NaN, and the result for larger numbers.
  static constexpr std::uint32_t kLargest = kLargestCode, kNaN = kNaNCode;
  static constexpr std::uint32_t kSaturated = kBeyond == Beyond::infinity ? kLargestCode + 1 : kLargestCode;
  static constexpr bool kHasInfinity = kNaNCode != kLargestCode + 1;
};

}  // namespace small_float_detail

using Binary16 = small_float_detail::SmallFloat<std::uint16_t, 5, 10, 0x7bff, 0x7e00, small_float_detail::Beyond::infinity>;
using Bfloat16 = small_float_detail::SmallFloat<std::uint16_t, 8, 7, 0x7f7f, 0x7fc0, small_float_detail::Beyond::infinity>;
using Fp8E5m2 = small_float_detail::SmallFloat<std::uint8_t, 5, 2, 0x7b, 0x7e, small_float_detail::Beyond::largest>;
using Fp8E4m3 = small_float_detail::SmallFloat<std::uint8_t, 4, 3, 0x7e, 0x7f, small_float_detail::Beyond::largest>;

// Returns the bits of the nearest number of format F.
template <class F, class T>
[[nodiscard]] FL_HD inline typename F::Code small_float_bits(T x) {
  using L = small_float_detail::Layout<T>;
  using Bits = typename L::Bits;
  constexpr int kDrop = L::kMantissa - F::kMantissa;
  constexpr Bits kSign = Bits(1) << (8 * sizeof(T) - 1);
  constexpr int kCodeBits = 8 * sizeof(typename F::Code);
  // Adding a number whose last mantissa bit is worth 2^kSmallest rounds a subnormal number to its grid.
  constexpr T kGrid = static_cast<T>(small_float_detail::power_of_two(L::kMantissa + F::kSmallest));
  constexpr Bits kSmallestNormal = static_cast<Bits>(L::kBias + 1 - F::kBias) << L::kMantissa;
  constexpr Bits kInfinity = static_cast<Bits>(2 * L::kBias + 1) << L::kMantissa;

  const Bits all = small_float_detail::bits(x);
  const Bits magnitude = all & static_cast<Bits>(~kSign);
  // Normal numbers: adds half an ulp minus one, plus the bit that decides ties, and moves the exponent from T's bias to F's.
  const Bits odd = (magnitude >> kDrop) & 1;
  const Bits rebias = static_cast<Bits>(L::kBias - F::kBias) << F::kMantissa;
  const Bits normal = ((magnitude + ((Bits(1) << (kDrop - 1)) - 1) + odd) >> kDrop) - rebias;
  Bits code = normal;
  if constexpr (F::kBias != L::kBias) {  // otherwise subnormal numbers need no special case
    const T shifted = small_float_detail::from_bits(magnitude) + kGrid;
    const Bits subnormal = small_float_detail::bits(shifted) - small_float_detail::bits(kGrid);
    code = magnitude < kSmallestNormal ? subnormal : normal;
  }
  code = code > F::kLargest ? Bits(F::kSaturated) : code;
  code = magnitude > kInfinity ? Bits(F::kNaN) : code;
  return static_cast<typename F::Code>(code | ((all & kSign) >> (8 * sizeof(T) - kCodeBits)));
}

// Returns the exact value of the bits.
template <class F, class T>
[[nodiscard]] FL_HD inline T small_float_value(typename F::Code code) {
  using L = small_float_detail::Layout<T>;
  using Bits = typename L::Bits;
  constexpr int kCodeBits = 8 * sizeof(typename F::Code), kShift = L::kMantissa - F::kMantissa;
  constexpr Bits kMagnitude = (Bits(1) << (kCodeBits - 1)) - 1, kAbove = Bits(F::kLargest) + 1;
  constexpr Bits kInfinity = static_cast<Bits>(2 * L::kBias + 1) << L::kMantissa;
  constexpr T kUnit = static_cast<T>(small_float_detail::power_of_two(F::kSmallest));
  const Bits magnitude = code & kMagnitude, sign = static_cast<Bits>(code >> (kCodeBits - 1)) << (8 * sizeof(T) - 1);
  if constexpr (F::kBias == L::kBias) return small_float_detail::from_bits(static_cast<Bits>((magnitude << kShift) | sign));
  const Bits normal = (magnitude << kShift) + (static_cast<Bits>(L::kBias - F::kBias) << L::kMantissa);
  // Codes above the largest number are infinity, or NaN with its mantissa. The only NaN of a format without infinity is a quiet one.
  const Bits mantissa = F::kHasInfinity ? magnitude - kAbove : Bits(1) << (F::kMantissa - 1);
  const Bits special = kInfinity | (mantissa << kShift);
  const T subnormal = static_cast<T>(static_cast<std::int32_t>(magnitude)) * kUnit;
  Bits value = magnitude >= kAbove ? special : normal;
  value = magnitude < (Bits(1) << F::kMantissa) ? small_float_detail::bits(subnormal) : value;
  return small_float_detail::from_bits(static_cast<Bits>(value | sign));
}

// Returns whether the bits represent NaN.
template <class F>
[[nodiscard]] FL_HD inline bool is_small_nan(typename F::Code code) {
  constexpr std::uint32_t kMagnitude = (1U << (8 * sizeof(typename F::Code) - 1)) - 1;
  return (code & kMagnitude) > F::kLargest + (F::kHasInfinity ? 1 : 0);
}

}  // namespace fl
