// The natural logarithm, rounded alike by every device and compiler.
#pragma once

#include <cmath>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns ln x, within two units in the last place of the exact value: -infinity for 0, NaN for a negative number or NaN. Uses sums,
// products and one quotient of doubles, which IEEE 754 rounds in one way; the functions of the C library and of CUDA differ in the last
// place.
//   x = m 2^e,  sqrt(1/2) <= m < sqrt(2),  s = (m - 1) / (m + 1),   ln x = e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...)
[[nodiscard]] FL_HD inline double portable_log(double x) {
  if (!(x > 0)) return x == 0 ? -HUGE_VAL : NAN;
  if (x == HUGE_VAL) return x;
  constexpr double kRootOfHalf = 0.70710678118654752440;
  constexpr double kLn2High = 0x1.62e42fee00000p-1,
                   kLn2Low = 0x1.a39ef35793c76p-33;  // their sum is ln 2; products of kLn2High with exponents are exact
  int exponent = 0;
  double m = frexp(x, &exponent);
  if (m < kRootOfHalf) {
    m = 2 * m;
    --exponent;
  }
  const double f = m - 1, s = f / (m + 1), z = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = z * (1.0 / k + series);
  return exponent * kLn2High + (2 * s + (2 * s * series + exponent * kLn2Low));
}

}  // namespace fl
