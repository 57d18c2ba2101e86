// The search for the value of an option at which a method sends as many bits as another: bisection in the option's logarithm.
//
// A larger value sends less (a threshold). The search is satisfied within kMatchTolerance of the target. Bits may leap: where a format
// changes, or where a silent client still sends a header. Then the bracket shrinks until its ends differ by no more than kResolution, the
// value whose bits are nearest is kept, and the deviation is reported. Bits that never cross the target end the search at kFarthest.
//
// Over tuning seeds s the deviation of bits b_s from the target t_s is  mean(b)/mean(t) - 1  with the standard error of mean(b - t)/mean(t)
// over the seeds. It counts as matched within the larger of kMatchTolerance and two standard errors.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

inline constexpr double kMatchTolerance = 0.02;  // of the reference's bits
inline constexpr double kResolution = 1e-4;      // of the option, relative: values have four digits

struct MatchedBits {
  double deviation = 0;                // signed, relative to the target
  double tolerance = kMatchTolerance;  // within which it counts as matched
  std::string reference{};             // label of the method whose bits were matched
  [[nodiscard]] bool is_matched() const { return std::fabs(deviation) <= tolerance; }
};

class FL_API BitSearch {
 public:
  explicit BitSearch(std::vector<double> target_bits);  // per seed

  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] double value() const;  // to be tried next, or the one that is kept
  [[nodiscard]] const MatchedBits& matched() const { return kept_match_; }
  // Takes the bits of value(), per seed.
  void observe(const std::vector<double>& bits);
  // Ends the search because the option does not take value(). Before any observation there is nothing to keep.
  void stop() { goes_on_ = false; }
  [[nodiscard]] bool has_observed() const { return num_observed_ > 0; }

 private:
  [[nodiscard]] MatchedBits compare(const std::vector<double>& bits) const;
  void move(double deviation);

  std::vector<double> target_;
  double at_, step_;                  // logarithms
  std::optional<double> few_, many_;  // logarithms of values that send too few and too many bits
  double kept_;                       // logarithm of the value nearest to the target
  MatchedBits kept_match_;
  int num_observed_ = 0, steps_one_way_ = 0;
  bool goes_on_ = true;
};

}  // namespace fl
