#include "scenarios/analysis/survival.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fl {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The survival curve just after one of the times at which runs reached the target.
struct Step {
  double time = 0;
  double survival = 1;       // S(time)
  double low = 0, high = 1;  // its log-log interval
};

std::vector<Step> survival_curve(std::span<const ReachTime> runs) {
  std::vector<double> times;
  for (const ReachTime& run : runs)
    if (run.reached) times.push_back(run.time);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());

  const double z = normal_quantile((1 + kConfidence) / 2);
  std::vector<Step> curve;
  double survival = 1, greenwood = 0;
  for (const double time : times) {
    // A run that ends at this very time still counts as at risk.
    const auto going = static_cast<double>(std::ranges::count_if(runs, [&](const ReachTime& run) { return run.time >= time; }));
    const auto arrive =
        static_cast<double>(std::ranges::count_if(runs, [&](const ReachTime& run) { return run.reached && run.time == time; }));
    survival *= 1 - arrive / going;
    greenwood += arrive / (going * (going - arrive));
    // If no run is left at risk, log(-log S) has no interval: any survival is possible there, as in SciPy and R.
    Step step{.time = time, .survival = survival, .low = 0, .high = 1};
    if (survival > 0) {
      const double spread = z * std::sqrt(greenwood) / std::abs(std::log(survival));
      step.low = std::pow(survival, std::exp(spread));
      step.high = std::pow(survival, std::exp(-spread));
    }
    curve.push_back(step);
  }
  return curve;
}

double first_at_half(const std::vector<Step>& curve, double Step::*member) {
  const auto found = std::ranges::find_if(curve, [member](const Step& step) { return step.*member <= 0.5 + 1e-12; });
  return found == curve.end() ? kNever : found->time;
}

}  // namespace

ReachSummary reach_summary(std::span<const ReachTime> runs) {
  constexpr double kNotReached = std::numeric_limits<double>::quiet_NaN();
  ReachSummary summary{.count = runs.size(),
                       .reached = static_cast<std::size_t>(std::ranges::count_if(runs, &ReachTime::reached)),
                       .median = kNotReached,
                       .interval = {kNotReached, kNotReached}};
  if (runs.empty()) return summary;
  const std::vector<Step> curve = survival_curve(runs);
  summary.median = first_at_half(curve, &Step::survival);
  if (runs.size() > 1) summary.interval = {first_at_half(curve, &Step::low), first_at_half(curve, &Step::high)};
  return summary;
}

}  // namespace fl
