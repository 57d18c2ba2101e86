// learning_rate = "theory" and "tight": the facts of a run that enter the theorems, and the step size that the feedback's theorem gives.
#pragma once

#include <string>

#include "compressors/feedback/feedback.hpp"
#include "scenarios/experiment/theory.hpp"

namespace fl {

// Returns the facts that enter the theorems (compressors/feedback/theory.hpp). Computes the smoothness of f and of every f_i, and with
// `needs_convexity` the least strong convexity of any f_i.
template <class T>
[[nodiscard]] TheoryFacts theory_facts(const TheoryParts<T>& parts, FederatedProblem<T>& problem, bool needs_convexity = false);

// Returns the step of the feedback's theorem for a word of local.learning_rate: "theory" or "tight". Throws ConfigError with this key if
// the feedback has no such theorem or the run violates a condition.
template <class T>
[[nodiscard]] TheoryStep step_of_theorem(const Feedback<T>& feedback, const std::string& kind, const std::string& word,
                                         const TheoryFacts& facts);

}  // namespace fl
