// Contrasts of methods over the levels of heterogeneity: does a method gain or lose against another as the clients differ more?
//
// A contrast is a pair of methods (A, B), for example of two classes of compressors. For each group, one combination of the labels of all
// axes except method and level (such as problem and feedback), and for each seed s and level l
//
//   d_sl = log(A / B)  for a gap f - f*,   A - B  for any other measure          (end points at the bits that both runs reached)
//   b_s  = sum_l (x_sl - mean_l x_s) (d_sl - mean_l d_s) / sum_l (x_sl - mean_l x_s)^2          (the seed's least-squares slope)
//
// where x_sl is log zeta^2 of the seed's split at x_0 or at x*, or the place of the level in an order. The slopes b_s are independent
// observations: their mean has Student's interval, a t test and a sign-flip test. All slopes of one measure at one kind of bits are a
// family, adjusted by Holm's rule. Differences of slopes between groups, such as two feedbacks, are another (slope_differences.hpp).
//
// A diverged run is not left out, because a method would gain by diverging. An objective counts at most as much as at the initial model
// (f(x_0) - f* for a gap), and an accuracy at least as much as chance, 1 / classes (other shares: as the initial model, or as `chance`).
// This bound holds for all runs, so that no finished run is worse than a diverged one. A diverged run does not shorten the budget of its
// pair.
//
// Non-inferiority, at the strongest level: A is not worse than B by more than a margin. One-sided t tests at 2.5%, which agree with the 95%
// interval; superiority is tested only after non-inferiority was shown (sign_flip.hpp adjusts these chains).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/config/options.hpp"
#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/file/analysis_plan.hpp"

namespace fl {

// The horizontal axis of the slopes.
enum class Heterogeneity { at_start, at_optimum, order };
[[nodiscard]] constexpr const char* to_string(Heterogeneity axis) {
  switch (axis) {
    case Heterogeneity::at_start: return "start";
    case Heterogeneity::at_optimum: return "optimum";
    case Heterogeneity::order: return "order";
  }
  return "start";
}

enum class SlopeTest { student, sign_flip };

struct ContrastPair {
  std::string a, b;  // labels of methods
};

// Two labels of an axis, "KEY=A:B", between which slopes are compared.
struct LabelPair {
  std::string key, a, b;
};

inline constexpr double kOneSidedError = 0.025;  // of tests of non-inferiority and superiority

struct ContrastOptions {
  std::vector<std::string> contrasts{};          // "A:B"; labels of methods
  std::vector<std::string> between{};            // "KEY=A:B": labels of an axis between which slopes are compared
  std::array<std::string, 2> classes{};          // names of the classes of the A and of the B; "" for none
  std::optional<Heterogeneity> heterogeneity{};  // default: x* if all runs know it, else x_0 if all do, else the order
  std::vector<std::string> levels{};             // labels from the least to the most heterogeneous; empty: all, ordered by mean zeta^2
  std::vector<Margin> margins{};                 // a ratio applies to gaps, points to shares
  std::optional<double>
      chance{};  // share that a diverged run counts as; default: 1 / classes for an accuracy, else the one of its initial model
  SlopeTest test = SlopeTest::student;  // the test whose adjusted p-value decides
};

inline constexpr std::size_t kNoEvaluations = std::numeric_limits<std::size_t>::max();

// One side of a pair of runs.
struct PairSide {
  std::size_t run = 0;  // index into Study::runs
  double value = kNotMeasured;
  bool is_capped = false;  // the value is the initial model's, or chance
};

// One pair of runs: the same group, level and seed.
struct PairedRun {
  std::size_t pair = 0, group = 0, level = 0;  // indices into Contrasts
  std::uint64_t seed = 0;
  PairSide a{}, b{};
  double zeta_at_start = kNotMeasured, zeta_at_optimum = kNotMeasured;
  double x = kNotMeasured;  // place on the axis of the slopes
  double difference = kNotMeasured;
  double budget = kNotMeasured;
  std::size_t num_evaluations = kNoEvaluations;  // minimum over the runs that did not diverge; kNoEvaluations if both did
  std::string why{};                             // reason why the pair has no difference; "" for a pair that is used
};

// The slopes of one pair of methods in one group.
struct SlopeContrast {
  std::size_t pair = 0, group = 0;
  std::vector<std::uint64_t> seeds{};
  std::vector<double> slopes{};  // [seeds]
  Estimate slope{};
  double p_value = 1, p_holm = 1;  // t test
  double p_flip = 1, p_flip_holm = 1;
  bool is_exact = true;                 // the sign-flip test counted all sign vectors
  std::size_t num_capped = 0;           // values that count as the initial model's
  std::size_t num_left_out = 0;         // seeds without a slope
  Verdict verdict = Verdict::no_claim;  // better: A gains against B as heterogeneity grows
  std::string why{};
};

// The difference of slopes between two groups (slope_differences.hpp).
struct SlopeDifference {
  std::size_t between = 0;      // index into Contrasts::between
  std::size_t other_group = 0;  // group with the second label
  SlopeContrast contrast{};     // of the group with the first label; its slopes are the seeds' differences
};

enum class MarginResult { not_shown, non_inferior, superior };
[[nodiscard]] constexpr const char* to_string(MarginResult result) {
  switch (result) {
    case MarginResult::not_shown: return "not shown";
    case MarginResult::non_inferior: return "non-inferior";
    case MarginResult::superior: return "superior";
  }
  return "not shown";
}

// A compared with B at the strongest level.
struct MarginContrast {
  std::size_t pair = 0, group = 0, level = 0;
  Estimate difference{};  // log ratio of gaps, or difference of shares
  double p_non_inferior = 1, p_superior = 1;
  double p_non_inferior_adjusted = 1, p_superior_adjusted = 1;
  MarginResult result = MarginResult::not_shown;
  std::string why{};
};

struct Contrasts {
  std::vector<ContrastPair> pairs{};
  std::vector<LabelPair> between{};
  std::array<std::string, 2> classes{};
  std::vector<std::string> groups{};  // labels of the other axes, "" without other axes
  std::vector<std::string> levels{};  // from the least to the most heterogeneous
  Heterogeneity heterogeneity = Heterogeneity::order;
  SlopeTest test = SlopeTest::student;
  std::optional<Margin> margin{};  // the one that fits the measure
  bool is_log_ratio = false;
  std::vector<PairedRun> differences{};
  std::vector<SlopeContrast> slopes{};
  std::vector<SlopeDifference> slope_differences{};
  std::vector<MarginContrast> margins{};  // empty without a margin that fits
};

// Splits the contrasts of the options into pairs of the study's methods. Unknown labels are problems.
[[nodiscard]] FL_API std::vector<ContrastPair> contrast_pairs(const Study& study, const ContrastOptions& options, Problems& problems);

// Computes all contrasts of a measure. `against` is one of the kinds of bits. Throws ConfigError for unknown labels, for a study without a
// level axis or with a single level, and for a margin that fits no measure of the study.
[[nodiscard]] FL_API Contrasts contrast_methods(const Study& study, std::size_t measure, Against against, const ContrastOptions& options);

}  // namespace fl
