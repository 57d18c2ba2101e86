// Means over seeds and differences over paired seeds, with confidence intervals and tests.
//
//   mean +- t_{0.975, n-1} * s / sqrt(n),   s^2 = sum (x - mean)^2 / (n - 1)                    (Student's interval)
//   quantiles a1, a2 of the means of resamples, a_i = Phi(z0 + (z0 + z_i) / (1 - a (z0 + z_i)))  (BCa bootstrap interval)
//   z0 = Phi^-1(share of resampled means below the mean),  a = sum d^3 / (6 (sum d^2)^1.5),  d_i = mean of the x without x_i, centred
//
// Student's t for an integer number of degrees of freedom has a distribution function in closed form: with theta = atan(t / sqrt(df)) it is
// a finite sum of powers of cos(theta) (Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.7.3 and 26.7.4). The quantile
// is found by bisection in theta. BCa, bias-corrected and accelerated: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987).
// Resamples come from the counter-based generator under a fixed key, so equal values give equal intervals on all machines.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/random/normal.hpp"

namespace fl {

inline constexpr double kConfidence = 0.95;  // level of every interval
inline constexpr int kResamples = 4000;      // for each bootstrap interval
inline constexpr double kNoSpread = 1e-9;    // relative to the values: paired differences with a smaller standard deviation count as equal

// Returns the t with P(|T| <= t) = `confidence` for Student's T with `degrees` >= 1 degrees of freedom.
[[nodiscard]] FL_API double student_quantile(int degrees, double confidence = kConfidence);

// Returns P(|T| > |t|), the p-value of a two-sided test. The absolute error is about 1e-15.
[[nodiscard]] FL_API double student_p_value(int degrees, double t);

struct MeanAndHalfWidth {
  double mean = 0;
  double half_width = 0;  // of the 95% interval; NaN for fewer than two values
};

// Returns the mean with its half-width. The mean is NaN if there are no values.
[[nodiscard]] FL_API MeanAndHalfWidth mean_and_half_width(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;  // NaN if unknown
  [[nodiscard]] bool is_known() const { return low <= high; }
  [[nodiscard]] bool contains(double value) const { return low <= value && value <= high; }
};

// Returns the BCa interval of the mean. The interval is a point if all values are equal, and unknown (NaN) for fewer than two values or a
// NaN.
[[nodiscard]] FL_API Interval bootstrap_interval(std::span<const double> values, int resamples = kResamples);

struct Estimate {
  std::size_t count = 0;
  double mean = 0;
  Interval student, bootstrap;
};

[[nodiscard]] FL_API Estimate estimate_mean(std::span<const double> values);

// The mean of differences x_i - y_i of paired values, tested against zero by the paired t-test.
struct PairedDifference {
  Estimate difference{};
  double p_value = 1;  // two-sided; 1 for fewer than two pairs, and for differences without spread
  double p_holm = 1;   // adjusted within its family by correct_family(); equal to p_value before that

  // var(x - y) / (var(x) + var(y)): below 1 if pairing helps, 1 for independent values. NaN for fewer than two pairs or equal values.
  double variance_ratio = std::numeric_limits<double>::quiet_NaN();
  // True if the differences are not all equal up to rounding (kNoSpread of the values). Differences without spread give no estimate of
  // their random variation, so nothing is tested.
  bool has_spread = false;

  // Returns true if a claim is allowed: both intervals are known and exclude zero, and the adjusted p-value is at most 0.05.
  [[nodiscard]] FL_API bool is_claim() const;
};

[[nodiscard]] FL_API PairedDifference paired_difference(std::span<const double> x, std::span<const double> y);

// Returns Holm's step-down adjustment, in the order of the input: with p_(1) <= ... <= p_(m), the adjusted p_(i) is the largest of min(1,
// (m - j + 1) p_(j)) over j <= i. It bounds the probability of any false claim by 0.05 for every dependence between the tests (S. Holm, "A
// simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
[[nodiscard]] FL_API std::vector<double> holm_adjusted(std::span<const double> p_values);

// Sets p_holm of every member of a family of comparisons.
FL_API void correct_family(std::span<PairedDifference* const> family);

}  // namespace fl
