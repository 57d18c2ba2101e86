// The weighted average of a run's models, as theorems of convex optimisation use it.
//
//   x^_T = sum_{t<T} w_t x_t / sum_{t<T} w_t,   w_t = q^{-(t+1)},   q = 1 - gamma mu / 2        (mu = 0: the plain mean)
//
// The weights grow without bound, so this class stores (sum_{s<=t} w_s) / w_t, which is bounded if mu > 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/state/archive.hpp"

namespace fl {

class ModelAverage {
 public:
  ModelAverage(std::size_t P, double q) : mean_(P, 0.0), q_(q) {}

  // Adds x_t [P], the next model. All models have the same length.
  template <class T>
  void add(std::span<const T> x) {
    total_ = 1 + q_ * total_;
    for (std::size_t j = 0; j < x.size(); ++j) mean_[j] += (static_cast<double>(x[j]) - mean_[j]) / total_;
  }
  [[nodiscard]] const std::vector<double>& value() const { return mean_; }  // [P]

  void persist(Archive& archive) {
    archive.section("average");
    archive.value(total_);
    archive.array(std::span<double>(mean_));
  }

 private:
  std::vector<double> mean_;
  double q_, total_ = 0;  // sum of the weights so far, relative to the last one
};

}  // namespace fl
