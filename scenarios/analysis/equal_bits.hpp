// Compares methods at equal bits, and by the bits they need to reach a target.
//
// Equal bits by truncation: for a pair of methods and a seed, the budget B is the largest number of bits that both runs reached. Each run
// is represented by its end point at B (end_point.hpp), the mean over the last fifth of the budget. The differences over seeds are paired.
// Seeds whose runs are identical on both sides count as one pair (replicates.hpp).
//
// No claim is made from fewer than five evaluations in a window, from differences without spread, or about cells with refused updates, even
// if the intervals would support it.
//
// Bits to a target: the place at which each run first measured the target as reached. A run that never reached it is censored at its end
// (survival.hpp).
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

// Fraction of the distance between two methods. A smaller swing of an oscillating run cannot change their order, and is not flagged.
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

// The unit in which a reader compares differences to the baseline: points of a share, else per cent of the baseline's value.
struct DifferenceUnit {
  double factor = 1;
  const char* name = "";  // " points", "%", or "" where the baseline's value is 0
};

// The end points of a cell's distinct runs.
struct CellEnds {
  Estimate value{};  // mean of the end points; NaN if any run diverged
  std::size_t num_runs = 0, num_oscillating = 0, num_diverged = 0;
  std::size_t num_at_start = 0;     // runs that have not finished a round within the budget
  std::size_t num_evaluations = 0;  // minimum over the runs of the number in the window
  double deviation = 0;             // mean over the runs of the standard deviation within the window

  // Returns true if more than half of the runs oscillate with a swing that is large compared with this distance to another method.
  [[nodiscard]] bool oscillates(double distance) const { return 2 * num_oscillating > num_runs && deviation > kSwingShare * distance; }
};

// A method compared with the baseline in one panel. For the baseline itself and for references only the values are set.
struct EqualBitsComparison {
  std::size_t panel = 0, method = 0;
  PairedDifference paired{};           // method - baseline, at the budget of each seed
  CellEnds value{}, baseline_value{};  // end points at this budget
  Estimate budget_bits{};              // over the pairs
  std::size_t num_seeds = 0;           // seeds that both methods have; larger than the number of pairs if seeds gave the same runs
  std::vector<std::uint64_t> seeds{};  // seeds of the pairs; for equal pairs the smallest seed
  std::vector<double> differences{};   // [pairs]
  double share = kNotMeasured;         // fraction of the baseline's bits, set by compare_at_shares()
  Verdict verdict = Verdict::no_claim;
  std::string why{};      // reason why no claim is made, for a reader; "" for a claim
  std::string remarks{};  // "oscillates", "baseline oscillates", "2 updates refused"; "" for none
};

[[nodiscard]] FL_API DifferenceUnit unit_of_difference(const Study& study, std::size_t measure, const EqualBitsComparison& comparison);

// Compares all alternatives with the baseline in all panels. They form one family, corrected by Holm. `against` is one of the kinds of
// bits.
[[nodiscard]] FL_API std::vector<EqualBitsComparison> compare_at_equal_bits(const Study& study, std::size_t measure, Against against);

// Compares all methods in all panels at fractions of the total bits that the baseline's run of the seed sends. The alternatives at all
// fractions form one family. A method has no value at a budget that a run of it does not reach, except that a run that misses the budget by
// less than kFewBits (baseline.hpp) is compared at its end.
inline constexpr std::array kShares = {0.25, 0.5, 1.0};
[[nodiscard]] FL_API std::vector<EqualBitsComparison> compare_at_shares(const Study& study, std::size_t measure, Against against,
                                                                        std::span<const double> shares = kShares);

// Selects the runs that bound a common budget, which is the largest budget that all of them reached, seed by seed. References and
// unfinished cells do not bound it.
enum class Budget {
  of_panel,     // all methods of a panel: compares methods
  over_levels,  // all methods and levels, with the other axes fixed: also compares levels
};

struct AtCommonBits {
  std::size_t panel = 0, method = 0;
  CellEnds ends{};
  Estimate budget_bits{};
  std::string remarks{};  // "oscillates", relative to the distance to the nearest other method; "2/5 diverged"; "" for none
};
[[nodiscard]] FL_API std::vector<AtCommonBits> values_at_common_bits(const Study& study, std::size_t measure, Against against,
                                                                     Budget budget);

// Returns the value of each cell at the end of its own runs, and the bits that it sent.
[[nodiscard]] FL_API std::vector<AtCommonBits> values_at_own_end(const Study& study, std::size_t measure, Against against);

struct BitsToTarget {
  std::size_t panel = 0, method = 0;
  ReachSummary bits{};  // over the distinct runs
};
[[nodiscard]] FL_API std::vector<BitsToTarget> bits_to_target(const Study& study, std::size_t measure, Against against, double target);

// Returns a default target for a study: the worst end point among the baseline's finished runs, each at its own end of uplink bits. All of
// these runs reach it. The target is chosen after the fact, so its results describe and do not test. Returns NaN if no such run exists.
[[nodiscard]] FL_API double default_target(const Study& study, std::size_t measure);

}  // namespace fl
