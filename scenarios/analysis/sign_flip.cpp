#include "scenarios/analysis/sign_flip.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>

#include "fl_core/random/random.hpp"
#include "scenarios/analysis/statistics.hpp"

namespace fl {
namespace {

constexpr std::uint64_t kFlipKey = 0x7369676e666c6970;  // "signflip"
constexpr double kTie = 1e-12;                          // relative to the sum of absolute values: sums that differ by less are equal

// Returns the sums of the values under all sign vectors; bit i of the index says whether value i is negative.
std::vector<double> all_sums(std::span<const double> values) {
  std::vector<double> sums = {0};
  for (const double value : values) {
    const std::size_t half = sums.size();
    sums.resize(2 * half);
    for (std::size_t i = 0; i < half; ++i) {
      sums[half + i] = sums[i] - value;
      sums[i] += value;
    }
  }
  return sums;
}

double exact_share(std::span<const double> values, double least) {
  const std::vector<double> left = all_sums(values.first(values.size() / 2)), right = all_sums(values.subspan(values.size() / 2));
  std::uint64_t hits = 0;
  for (const double a : left)
    for (const double b : right) hits += std::abs(a + b) >= least ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(left.size() * right.size());
}

double drawn_share(std::span<const double> values, double least) {
  RandomSequence draws(RandomStream(kFlipKey, static_cast<std::uint32_t>(values.size()), 0));
  int hits = 0;
  for (int flip = 0; flip < kFlips; ++flip) {
    double sum = 0;
    std::uint32_t signs = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 32 == 0) signs = draws.next_bits();
      sum += (signs >> (i % 32) & 1) != 0 ? -values[i] : values[i];
    }
    hits += std::abs(sum) >= least ? 1 : 0;
  }
  return (1.0 + hits) / (1.0 + kFlips);
}

}  // namespace

SignFlip sign_flip_test(std::span<const double> values) {
  SignFlip result{.p_value = 1, .is_exact = values.size() <= kMostExactFlips};
  if (values.size() < 2) return result;
  double sum = 0, size = 0;
  for (const double value : values) {
    sum += value;
    size += std::abs(value);
  }
  if (!std::isfinite(size)) return result;
  const double least = std::abs(sum) - kTie * size;
  result.p_value = result.is_exact ? exact_share(values, least) : drawn_share(values, least);
  return result;
}

double student_lower_tail(int degrees, double t) {
  if (std::isnan(t)) return 1;
  if (std::isinf(t)) return t < 0 ? 0 : 1;
  return boost::math::cdf(boost::math::students_t(degrees), t);
}

double p_value_below(std::span<const double> values, double limit) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 2) return 1;
  double mean = 0, squares = 0, largest = 0;
  for (const double value : values) {
    mean += value / n;
    largest = std::max(largest, std::abs(value));
  }
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (n - 1));
  if (!(deviation > kNoSpread * largest)) return 1;
  return student_lower_tail(static_cast<int>(values.size()) - 1, (mean - limit) / (deviation / std::sqrt(n)));
}

std::vector<std::pair<double, double>> chain_adjusted(std::span<const std::pair<double, double>> chains) {
  std::vector<std::pair<double, double>> adjusted(chains.begin(), chains.end());
  std::vector<int> stage(chains.size(), 0);
  double largest = 0;
  for (std::size_t unfinished = chains.size(); unfinished > 0;) {
    const auto current = [&](std::size_t i) { return stage[i] == 0 ? chains[i].first : chains[i].second; };
    std::size_t least = chains.size();
    for (std::size_t i = 0; i < chains.size(); ++i)
      if (stage[i] < 2 && (least == chains.size() || current(i) < current(least))) least = i;
    largest = std::max(largest, std::min(1.0, static_cast<double>(unfinished) * current(least)));
    (stage[least] == 0 ? adjusted[least].first : adjusted[least].second) = largest;
    if (++stage[least] == 2) --unfinished;
  }
  return adjusted;
}

}  // namespace fl
