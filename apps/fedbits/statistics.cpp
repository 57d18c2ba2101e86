#include "apps/fedbits/statistics.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace fl {
namespace {

// Beyond this many degrees of freedom the sum is cut off: the quantile differs from that of df = infinity by less than 3e-5.
constexpr int kMostDegrees = 100'000;

// P(|T| <= t) at theta = atan(t / sqrt(degrees)).
double central_probability(int degrees, double theta) {
  const double cosine = std::cos(theta), sine = std::sin(theta);
  const bool odd = degrees % 2 == 1;
  // odd: cos + 2/3 cos^3 + 2*4/(3*5) cos^5 + ...    even: 1 + 1/2 cos^2 + 1*3/(2*4) cos^4 + ...    up to cos^(degrees - 2)
  double term = odd ? cosine : 1, sum = degrees > 1 ? term : 0;
  for (int power = odd ? 3 : 2; power <= degrees - 2; power += 2) {
    term *= cosine * cosine * (power - 1) / power;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (theta + sine * sum) : sine * sum;
}

}  // namespace

double student_quantile(int degrees, double confidence) {
  if (degrees > kMostDegrees) degrees = kMostDegrees;
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (central_probability(degrees, middle) < confidence ? low : high) = middle;
  }
  return std::tan((low + high) / 2) * std::sqrt(static_cast<double>(degrees));
}

MeanAndHalfWidth mean_and_half_width(const std::vector<double>& values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(values.size());
  if (values.empty()) return {.mean = kNone, .half_width = kNone};
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() < 2) return {.mean = mean, .half_width = kNone};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (count - 1));
  return {.mean = mean, .half_width = student_quantile(static_cast<int>(values.size()) - 1) * deviation / std::sqrt(count)};
}

}  // namespace fl
