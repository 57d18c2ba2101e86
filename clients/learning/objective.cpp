#include "clients/learning/objective.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fl_core/config/stopping.hpp"

namespace fl {

Objective::Objective(const SecondOrder& loss, const Regulariser& regulariser, std::size_t P, std::span<const Shard> shards,
                     std::span<const double> weights)
    : loss_(loss), regulariser_(regulariser), P_(P) {
  if (shards.size() != weights.size())
    throw ConfigError(std::to_string(weights.size()) + " weights were given for " + std::to_string(shards.size()) + " clients");
  double total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].empty()) throw ConfigError("client " + std::to_string(i) + " has no rows");
    if (!(weights[i] > 0))
      throw ConfigError("the weight of client " + std::to_string(i) + " must be above 0, is " + std::to_string(weights[i]));
    total += weights[i];
    rows_.insert(rows_.end(), shards[i].begin(), shards[i].end());
    weight_.insert(weight_.end(), shards[i].size(), weights[i] / static_cast<double>(shards[i].size()));
  }
  if (std::abs(total - 1) > 1e-9) throw ConfigError("client weights must add up to 1, they add up to " + std::to_string(total));
}

double Objective::evaluate(const Exec& exec, const double* x, double* gradient) const {
  check_for_stop();
  const double loss = loss_.evaluate(exec, x, set(), gradient);
  if (gradient != nullptr)
    for (std::size_t j = 0; j < P_; ++j) gradient[j] += regulariser_.derivative(x[j]);
  return loss + regulariser_.value(x, P_);
}

void Objective::hessian_times(const Exec& exec, const double* x, const double* v, double* out) const {
  loss_.hessian_times(exec, x, set(), v, out);
  for (std::size_t j = 0; j < P_; ++j) out[j] += regulariser_.curvature(x[j]) * v[j];
}

void Objective::hessian(const Exec& exec, const double* x, double* H) const {
  std::fill_n(H, P_ * P_, 0.0);
  loss_.add_hessian(exec, x, set(), H);
  for (std::size_t j = 0; j < P_; ++j) H[j * P_ + j] += regulariser_.curvature(x[j]);
}

std::vector<double> Objective::diagonal_bounds(const Exec& exec) const {
  std::vector<double> bounds(P_, 0.0);
  loss_.bound_diagonal(exec, set(), bounds);
  for (double& bound : bounds) bound += regulariser_.largest_curvature();
  return bounds;
}

std::pair<Objective, double> Objective::without_settled_rows(const Exec& exec, const double* x, double limit) const {
  Objective rest = *this;
  rest.rows_.clear(), rest.weight_.clear();
  double settled = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    check_for_stop();
    const double loss = loss_.evaluate(exec, x, {std::span(&rows_[r], 1)}, nullptr);
    if (loss <= limit) {
      settled += weight_[r] * loss;
    } else {
      rest.rows_.push_back(rows_[r]);
      rest.weight_.push_back(weight_[r]);
    }
  }
  return {std::move(rest), settled};
}

// The quadratic regulariser adds to |v|_H and does not change, so that the loss' number is valid for the sum.
double Objective::relative_change(const Exec& exec, const double* x) const {
  return regulariser_.nonconvex == 0 ? loss_.relative_change(exec, x, set()) : std::numeric_limits<double>::infinity();
}

}  // namespace fl
