// The end point is the value of a run at a budget of B bits (or rounds). It is the mean of the run's step function over a window before B,
//
//   value = 1 / (w B) * integral of v(t) dt from (1 - w) B to B,   v(t) the value measured last at or before t,   w = 0.2
//
// and not the last measured value. A method whose loss oscillates is therefore judged by the middle of its swing, and the noise of
// minibatches is averaged. A mean of fewer than five evaluations averages neither well enough, and carries no claim.
//
// A run oscillates at B if, within the window,
//   - its evaluations change sides of their mean at three quarters of the steps between them or more, and at least two standard deviations
//     more often than independent values do: c >= max(3/4 (n - 1), (n - 1)/2 + sqrt(n - 1)) of n evaluations; and
//   - the swing is larger than the progress: the standard deviation of v exceeds the change of its mean from the first to the second half.
// Independent noise changes sides at half of the steps, and a steady decrease changes sides once. Whether an oscillation matters depends on
// the distance between the compared methods; equal_bits.hpp adds that condition.
//
// A run diverges at B if a value in the window is not finite, or an objective's mean exceeds RunTrace::diverged_above.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include "fl_core/config/device.hpp"
#include "scenarios/results/trace.hpp"

namespace fl {

inline constexpr double kWindow = 0.2;               // fraction of the budget
inline constexpr std::size_t kLeastEvaluations = 5;  // minimum for an end point that carries a claim

struct EndPoint {
  double value = kNotMeasured;       // NaN if the run had no value at the window's start, or ended before the budget
  double last = kNotMeasured;        // v(B)
  double deviation = kNotMeasured;   // standard deviation of v over the window
  double net_change = kNotMeasured;  // mean of v over the second half of the window minus that over the first half
  std::size_t num_evaluations = 0;   // at different places within the window, both ends included
  bool oscillates = false, diverges = false;
  bool at_start = false;  // the budget ends before the run's first round does: this is the initial model

  // Returns true if the value is a finite mean of enough evaluations.
  [[nodiscard]] bool carries_claim() const { return num_evaluations >= kLeastEvaluations && std::isfinite(value); }
};

// Computes the end point at `budget`. Requires 0 < window <= 1. The value is NaN if the run did not reach the budget or the budget is 0.
[[nodiscard]] FL_API EndPoint end_point(const RunTrace& trace, Against against, double budget, double window = kWindow);

// Returns the reason why an end point carries no claim; "" if it carries one.
[[nodiscard]] FL_API std::string why_no_claim(const EndPoint& end, double window = kWindow, Against against = Against::bits_up);

}  // namespace fl
