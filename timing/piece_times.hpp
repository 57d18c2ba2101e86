// Times at which the pieces of a schedule begin. The schedule begins at time 0; with a period P it begins again at P, 2P, ...
//
// piece() and next() compare with the same sums k P + begin_j, so that the piece at the time that next() returns is the next one, however
// these sums are rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace fl {

class PieceTimes {
 public:
  PieceTimes() = default;
  // `begins` ascend and start with 0; all lie below the period. A period of infinity never ends.
  explicit PieceTimes(std::vector<double> begins, double period = std::numeric_limits<double>::infinity())
      : begins_(std::move(begins)), period_(period) {}

  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  // Returns the number of the piece at time t >= 0.
  [[nodiscard]] std::size_t piece(double t) const {
    const double start = cycle_start(cycle(t));
    const auto after = std::ranges::upper_bound(begins_, t, {}, [start](double begin) { return start + begin; });
    return static_cast<std::size_t>(after - begins_.begin()) - 1;
  }
  // Returns the first time after t at which a piece begins; infinity: never.
  [[nodiscard]] double next(double t) const {
    const double k = cycle(t), start = cycle_start(k);
    const auto after = std::ranges::upper_bound(begins_, t, {}, [start](double begin) { return start + begin; });
    const double end = cycle_start(k + 1);
    return after == begins_.end() ? end : std::min(start + *after, end);
  }

 private:
  [[nodiscard]] double cycle_start(double k) const { return k == 0 ? 0 : k * period_; }
  // Returns the number k of the cycle with k P <= t < (k + 1) P.
  [[nodiscard]] double cycle(double t) const {
    if (std::isinf(period_)) return 0;
    double k = std::floor(t / period_);
    if (cycle_start(k) > t) --k;
    if (cycle_start(k + 1) <= t) ++k;
    return k;
  }

  std::vector<double> begins_{0};
  double period_ = std::numeric_limits<double>::infinity();
};

}  // namespace fl
