// Tests of paired differences that complement Student's: the sign-flip test, one-sided t tests, and the adjustment of tests in sequences.
//
//   sign-flip test:   p = share of the 2^n sign vectors s with |sum s_i d_i| >= |sum d_i|
//
// Under the null hypothesis each difference is as likely as its negative, and nothing else is assumed. Up to kMostExactFlips differences
// all sign vectors are counted. Beyond, kFlips vectors are drawn from the counter-based generator under a fixed key, and p = (1 + hits) /
// (1 + kFlips), so that equal values give equal p-values on all machines (R. A. Fisher, The Design of Experiments, 1935, section 21; B.
// Phipson and G. K. Smyth, "Permutation p-values should never be zero", SAGMB 9, 2010).
//
// Sequences: hypotheses in m chains of two, where the second of a chain is tested only if its first was rejected. Each unfinished chain has
// an equal share of the error rate, and a chain whose hypotheses are both rejected passes its share to the others (F. Bretz, W. Maurer,
// W. Brannath and M. Posch, "A graphical approach to sequentially rejective multiple test procedures", Statistics in Medicine 28, 2009).
// With the first hypotheses alone this is Holm's rule.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

inline constexpr std::size_t kMostExactFlips = 20;  // differences; all their sign vectors are counted
inline constexpr int kFlips = 99'999;               // sign vectors that are drawn for more differences

struct SignFlip {
  double p_value = 1;  // two-sided; 1 for fewer than two values and for a value that is not finite
  bool is_exact = true;
};
[[nodiscard]] FL_API SignFlip sign_flip_test(std::span<const double> values);

// Returns P(T <= t) for Student's T with `degrees` >= 1 degrees of freedom.
[[nodiscard]] FL_API double student_lower_tail(int degrees, double t);

// Returns the p-value of the one-sided t test of mean >= `limit` against mean < `limit`; 1 for fewer than two values or without spread.
[[nodiscard]] FL_API double p_value_below(std::span<const double> values, double limit);

// Returns the adjusted p-values of chains {first, second}, in the order of the input.
[[nodiscard]] FL_API std::vector<std::pair<double, double>> chain_adjusted(std::span<const std::pair<double, double>> chains);

}  // namespace fl
