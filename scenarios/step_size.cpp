#include "scenarios/step_size.hpp"

#include <cmath>

#include "fl_core/error.hpp"

namespace fl {

double theory_step_size(const std::string& feedback, const Contract& contract, const std::map<std::string, double>& names) {
  const double l2 = names.at("l2"), L = names.at("L") + l2, L_max = names.at("L_max") + l2, n = names.at("n");
  const double omega = contract.omega.value_or(0.0);
  if (feedback == "none") return 1 / (L * (1 + omega / n));
  if (feedback == "diana") return 1 / (L * (1 + 6 * omega / n));
  if (feedback == "marina") return 1 / (L * (1 + std::sqrt(omega * omega / n)));
  if (feedback == "ef21" || feedback == "ef21_plus") {
    if (!contract.delta)
      throw ConfigError("local.learning_rate: \"theory\" for " + feedback + " needs an operator with a contraction constant delta");
    if (*contract.delta >= 1) return 1 / L;
    const double theta = 1 - std::sqrt(1 - *contract.delta), beta = (1 - *contract.delta) / theta;
    return 1 / (L + L_max * std::sqrt(beta / theta));
  }
  return 1 / (4 * L);
}

}  // namespace fl
