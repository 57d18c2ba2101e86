#include "scenarios/analysis/seed_slopes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scenarios/analysis/paired_runs.hpp"
#include "scenarios/analysis/sign_flip.hpp"

namespace fl {
namespace {

// Returns the least-squares slope of y over x; NaN if all x are equal.
double slope_of(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, products = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - mean_x) * (y[i] - mean_y);
    squares += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return squares > 0 ? products / squares : kNotMeasured;
}

// Computes the slope of a seed from its pairs of runs.
void set_slope(SeedSlope& slope, const Contrasts& contrasts, std::uint64_t seed) {
  std::vector<double> x, y;
  for (const PairedRun* one : slope.pairs) {
    if (!one->why.empty() && slope.why.empty())
      slope.why = "level " + contrasts.levels[one->level] + ", seed " + std::to_string(seed) + ": " + one->why;
    x.push_back(one->x);
    y.push_back(one->difference);
    slope.num_capped += (one->a.is_capped ? 1 : 0) + (one->b.is_capped ? 1 : 0);
  }
  if (slope.why.empty() && slope.pairs.size() < contrasts.levels.size())
    slope.why = "seed " + std::to_string(seed) + " does not have all levels";
  if (slope.why.empty()) slope.value = slope_of(x, y);
  if (slope.why.empty() && !std::isfinite(slope.value)) slope.why = "zeta^2 is the same at all levels, or not above 0";
}

}  // namespace

std::vector<std::size_t> identity_of(const std::vector<std::size_t>& first, std::span<const PairedRun* const> pairs) {
  std::vector<std::size_t> runs;
  for (const PairedRun* one : pairs)
    for (const std::size_t run : {one->a.run, one->b.run}) runs.push_back(first[run]);
  return runs;
}

std::map<std::uint64_t, SeedSlope> slopes_by_seed(const Study& study, const Contrasts& contrasts, std::size_t pair, std::size_t group) {
  std::map<std::uint64_t, SeedSlope> slopes;
  for (const PairedRun& one : contrasts.differences)
    if (one.pair == pair && one.group == group) slopes[one.seed].pairs.push_back(&one);
  const std::vector<std::size_t> first = first_of_runs(study);
  for (auto& [seed, slope] : slopes) {
    slope.identity = identity_of(first, slope.pairs);
    set_slope(slope, contrasts, seed);
  }
  return slopes;
}

void add_seed(SlopeContrast& contrast, std::uint64_t seed, const SeedSlope& slope) {
  if (!slope.why.empty()) {
    ++contrast.num_left_out;
    if (contrast.why.empty()) contrast.why = slope.why;
    return;
  }
  contrast.seeds.push_back(seed);
  contrast.slopes.push_back(slope.value);
  contrast.num_capped += slope.num_capped;
}

std::string why_of_runs(const Study& study, const std::vector<const PairedRun*>& all) {
  std::uint64_t refused = 0;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const PairedRun* one : all) {
    refused += study.runs[one->a.run].refused + study.runs[one->b.run].refused;
    if (one->why.empty()) fewest = std::min(fewest, one->num_evaluations);
  }
  if (refused > 0 && !study.rules.claims_despite_refused) return std::to_string(refused) + " updates were refused, not finite";
  if (fewest < kLeastEvaluations)
    return std::to_string(fewest) + (fewest == 1 ? " evaluation" : " evaluations") + " in a window; a claim needs " +
           std::to_string(kLeastEvaluations) + " or more";
  return {};
}

void test_slopes(SlopeContrast& contrast, const Study& study, const std::vector<const PairedRun*>& all) {
  contrast.slope = estimate_mean(contrast.slopes);
  const std::vector<double> zeros(contrast.slopes.size(), 0.0);
  const PairedDifference tested = paired_difference(contrast.slopes, zeros);
  const SignFlip flip = sign_flip_test(contrast.slopes);
  contrast.p_value = tested.p_value;
  contrast.p_flip = flip.p_value;
  contrast.is_exact = flip.is_exact;
  if (contrast.num_left_out > 0) contrast.why = std::to_string(contrast.num_left_out) + " seeds have no slope (" + contrast.why + ")";
  if (contrast.why.empty() && contrast.slopes.empty()) contrast.why = "no pair of runs";
  if (contrast.why.empty() && contrast.slopes.size() < 2) contrast.why = "a single seed has no interval";
  if (contrast.why.empty() && !tested.has_spread)
    contrast.why = "all seeds have the same slope, which does not tell how far chance moves it";
  if (contrast.why.empty()) contrast.why = why_of_runs(study, all);
}

void correct_slopes(std::span<SlopeContrast* const> contrasts, SlopeTest test, Direction direction) {
  std::vector<SlopeContrast*> family;
  std::vector<double> student, flip;
  for (SlopeContrast* slope : contrasts) {
    slope->p_holm = slope->p_value;
    slope->p_flip_holm = slope->p_flip;
    if (slope->slopes.size() < 2) continue;
    family.push_back(slope);
    student.push_back(slope->p_value);
    flip.push_back(slope->p_flip);
  }
  const std::vector<double> adjusted = holm_adjusted(student), adjusted_flip = holm_adjusted(flip);
  for (std::size_t i = 0; i < family.size(); ++i) {
    SlopeContrast& slope = *family[i];
    slope.p_holm = adjusted[i];
    slope.p_flip_holm = adjusted_flip[i];
    const double decides = test == SlopeTest::student ? slope.p_holm : slope.p_flip_holm;
    if (slope.why.empty() && slope.slope.student.contains(0)) slope.why = "the interval contains zero";
    if (slope.why.empty() && decides > 1 - kConfidence) slope.why = "not after Holm's correction";
    if (slope.why.empty())
      slope.verdict = (slope.slope.mean < 0) == (direction == Direction::lower_is_better) ? Verdict::better : Verdict::worse;
  }
}

}  // namespace fl
