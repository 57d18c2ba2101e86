// A number, or a rule that is evaluated once the constants of the problem are known: "1/(L+l2)", "L/1e4", "1/(2*sqrt(k))", "theory".
//
// Grammar: numbers, names, + - * / ^ ( ) and sqrt, min, max. The documentation of each key lists the names that its rule may use; the
// usual ones are L (smoothness of f without regulariser), L_max (largest L_i), mu, l2, n (clients), d (parameters), k, gamma.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "fl_core/config/error.hpp"

namespace fl {

class FL_API Expression {
 public:
  Expression() : Expression(0.0) {}
  Expression(double number);                     // NOLINT(google-explicit-constructor)
  explicit Expression(const std::string& text);  // throws ConfigError naming the position of a syntax error

  [[nodiscard]] bool is_number() const { return number_.has_value(); }
  [[nodiscard]] const std::string& text() const { return text_; }

  // Returns the value. Throws ConfigError for an unknown name (with the nearest known one) and for a result that is not finite.
  [[nodiscard]] double resolve(const std::map<std::string, double>& names) const;

 private:
  std::string text_;
  std::optional<double> number_;
};

}  // namespace fl
