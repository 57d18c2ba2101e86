// The step sizes of a round, and the rules by which the number of an absolute operator (a threshold, a step of a grid) follows them.
#pragma once

#include <string>

#include "compressors/contract.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

// The step sizes that an operator's number may follow. Every one is 1 where the input of the operator does not contain it.
struct StepSizes {
  double in_input = 1;     // gamma of this round, the factor in the input, for unit = "step"
  double local = 1;        // gamma of this round, for unit = "update"
  double local_total = 1;  // gamma times local.steps, for unit = "update"

  bool operator==(const StepSizes&) const = default;
};

// input: the number is in units of the input. lambda: it is in units of the gradient and is multiplied by the step size, for inputs that
// are steps. gamma and gamma_steps: the same for updates, multiplied by the step size of a local step or by that and the number of local
// steps.
enum class StepRule { input, lambda, gamma, gamma_steps };

// Adds the option "rule" to a schema. `input_name` is the name of StepRule::input.
inline void describe_step_rule(Schema& s, StepRule& rule, const std::string& input_name, const std::string& unit = "in units of",
                               const std::string& operation = "times") {
  s.choice(
      "rule", rule,
      {{StepRule::input, input_name}, {StepRule::lambda, "lambda"}, {StepRule::gamma, "gamma"}, {StepRule::gamma_steps, "gamma_steps"}},
      input_name + ": " + unit + " the input; the others: " + unit + " the gradient, " + operation +
          " the step size. lambda: for unit = \"step\". gamma: for unit = \"update\", the step size of a local step. gamma_steps: for "
          "unit = \"update\", that times local.steps");
}

// Returns the factor by which a rule multiplies a number.
[[nodiscard]] constexpr double step_factor(StepRule rule, const StepSizes& steps) {
  switch (rule) {
    case StepRule::lambda: return steps.in_input;
    case StepRule::gamma: return steps.local;
    case StepRule::gamma_steps: return steps.local_total;
    case StepRule::input: break;
  }
  return 1;
}

// Marks a domain as that of an operator whose number follows a step size.
constexpr void follow(Domain& domain, StepRule rule) {
  domain.follows_step |= rule == StepRule::lambda;
  domain.follows_local_step |= rule == StepRule::gamma;
  domain.follows_local_total |= rule == StepRule::gamma_steps;
}

}  // namespace fl
