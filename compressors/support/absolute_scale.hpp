// The length (such as a threshold or a step) that an absolute operator uses independently of its input: a number, or a rule over epsilon, d
// and gamma, with the scale on which it lives.
#pragma once

#include <cmath>
#include <map>
#include <string>

#include "compressors/step_rule.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {

struct AbsoluteScale {
  Expression value = 0.01;
  StepRule rule = StepRule::input;
  double epsilon = 0;
};

// Adds the options of the length to a schema. `name` is the name of the option and `doc` its description.
inline void describe_absolute_scale(Schema& s, AbsoluteScale& o, const std::string& name, const std::string& doc) {
  rule_field(s, name, o.value, {"epsilon", "d", "gamma"}, doc);
  describe_step_rule(s, o.rule, name);
  s.field("epsilon", o.epsilon, "value of epsilon in a rule: squared error allowed per step").above(0);
}

// Returns the length for the step sizes of a round and d parameters. Throws ConfigError unless the length is a positive finite number.
[[nodiscard]] inline double resolve_absolute_scale(const std::string& what, const AbsoluteScale& o, const StepSizes& steps, std::size_t d) {
  std::map<std::string, double> names = {{"d", static_cast<double>(d)}, {"gamma", steps.in_input}};
  if (o.epsilon > 0) names["epsilon"] = o.epsilon;
  const double value = o.value.resolve(names) * step_factor(o.rule, steps);
  if (!(value > 0) || std::isinf(value))
    throw ConfigError(what + (o.value.is_number() ? "" : " \"" + o.value.text() + "\"") + " must be a positive number, is " +
                      to_string(Value{value}) + "; to send everything use identity");
  return value;
}

inline void validate_absolute_scale(const std::string& name, const AbsoluteScale& o, Problems& problems) {
  for (const std::string& used : names_of(o.value))
    if (used == "epsilon" && o.epsilon <= 0)
      problems.push_back({used, "is required, because " + name + " = \"" + o.value.text() + "\" names it"});
  if (!o.value.is_number()) return;
  try {
    (void)resolve_absolute_scale(name, o, {}, 1);
  } catch (const ConfigError& error) {
    problems.push_back({name, error.what()});
  }
}

// Marks a domain as that of an operator whose length follows a step size, if it does.
inline void follow(Domain& domain, const AbsoluteScale& o) {
  follow(domain, o.rule);
  domain.follows_step |= names_gamma(o.value);
}

}  // namespace fl
