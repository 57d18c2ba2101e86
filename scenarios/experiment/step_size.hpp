// learning_rate = "theory": the facts of a run that theorems ask for, and the step size that the feedback makes of them.
#pragma once

#include <string>

#include "compressors/feedback/feedback.hpp"
#include "scenarios/experiment/theory.hpp"

namespace fl {

// What theorems speak of (compressors/feedback/theory.hpp). Computes the smoothness of f and of every f_i.
template <class T>
[[nodiscard]] TheoryFacts theory_facts(const TheoryParts<T>& parts, FederatedProblem<T>& problem);

// The step size of the feedback's theorem. Throws ConfigError with the key local.learning_rate where it has none, or where the run does not
// satisfy a condition.
template <class T>
[[nodiscard]] double theory_step_size(const Feedback<T>& feedback, const std::string& kind, const TheoryFacts& facts);

}  // namespace fl
