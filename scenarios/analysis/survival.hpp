// Estimates the time until an event that some runs never reach, such as the bits to a target accuracy.
//
//   S(t) = prod over t_i <= t of (1 - d_i / n_i),   n_i runs at risk at t_i, d_i of them reach the target at t_i    (Kaplan-Meier)
//   Var log(-log S) = sum d_i / (n_i (n_i - d_i)) / (log S)^2                                                      (Greenwood)
//
// A run that ends before it reaches the target is censored: it needs more than it had, and a mean over the runs that reached the target
// would be too small. The median is the first t with S(t) <= 1/2; its 95% interval holds the t at which the log-log interval of S(t)
// contains 1/2. S(t) = 0 has no such interval, so it gives no upper limit: if all of five runs reach the target, the upper limit is
// infinity, as in R's survfit and SciPy's ecdf. A single run has no interval. E. L. Kaplan and P. Meier, "Nonparametric estimation from
// incomplete observations", JASA 53 (1958); R. Brookmeyer and J. Crowley, "A confidence interval for the median survival time", Biometrics
// 38 (1982).
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/statistics.hpp"

namespace fl {

struct ReachTime {
  double time = 0;       // when the target was reached or the run ended; infinity: never reached (a run that diverged)
  bool reached = false;  // false: censored at `time`
};

struct ReachSummary {
  std::size_t count = 0, reached = 0;
  double median = 0;    // infinity: at least half of the runs never reached the target
  Interval interval{};  // of the median; `high` is infinity if the interval of S(t) is never entirely below 1/2
};

[[nodiscard]] FL_API ReachSummary reach_summary(std::span<const ReachTime> runs);

}  // namespace fl
