// A client's times of availability: intervals [from, until), once or repeated with a period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "timing/piece_times.hpp"

namespace fl {

class OnTimes {
 public:
  struct Interval {
    double from_s = 0, until_s = 0;
  };

  OnTimes() = default;
  // The intervals ascend, do not overlap, and end at the period at the latest.
  explicit OnTimes(const std::vector<Interval>& intervals, double period = std::numeric_limits<double>::infinity()) {
    std::vector<double> begins{0};
    is_on_ = {0};
    const auto change = [&](double time, std::uint8_t is_on) {
      if (time >= period) return;
      if (begins.back() == time) {
        is_on_.back() = is_on;
        return;
      }
      begins.push_back(time);
      is_on_.push_back(is_on);
    };
    for (const auto& [from, until] : intervals) {
      change(from, 1);
      change(until, 0);
    }
    times_ = PieceTimes(std::move(begins), period);
  }

  [[nodiscard]] bool is_on(double t) const { return is_on_[times_.piece(t)] != 0; }
  // Returns the first time after t at which is_on changes; infinity: never.
  [[nodiscard]] double next_change(double t) const {
    const bool now = is_on(t);
    double time = t;
    for (std::size_t i = 0; i <= is_on_.size(); ++i) {
      time = times_.next(time);
      if (time == std::numeric_limits<double>::infinity() || is_on(time) != now) return time;
    }
    return std::numeric_limits<double>::infinity();
  }

 private:
  PieceTimes times_;
  std::vector<std::uint8_t> is_on_{0};  // of each piece
};

}  // namespace fl
