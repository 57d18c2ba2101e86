// Methods compared at equal bits, and by the bits they need for a target.
//
// Equal bits by truncation: for a pair of methods and a seed, the budget B is the largest number of bits that both runs reached, and each
// run stands for its end point at B (end_point.hpp): the mean over the last fifth of the budget. The differences over seeds are paired.
// Seeds whose runs are the same run on both sides are one pair (replicates.hpp).
//
// No claim is made from fewer than five evaluations in a window, from differences without spread, or about cells in which updates were
// refused, whatever the intervals say.
//
// Bits to a target: where each run first measured the target as reached, censored at its end when it never did (survival.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/analysis/survival.hpp"

namespace fl {

// Of the distance between two methods: a smaller swing of an oscillating run cannot decide between them, and is not flagged.
inline constexpr double kSwingShare = 0.1;

enum class Verdict { better, worse, no_claim };
[[nodiscard]] constexpr const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
    case Verdict::no_claim: return "no claim";
  }
  return "no claim";
}

// The end points of a cell's runs, one per distinct run.
struct CellEnds {
  Estimate value{};  // of finite end points; NaN if any diverged
  std::size_t num_runs = 0, num_oscillating = 0, num_diverged = 0;
  std::size_t num_at_start = 0;     // that have not finished a round within the budget
  std::size_t num_evaluations = 0;  // the fewest in the window of any run
  double deviation = 0;             // mean over the runs of the standard deviation within the window

  // More than half of the runs oscillate, with a swing that matters at this distance to another method.
  [[nodiscard]] bool oscillates(double distance) const { return 2 * num_oscillating > num_runs && deviation > kSwingShare * distance; }
};

// A method against the baseline, in one panel; or its values alone, for the baseline itself and for references.
struct EqualBitsComparison {
  std::size_t panel = 0, method = 0;
  PairedDifference paired{};           // method - baseline, at the budget of each seed
  CellEnds value{}, baseline_value{};  // at that budget
  Estimate budget_bits{};              // over the pairs
  std::size_t num_seeds = 0;           // that both have; more than the pairs where seeds gave the same runs
  std::vector<std::uint64_t> seeds{};  // the pairs; of equal pairs the smallest seed
  std::vector<double> differences{};   // [pairs]
  double share = kNotMeasured;         // of the baseline's bits, of compare_at_shares()
  Verdict verdict = Verdict::no_claim;
  std::string why{};      // of no claim, for a reader; "" for a claim
  std::string remarks{};  // "oscillates", "baseline oscillates", "2 updates refused"; "" for none
};

// All alternatives to the baseline, in all panels: one family, corrected together by Holm. `against` is one of the kinds of bits.
[[nodiscard]] FL_API std::vector<EqualBitsComparison> compare_at_equal_bits(const Study& study, std::size_t measure, Against against);

// The same at shares of the bits that the baseline's run of the seed sends in all, for all methods in all panels: the alternatives at all
// shares are one family. A method has no value at a budget before which a run of it ends; a run that misses it by less than kFewBits
// (baseline.hpp) is compared where it ended.
inline constexpr std::array kShares = {0.25, 0.5, 1.0};
[[nodiscard]] FL_API std::vector<EqualBitsComparison> compare_at_shares(const Study& study, std::size_t measure, Against against,
                                                                        std::span<const double> shares = kShares);

// Whose runs a common budget is the largest that all of them reached, seed by seed. References and cells that are not all done do not bound
// it.
enum class Budget {
  of_panel,     // all methods of a panel: to compare methods
  over_levels,  // and all levels, the other axes fixed: to compare levels as well
};

struct AtCommonBits {
  std::size_t panel = 0, method = 0;
  CellEnds ends{};
  Estimate budget_bits{};
  std::string remarks{};  // "oscillates", compared with the distance to the nearest other method; "2/5 diverged"; "" for none
};
[[nodiscard]] FL_API std::vector<AtCommonBits> values_at_common_bits(const Study& study, std::size_t measure, Against against,
                                                                     Budget budget);

// Each cell at the end of its own runs: what it reached, and for how many bits.
[[nodiscard]] FL_API std::vector<AtCommonBits> values_at_own_end(const Study& study, std::size_t measure, Against against);

struct BitsToTarget {
  std::size_t panel = 0, method = 0;
  ReachSummary bits{};  // of distinct runs
};
[[nodiscard]] FL_API std::vector<BitsToTarget> bits_to_target(const Study& study, std::size_t measure, Against against, double target);

// A target for a study that was given none: the worst end point among the baseline's finished runs, each at its own end of uplink bits; all
// of these reach it. Chosen after the fact, so that what it shows is a description and no test. NaN when there is no such run.
[[nodiscard]] FL_API double default_target(const Study& study, std::size_t measure);

}  // namespace fl
