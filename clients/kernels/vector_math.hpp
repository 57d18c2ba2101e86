// exp and log1p on vectors of doubles, below 2 ulp.
//
// exp(x):   x = n ln2 + r with |r| <= ln2/2; Taylor polynomial of degree 13 in r (remainder below 5e-18), scaled by 2^n in two factors so
//           that overflow, gradual underflow, infinities and NaN come out as in the standard library.
// log1p(t): for t in [0,1] only, as log(1 + exp(-|z|)) needs. 1+t above sqrt(2) is halved; then with f the rest and
//           s = f/(2+f): log(1+f) = f - (f^2/2 - s (f^2/2 + R(s^2))), R from the series of 2 atanh(s).
#pragma once

#include "clients/kernels/simd.hpp"

namespace fl::kernels {

namespace detail {

// Returns 2^n for |n| <= 1022.
[[gnu::always_inline]] inline VecD power_of_two(VecI n) { return reinterpret_cast<VecD>((n + 1023) << 52); }

}  // namespace detail

[[gnu::always_inline]] inline VecD exp(VecD x) {
  constexpr double kShift = 0x1.8p52;  // adding it rounds to an integer, which is then in the low bits
  const VecD high = broadcast(710.0), low = broadcast(-746.0);
  x = x > high ? high : x;
  x = x < low ? low : x;
  const VecD shifted = x * 0x1.71547652b82fep+0 + kShift;
  const VecD n = shifted - kShift;
  const VecI exponent = reinterpret_cast<VecI>(shifted) - reinterpret_cast<VecI>(broadcast(kShift));
  // ln2 is split into two parts; the first has 11 trailing zero bits, so n times it is exact.
  const VecD r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
  const VecD r2 = r * r, r4 = r2 * r2;
  const VecD q0 = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
  const VecD q1 = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
  const VecD q2 = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
  const VecD y = 1.0 + (r + r2 * (q0 + r4 * (q1 + r4 * q2)));
  const VecI first = exponent >> 1;
  return y * detail::power_of_two(first) * detail::power_of_two(exponent - first);
}

[[gnu::always_inline]] inline VecD log1p_unit(VecD t) {
  const auto halved = t > broadcast(0x1.a827999fcef32p-2);
  const VecD f = halved ? (t - 1.0) * 0.5 : t;
  const VecD s = f / (2.0 + f);
  const VecD z = s * s, z2 = z * z, z4 = z2 * z2;
  const VecD low = (2.0 / 3 + z * (2.0 / 5)) + z2 * (2.0 / 7 + z * (2.0 / 9));
  const VecD middle = (2.0 / 11 + z * (2.0 / 13)) + z2 * (2.0 / 15 + z * (2.0 / 17));
  const VecD series = z * (low + z4 * (middle + z4 * (2.0 / 19 + z * (2.0 / 21))));
  const VecD half_square = 0.5 * f * f;
  const VecD correction = half_square - s * (half_square + series);
  const VecD upper = 0x1.62e42fefa39efp-1 + (f - (correction - 0x1.abc9e3b39803fp-56));
  return halved ? upper : f - correction;
}

[[gnu::always_inline]] inline VecD absolute(VecD x) { return x < VecD{} ? -x : x; }

}  // namespace fl::kernels
