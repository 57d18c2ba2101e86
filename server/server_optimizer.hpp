// The server's update rule: x <- x - (a function of the estimate).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fl_core/config/expression.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

template <class T>
class FL_API ServerOptimizer {
 public:
  virtual ~ServerOptimizer() = default;
  // Allocates state for models with P entries, before the first step. State read by persist() is kept.
  virtual void open(std::size_t P) { (void)P; }
  // Updates entries first, first+1, ... of the model with those of the estimate. step_size is gamma if the estimate is a gradient, and 1
  // if it is a step or an update. Several threads update pieces of a model.
  virtual void step(std::uint32_t round, double step_size, std::size_t first, std::span<const double> estimate, std::span<T> model) = 0;
  // Returns the learning rate if every step is model - learning_rate step_size estimate, and std::nullopt for other rules.
  [[nodiscard]] virtual std::optional<double> plain_rate() const { return std::nullopt; }
  // Writes or reads the state kept between rounds.
  virtual void persist(Archive& archive) { (void)archive; }
};

}  // namespace fl
