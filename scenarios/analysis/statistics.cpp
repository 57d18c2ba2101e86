#include "scenarios/analysis/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "fl_core/random/random.hpp"

namespace fl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kSameMean = 1e-9;                           // relative to the range of the values
constexpr std::uint64_t kBootstrapKey = 0x626f6f7473747270;  // "bootstrp"

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size() - 1);
}

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

RandomSequence resampling_draws(std::size_t values) {
  return RandomSequence(RandomStream(kBootstrapKey, static_cast<std::uint32_t>(values), 0));
}

constexpr std::size_t kMostKeptValues = 256;

// Returns the positions of `resamples` resamples of few values, one resample after another. The positions depend only on the number of
// values. They are cached for the last size, because a study needs thousands of intervals of one size.
const std::vector<std::uint8_t>& kept_positions(std::size_t values, std::size_t resamples) {
  thread_local std::size_t kept_for = 0;
  thread_local std::vector<std::uint8_t> positions;
  if (kept_for != values || positions.size() != values * resamples) {
    RandomSequence draws = resampling_draws(values);
    positions.resize(values * resamples);
    for (std::uint8_t& position : positions) position = static_cast<std::uint8_t>(draws.below(values));
    kept_for = values;
  }
  return positions;
}

// Returns the means of resamples of the values, unordered.
std::vector<double> resampled_means(std::span<const double> values, int resamples) {
  const std::size_t n = values.size();
  std::vector<double> means(static_cast<std::size_t>(resamples));
  const auto fill = [&](auto&& next) {
    for (double& mean : means) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += values[next()];
      mean = sum / static_cast<double>(n);
    }
  };
  if (n <= kMostKeptValues) {
    fill([position = kept_positions(n, means.size()).data()]() mutable { return *position++; });
  } else {
    fill([draws = resampling_draws(n), n]() mutable { return draws.below(n); });
  }
  return means;
}

// Returns Efron's a, from the means that leave one value out: d_i = (mean - x_i) / (n - 1).
double acceleration(std::span<const double> values, double mean) {
  double squares = 0, cubes = 0;
  for (const double value : values) {
    const double d = value - mean;
    squares += d * d;
    cubes += d * d * d;
  }
  return cubes / (6 * std::pow(squares, 1.5));
}

// Returns a quantile by linear interpolation between order statistics. Changes the order of the values.
double quantile_of(std::vector<double>& values, double p) {
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(values, below);
  const double above = below + 1 == values.end() ? *below : *std::min_element(below + 1, values.end());
  return std::lerp(*below, above, place - static_cast<double>(below - values.begin()));
}

// Clamps a probability so that its normal quantile is finite.
double inside_unit(double p, int resamples) { return std::clamp(p, 0.5 / resamples, 1 - 0.5 / resamples); }

}  // namespace

double student_quantile(int degrees, double confidence) {
  return boost::math::quantile(boost::math::students_t(degrees), (1 + confidence) / 2);
}

double student_p_value(int degrees, double t) {
  if (std::isnan(t)) return 1;
  if (std::isinf(t)) return 0;
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), std::abs(t)));
}

MeanAndHalfWidth mean_and_half_width(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  if (values.empty()) return {.mean = kNone, .half_width = kNone};
  const double mean = mean_of(values);
  if (values.size() < 2) return {.mean = mean, .half_width = kNone};
  if (std::ranges::all_of(values, [&](double value) { return value == values[0]; }))
    return {.mean = values[0], .half_width = 0};  // exactly 0, not 1e-17
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (count - 1));
  return {.mean = mean, .half_width = student_quantile(static_cast<int>(values.size()) - 1) * deviation / std::sqrt(count)};
}

Interval bootstrap_interval(std::span<const double> values, int resamples) {
  if (values.size() < 2 || !std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) return {kNone, kNone};
  const auto [least, most] = std::ranges::minmax(values);
  if (least == most) return {least, most};
  const double mean = mean_of(values);
  std::vector<double> means = resampled_means(values, resamples);
  // Ties count half, because the resampled mean has few possible values if there are few seeds. Means that differ only by rounding, such as
  // means of the same values in another order, are ties.
  const double rounding =
      kSameMean * (most - least) + 4 * static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon() * largest_of(values);
  const auto is_tie = [&](double resampled) { return std::abs(resampled - mean) <= rounding; };
  const auto less = std::ranges::count_if(means, [&](double resampled) { return resampled < mean && !is_tie(resampled); });
  const double below = static_cast<double>(less) + static_cast<double>(std::ranges::count_if(means, is_tie)) / 2;
  const double z0 = normal_quantile(inside_unit(below / resamples, resamples)), a = acceleration(values, mean);
  const auto end = [&](double tail) {
    const double z = z0 + normal_quantile(tail);
    return quantile_of(means, inside_unit(normal_probability(z0 + z / (1 - a * z)), resamples));
  };
  return {end((1 - kConfidence) / 2), end((1 + kConfidence) / 2)};
}

Estimate estimate_mean(std::span<const double> values) {
  const MeanAndHalfWidth student = mean_and_half_width(values);
  return {.count = values.size(),
          .mean = student.mean,
          .student = {student.mean - student.half_width, student.mean + student.half_width},
          .bootstrap = bootstrap_interval(values)};
}

bool PairedDifference::is_claim() const {
  const auto leaves_zero_out = [](const Interval& interval) { return interval.is_known() && !interval.contains(0); };
  return leaves_zero_out(difference.student) && leaves_zero_out(difference.bootstrap) && p_holm <= 1 - kConfidence;
}

PairedDifference paired_difference(std::span<const double> x, std::span<const double> y) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) differences.push_back(x[i] - y[i]);
  PairedDifference result{.difference = estimate_mean(differences)};
  const Estimate& d = result.difference;
  if (differences.size() < 2 || !d.student.is_known()) return result;
  const int degrees = static_cast<int>(differences.size()) - 1;
  const double half_width = d.student.high - d.mean;
  const double terms = variance_of(x) + variance_of(y), of_differences = variance_of(differences);
  if (terms > 0) result.variance_ratio = of_differences / terms;
  result.has_spread = std::sqrt(of_differences) > kNoSpread * std::max(largest_of(x), largest_of(y));
  if (!result.has_spread) return result;
  // t = mean / (s / sqrt(n)); the half width is a multiple of that denominator.
  result.p_value = student_p_value(degrees, d.mean / half_width * student_quantile(degrees));
  result.p_holm = result.p_value;
  return result;
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  const std::size_t m = p_values.size();
  std::vector<std::size_t> order(m);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(m);
  double largest = 0;
  for (std::size_t i = 0; i < m; ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(m - i) * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

void correct_family(std::span<PairedDifference* const> family) {
  std::vector<double> p_values;
  for (const PairedDifference* member : family) p_values.push_back(member->p_value);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < family.size(); ++i) family[i]->p_holm = adjusted[i];
}

}  // namespace fl
