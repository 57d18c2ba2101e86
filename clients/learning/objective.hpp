// The global objective f = sum_i w_i f_i of a model with second derivatives, in double: value, gradient, Hessian.
//
// f_i is the mean over shard i plus the regulariser, and the weights add up to 1, so f is one weighted sum over rows (weight w_i / m_i)
// plus the regulariser. Data and parameters that a float run rounds when it stores them are not rounded here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "clients/learning/model.hpp"

namespace fl {

class FL_API Objective {
 public:
  // Keeps a reference to `loss`. Throws ConfigError for weights that are not positive or do not add up to 1, and for a shard without rows.
  Objective(const SecondOrder& loss, const Regulariser& regulariser, std::size_t P, std::span<const Shard> shards,
            std::span<const double> weights);
  template <class T>
  [[nodiscard]] static Objective of(const Model<T>& model, std::span<const Shard> shards, std::span<const double> weights) {
    if (model.second_order() == nullptr) throw ConfigError("this model has no second derivatives: x*, f* and L cannot be computed for it");
    return Objective(*model.second_order(), model.regulariser(), model.layers().size(), shards, weights);
  }

  [[nodiscard]] std::size_t size() const { return P_; }
  // Returns f(x); gradient [P], unless null, receives grad f(x).
  double evaluate(const Exec& exec, const double* x, double* gradient) const;
  // Computes out [P] = Hessian of f at x times v [P].
  void hessian_times(const Exec& exec, const double* x, const double* v, double* out) const;
  // Computes H [P,P] = Hessian of f at x.
  void hessian(const Exec& exec, const double* x, double* H) const;
  // Returns bounds on the Hessian's eigenvalues, regulariser excluded.
  [[nodiscard]] SecondOrder::Curvature loss_curvature() const { return loss_.curvature(set()); }
  [[nodiscard]] const Regulariser& regulariser() const { return regulariser_; }
  // Returns bounds on the diagonal of the Hessian [P], valid at every x.
  [[nodiscard]] std::vector<double> diagonal_bounds(const Exec& exec) const;
  // Returns f without the rows whose loss at x is at most `limit`, and what these rows contribute to f(x).
  [[nodiscard]] std::pair<Objective, double> without_settled_rows(const Exec& exec, const double* x, double limit) const;
  // Does SecondOrder::centre().
  bool centre(std::span<double> v) const { return loss_.centre(v); }
  // Returns SecondOrder::relative_change() of f; infinity if the regulariser is not quadratic.
  [[nodiscard]] double relative_change(const Exec& exec, const double* x) const;

 private:
  [[nodiscard]] RowSet set() const { return {rows_, weight_}; }
  const SecondOrder& loss_;
  Regulariser regulariser_;
  std::size_t P_;
  std::vector<std::uint32_t> rows_;
  std::vector<double> weight_;  // [rows]
};

}  // namespace fl
