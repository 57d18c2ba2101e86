#include "scenarios/analysis/equivalent_threshold.hpp"

#include <cmath>

namespace fl {

double rule_lambda(double k) { return 1 / (2 * std::sqrt(k)); }
double rule_k(double lambda) { return 1 / (4 * lambda * lambda); }

double equal_bounds_lambda(double k, double d, const NoiseAndSpread& noise) {
  const double spread = (2 * d / k + noise.M) * noise.zeta * noise.zeta + noise.sigma * noise.sigma;
  return std::sqrt(4 * (1 - k / d) / k * spread);
}

// lambda decreases in k from infinity to 0, unless it is 0 everywhere. The bisection works on log k, because k spans orders of magnitude.
double equal_bounds_k(double lambda, double d, const NoiseAndSpread& noise) {
  double low = std::log(d) - 700, high = std::log(d);
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (equal_bounds_lambda(std::exp(middle), d, noise) > lambda ? low : high) = middle;
  }
  return std::exp(high);
}

double epsilon_lambda(double epsilon, double d, double gamma) { return std::sqrt(epsilon / d) / gamma; }
double epsilon_of(double lambda, double d, double gamma) { return d * gamma * gamma * lambda * lambda; }

}  // namespace fl
