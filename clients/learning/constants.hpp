// Constants of a problem in theorems and step-size rules: smoothness, strong convexity and heterogeneity.
//
//   L     smoothness of f = sum_i w_i f_i, L_i of f_i, both without the regulariser
//   mu    strong convexity of f with the regulariser; 0 when none is known
//   zeta^2(x) = sum_i w_i |grad f_i(x) - grad f(x)|^2
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "clients/learning/objective.hpp"

namespace fl {

template <class T>
[[nodiscard]] ProblemConstants compute_constants(const Model<T>& model, std::span<const Shard> shards, std::span<const double> weights) {
  const auto bounds = Objective::of(model, shards, weights).loss_curvature();
  ProblemConstants constants;
  constants.L = std::max(bounds.largest, -bounds.least);
  for (const auto& shard : shards) constants.L_i.push_back(model.smoothness(shard));
  constants.L_max = *std::max_element(constants.L_i.begin(), constants.L_i.end());
  constants.mu = std::max(0.0, bounds.least + model.regulariser().least_curvature());
  return constants;
}

// Returns sum_i w_i |g_i - mean|^2 for gradients that `gradient_of(i, out [P])` writes. The mean is computed first, so nothing cancels when
// clients are alike.
template <class GradientOf>
[[nodiscard]] double weighted_spread(std::size_t P, std::span<const double> weights, const GradientOf& gradient_of) {
  std::vector<double> mean(P, 0.0), own(P);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    gradient_of(i, own.data());
    for (std::size_t j = 0; j < P; ++j) mean[j] += weights[i] * own[j];
  }
  double spread = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    gradient_of(i, own.data());
    double square = 0;
    for (std::size_t j = 0; j < P; ++j) square += (own[j] - mean[j]) * (own[j] - mean[j]);
    spread += weights[i] * square;
  }
  return spread;
}

// Returns zeta^2 at x [P]. The regulariser is common to all clients and drops out.
template <class T>
[[nodiscard]] double zeta_sq(const Exec& exec, const Model<T>& model, std::span<const Shard> shards, std::span<const double> weights,
                             const T* x) {
  const std::size_t P = model.layers().size();
  std::vector<T> gradient(P);
  return weighted_spread(P, weights, [&](std::size_t i, double* out) {
    const std::span<const std::uint32_t> rows(shards[i]);
    model.gradient(exec, shared_view(x, 1, P), {&rows, 1}, {gradient.data(), nullptr, 1, P, P}, nullptr);
    std::copy(gradient.begin(), gradient.end(), out);
  });
}

}  // namespace fl
