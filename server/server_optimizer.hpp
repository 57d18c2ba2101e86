// What the server does with the estimate: x <- x - (something of it).
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
  // Before the steps: models have P entries. What was read by persist() stays.
  virtual void open(std::size_t P) { (void)P; }
  // Entries first, first+1, ... of the model move along those of the estimate; step_size is gamma when the estimate is a gradient, 1 when
  // it is a step or an update. Pieces of a model are moved by several threads.
  virtual void step(std::uint32_t round, double step_size, std::size_t first, std::span<const double> estimate, std::span<T> model) = 0;
  // Returns the learning rate if every step is model - learning_rate step_size estimate, and nothing for any other rule.
  [[nodiscard]] virtual std::optional<double> plain_rate() const { return std::nullopt; }
  // Writes or reads everything it remembers between rounds.
  virtual void persist(Archive& archive) { (void)archive; }
};

}  // namespace fl
