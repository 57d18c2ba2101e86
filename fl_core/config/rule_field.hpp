// Fields that hold a number or a rule, with the names that the rule may use. An unknown name is rejected with its position when the
// scenario is read, before any data is read.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fl_core/config/expression.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

// Returns the names that a rule uses, in the order of their first appearance. Returns an empty list for a number.
[[nodiscard]] FL_API std::vector<std::string> names_of(const Expression& rule);
// Returns whether a rule of a compressor names gamma, this round's step size.
[[nodiscard]] inline bool names_gamma(const Expression& rule) {
  const std::vector<std::string> names = names_of(rule);
  return std::find(names.begin(), names.end(), "gamma") != names.end();
}

// Adds a field for a rule over `names`. The documentation of the field lists them after `doc`.
FL_API Field& rule_field(Schema& schema, std::string name, Expression& rule, std::vector<std::string> names, const std::string& doc);

// Adds "learning_rate", the step size gamma of a local update, over the constants of the problem, "theory" and "tight".
FL_API Field& learning_rate_field(Schema& schema, Expression& rule, const std::string& doc);

}  // namespace fl
