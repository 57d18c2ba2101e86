// Methods compared at equal bits, and by the bits they need for a target.
//
// Equal bits by truncation: for a pair of methods and a seed, the budget B is the largest number of bits that both runs reached, and each
// run stands for what it last measured at or before B. The differences over seeds are paired. A run that is measured rarely is judged by
// an old value: where a value used is not from the last round within the budget and was measured below 90% of it, no claim is made
// whatever the intervals say.
//
// Bits to a target: where each run first measured the target as reached, censored at its end when it never did (survival.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fl_core/device.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/analysis/survival.hpp"

namespace fl {

inline constexpr double kFreshShare = 0.9;  // of the budget: older measurements carry no claim

enum class Verdict { better, worse, no_claim };
[[nodiscard]] constexpr const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
    case Verdict::no_claim: return "no claim";
  }
  return "no claim";
}

// A method against the baseline, in one panel.
struct EqualBitsComparison {
  std::size_t panel = 0, method = 0;
  PairedDifference paired{};           // method - baseline, at the budget of each seed
  Estimate value{}, baseline_value{};  // at that budget
  Estimate budget_bits{};              // over the seeds
  double measured_share = 1;           // smallest RunTrace::freshness of a value used
  std::vector<std::uint64_t> seeds{};  // the pairs
  std::vector<double> differences{};   // [pairs]
  Verdict verdict = Verdict::no_claim;
  std::string why{};  // of no claim, for a reader; "" for a claim
};

// All methods but the baseline, in all panels: one family, corrected together by Holm. `against` is one of the kinds of bits.
[[nodiscard]] FL_API std::vector<EqualBitsComparison> compare_at_equal_bits(const Study& study, std::size_t measure, Against against);

// Whose runs a common budget is the largest that all of them reached, seed by seed. Cells that are not all done take no part.
enum class Budget {
  of_panel,     // all methods of a panel: to compare methods
  over_levels,  // and all levels, the other axes fixed: to compare levels as well
};

struct AtCommonBits {
  std::size_t panel = 0, method = 0;
  Estimate value{}, budget_bits{};
  double measured_share = 1;
};
[[nodiscard]] FL_API std::vector<AtCommonBits> values_at_common_bits(const Study& study, std::size_t measure, Against against,
                                                                     Budget budget);

struct BitsToTarget {
  std::size_t panel = 0, method = 0;
  ReachSummary bits{};
};
[[nodiscard]] FL_API std::vector<BitsToTarget> bits_to_target(const Study& study, std::size_t measure, Against against, double target);

// A target for a study that was given none: the worst final value among the baseline's finished runs, which all of these reach. Chosen
// after the fact, so that what it shows is a description and no test. NaN when there is no such run.
[[nodiscard]] FL_API double default_target(const Study& study, std::size_t measure);

}  // namespace fl
