// learning_rate = "theory": the facts of a run that enter the theorems, and the step size that the feedback's theorem gives.
#pragma once

#include <string>

#include "compressors/feedback/feedback.hpp"
#include "scenarios/experiment/theory.hpp"

namespace fl {

// Returns the facts that enter the theorems (compressors/feedback/theory.hpp). Computes the smoothness of f and of every f_i.
template <class T>
[[nodiscard]] TheoryFacts theory_facts(const TheoryParts<T>& parts, FederatedProblem<T>& problem);

// Returns the step size of the feedback's theorem. Throws ConfigError with the key local.learning_rate if the feedback has no theorem or
// the run violates a condition.
template <class T>
[[nodiscard]] double theory_step_size(const Feedback<T>& feedback, const std::string& kind, const TheoryFacts& facts);

}  // namespace fl
