// The regularised lower incomplete gamma function P(a, x) and its inverse, for fits of gamma distributions. Accurate to about 1e-12.
//
//   x < a + 1:  P = x^a e^-x / Gamma(a) * sum_n x^n / (a (a+1) .. (a+n))      else  1 - P by its continued fraction (Lentz)
// Abramowitz, Stegun, "Handbook of mathematical functions", 6.5.29 and 6.5.31.
#pragma once

#include <cmath>

namespace fl {

[[nodiscard]] inline double log_gamma(double a) {
  int sign = 0;
  return ::lgamma_r(a, &sign);  // std::lgamma writes a global variable
}

[[nodiscard]] inline double regularised_gamma(double a, double x) {
  if (!(x > 0)) return 0;
  const double front = std::exp(a * std::log(x) - x - log_gamma(a));
  constexpr int kTerms = 10000;
  constexpr double kTiny = 1e-300;
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < kTerms && term > sum * 1e-17; ++n) {
      term *= x / (a + n);
      sum += term;
    }
    return front * sum;
  }
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int n = 1; n < kTerms; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / (std::fabs(numerator * d + b) > kTiny ? numerator * d + b : kTiny);
    c = std::fabs(b + numerator / c) > kTiny ? b + numerator / c : kTiny;
    fraction *= c * d;
    if (std::fabs(c * d - 1) < 1e-16) break;
  }
  return 1 - front * fraction;
}

// Returns x with P(a, x) = p, for a > 0 and 0 < p < 1. Uses bisection, so that every platform takes the same steps.
[[nodiscard]] inline double inverse_regularised_gamma(double a, double p) {
  double low = 0, high = a + 1;
  while (regularised_gamma(a, high) < p && high < 1e6) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    (regularised_gamma(a, middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace fl
