// The measures of a run by rounds, in a bounded number of points however long the run is.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl::net {

struct CurvePoint {
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
  std::uint64_t bits_up = 0, bits_down = 0;  // of all rounds so far
};

class RunCurve {
 public:
  static constexpr std::size_t kMostPoints = 800;  // beside the last one

  // Adds a measured round; rounds ascend. When the curve is full, every second point is dropped, and fewer rounds are taken from then on.
  // The last point is always that of the last measured round.
  void add(const CurvePoint& point) {
    if (has_spare_) points_.pop_back();
    has_spare_ = seen_++ % stride_ != 0;
    points_.push_back(point);
    if (has_spare_ || points_.size() <= kMostPoints) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); i += 2) points_[kept++] = points_[i];
    points_.resize(kept);
    stride_ *= 2;
  }
  [[nodiscard]] const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::vector<CurvePoint> points_;
  std::uint64_t seen_ = 0, stride_ = 1;  // measured rounds, and how many of them a point stands for
  bool has_spare_ = false;               // the last point is there only because it is the last
};

}  // namespace fl::net
