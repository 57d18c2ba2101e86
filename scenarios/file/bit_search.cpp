#include "scenarios/file/bit_search.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace fl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostSteps = 60;
constexpr int kPlainSteps = 6;            // decades that are gone through one by one before steps double
constexpr double kFirstTry = 1e-2;        // where a search begins matters little
const double kFarthest = std::log(1e40);  // either way from 1: beyond it floats have no numbers

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Four digits are enough for 2% and can be read.
double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return std::strtod(text, nullptr);
}

// Returns the distance of bits from the target, which is the same for half the target and for twice the target.
double distance(double deviation) { return std::fabs(std::log1p(std::max(deviation, -1 + 1e-12))); }

}  // namespace

BitSearch::BitSearch(std::vector<double> target_bits)
    : target_(std::move(target_bits)), at_(std::log(kFirstTry)), step_(std::log(10.0)), kept_(at_) {}

double BitSearch::value() const { return rounded(std::exp(goes_on_ ? at_ : kept_)); }

MatchedBits BitSearch::compare(const std::vector<double>& bits) const {
  const double target = mean_of(target_), sent = mean_of(bits);
  MatchedBits match{.deviation = target > 0 ? sent / target - 1 : sent > 0 ? kInfinity : 0};
  if (bits.size() < 2 || !(target > 0)) return match;
  std::vector<double> difference(bits.size());
  for (std::size_t s = 0; s < bits.size(); ++s) difference[s] = bits[s] - target_[s];
  const double mean = mean_of(difference), n = static_cast<double>(bits.size());
  double sum = 0;
  for (const double d : difference) sum += (d - mean) * (d - mean);
  match.tolerance = std::max(kMatchTolerance, 2 * std::sqrt(sum / (n - 1) / n) / target);
  return match;
}

void BitSearch::observe(const std::vector<double>& bits) {
  const MatchedBits match = compare(bits);
  const bool is_enough = std::fabs(match.deviation) <= kMatchTolerance;
  if (num_observed_++ == 0 || is_enough || distance(match.deviation) < distance(kept_match_.deviation)) {
    kept_ = at_;
    kept_match_ = match;
  }
  if (is_enough || num_observed_ == kMostSteps)
    stop();
  else
    move(match.deviation);
}

// Until both sides are known, further in the direction that is missing; then to the middle.
void BitSearch::move(double deviation) {
  (deviation > 0 ? many_ : few_) = at_;
  if (few_ && many_) {
    at_ = (*few_ + *many_) / 2;
    goes_on_ = std::fabs(*few_ - *many_) > kResolution;
    return;
  }
  if (++steps_one_way_ > kPlainSteps) step_ *= 2;
  at_ += deviation > 0 ? step_ : -step_;
  goes_on_ = std::fabs(at_) <= kFarthest;
}

}  // namespace fl
