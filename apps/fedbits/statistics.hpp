// Means over paired seeds, with confidence intervals.
//
//   mean +- t_{0.975, n-1} * s / sqrt(n),   s^2 = sum (x - mean)^2 / (n - 1)
//
// Student's t for a whole number of degrees of freedom has a distribution function in closed form: with theta = atan(t / sqrt(df)) it is a
// finite sum of powers of cos(theta) (Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.7.3 and 26.7.4). The quantile
// is found by bisection in theta.
#pragma once

#include <vector>

namespace fl {

// P(|T| <= t) is `confidence` for Student's T with `degrees` >= 1 degrees of freedom; returns t.
[[nodiscard]] double student_quantile(int degrees, double confidence = 0.95);

struct MeanAndHalfWidth {
  double mean = 0;
  double half_width = 0;  // of the 95% interval; NaN for fewer than two values
};

// The mean is NaN for no values.
[[nodiscard]] MeanAndHalfWidth mean_and_half_width(const std::vector<double>& values);

}  // namespace fl
